//! Writes without logical stripes: buffered pages of an allocation domain are
//! flushed in the order in which they came, as many to a flash page as fit.

use flashkeel_engine::{Ledger, Span, Time};

use crate::address::{Home, Lpn, NONE};
use crate::front::buffer::Triggers;
use crate::ftl::Entry;
use crate::sched::Activity;
use crate::ssd::{Partition, Ssd};

impl Ssd {
    /// Puts one page into the buffer and starts the flushes it triggers;
    /// whether there were any.
    #[inline]
    pub(super) fn insert_in_lane(&mut self, now: Time, part: usize, lpn: Lpn, index: u32) -> bool {
        let Partition { ftl, buffer } = &mut self.partitions[part];
        if buffer.looks_up() {
            let home = ftl.tables.map.home(lpn);
            if home == Home::UNMAPPED && !ftl.tables.takes(lpn) {
                self.refuse_rest(index);
                return false;
            }
            if buffer.coalesces()
                && let Some(entry) = ftl.tables.buffered(home)
                && ftl.tables.entries.is_pending(entry)
            {
                self.machine.counters.coalesced_pages += 1;
                self.hold(index, part, entry);
                return false;
            }
        }
        let mut owner = NONE;
        if buffer.acknowledges_in_flash() {
            owner = index;
            self.requests[index].outstanding += 1;
        }
        let first_entry = ftl.tables.map.ppns();
        let epoch = buffer.enter();
        let domain = ftl.shape.domain_of(lpn);
        let entry = Entry::new(lpn, Home::UNMAPPED, owner, epoch, now);
        let entries = &mut ftl.tables.entries;
        let (id, len) = buffer.change_lane(domain, |lane| entries.push(lane, entry, Some(first_entry)));
        ftl.tables.supersede(lpn, id);
        ftl.tables.set_gone(lpn, false);
        let Triggers { page, full, watermark, .. } = buffer.triggers;
        let may_flush = full || watermark.is_some() || page.is_some_and(|group| len >= group);
        self.hold(index, part, id);
        self.expect_timeout(now, part);
        may_flush && self.trigger_flushes(now, part, domain, len)
    }

    /// Starts the flushes that the state of the buffer calls for.
    fn trigger_flushes(&mut self, now: Time, part: usize, domain: u32, len: u32) -> bool {
        let buffer = &self.partitions[part].buffer;
        if buffer.is_held {
            return false;
        }
        let (triggers, occupancy) = (buffer.triggers, buffer.occupancy);
        let mut flushed = false;
        if let Some(group) = triggers.page
            && len >= group
        {
            flushed |= self.flush_group(now, part, domain, group);
        }
        if triggers.full && occupancy.pending >= occupancy.size && occupancy.flushing == 0 {
            self.flush_all(now, part);
            flushed = true;
        }
        if let Some(mark) = triggers.watermark {
            flushed |= self.flush_above(now, part, mark);
        }
        flushed
    }

    /// Flushes `group` pages of a lane, if as much as that may be in flight.
    fn flush_group(&mut self, now: Time, part: usize, domain: u32, group: u32) -> bool {
        let occupancy = self.partitions[part].buffer.occupancy;
        if occupancy.flushing > 0 && occupancy.flushing + group > occupancy.size {
            return false;
        }
        let mut left = group;
        while left > 0 {
            let count = left.min(self.layout.geometry.units_per_page);
            self.flush_page(now, part, domain, count);
            left -= count;
        }
        true
    }

    /// Flushes whole flash pages, the fullest lane's first, until no more than
    /// `mark` pages are pending, as far as so many may be in flight.
    fn flush_above(&mut self, now: Time, part: usize, mark: u32) -> bool {
        let units_per_page = self.layout.geometry.units_per_page;
        let mut flushed = false;
        loop {
            let buffer = &self.partitions[part].buffer;
            let occupancy = buffer.occupancy;
            if occupancy.pending <= mark || occupancy.flushing + units_per_page > occupancy.size {
                return flushed;
            }
            let (domain, len) = buffer.longest_lane();
            self.flush_page(now, part, domain, len.min(units_per_page));
            flushed = true;
        }
    }

    /// Flushes everything pending.
    pub(super) fn flush_lanes(&mut self, now: Time, part: usize) {
        if !self.flush_entered(now, part, now) {
            let buffer = &mut self.partitions[part].buffer;
            (buffer.commanded, buffer.all_until) = (Some(now), Some(now));
        }
    }

    /// Flushes what had entered at `until`, lane by lane, as far as so much may be in
    /// flight; whether that was all.
    fn flush_entered(&mut self, now: Time, part: usize, until: Time) -> bool {
        let units_per_page = self.layout.geometry.units_per_page;
        for domain in 0..self.partitions[part].buffer.lanes().len() {
            loop {
                let Partition { ftl, buffer } = &self.partitions[part];
                let lane = &buffer.lanes()[domain];
                if lane.head().is_none_or(|head| ftl.tables.entries[head].entered > until) {
                    break;
                }
                let count = lane.len.min(units_per_page);
                if !self.flush_group(now, part, domain as u32, count) {
                    return false;
                }
            }
        }
        true
    }

    /// Flushes what flush commands wait for, oldest first, then what was to be flushed with
    /// everything, as far as so much may be in flight; whether that was all.
    pub(super) fn flush_owed_pages(&mut self, now: Time, part: usize) -> bool {
        let units_per_page = self.layout.geometry.units_per_page;
        loop {
            let Partition { ftl, buffer } = &self.partitions[part];
            let Some(oldest) = buffer.oldest_owed(&ftl.tables.entries) else { break };
            for domain in 0..buffer.lanes().len() {
                loop {
                    let Partition { ftl, buffer } = &self.partitions[part];
                    let lane = &buffer.lanes()[domain];
                    if lane.head().is_none_or(|head| ftl.tables.entries[head].epoch != oldest) {
                        break;
                    }
                    let count = lane.len.min(units_per_page);
                    if !self.flush_group(now, part, domain as u32, count) {
                        return false;
                    }
                }
            }
        }
        let Some(until) = self.partitions[part].buffer.all_until else { return true };
        let is_over = self.flush_entered(now, part, until);
        if is_over {
            self.partitions[part].buffer.all_until = None;
        }
        is_over
    }

    /// Programs the first `count` pages of a lane as one flash page.
    fn flush_page(&mut self, now: Time, part: usize, domain: u32, count: u32) {
        let Partition { ftl, buffer } = &mut self.partitions[part];
        let machine = &mut self.machine;
        let purpose = Activity::Host.program();
        let (id, _) = buffer.change_lane(domain, |lane| ftl.form(now, lane, count, purpose, domain, machine));
        let ticket = buffer.take_off(now, id, count, &machine.dispatcher);
        let operations = &mut self.machine.dispatcher.operations;
        operations.track(id, &Ledger::ZERO);
        operations[id].owner = ticket;
        self.machine.generate(now, id);
    }

    /// Flushes pages that have been there for long enough; when the next will
    /// be, if there is one.
    pub(super) fn flush_old_pages(&mut self, now: Time, part: usize, timeout: Span) -> Option<Time> {
        let units_per_page = self.layout.geometry.units_per_page;
        let mut next: Option<Time> = None;
        for domain in 0..self.partitions[part].buffer.lanes().len() {
            loop {
                let partition = &self.partitions[part];
                let lane = &partition.buffer.lanes()[domain];
                let Some(head) = lane.head() else { break };
                let due = partition.ftl.tables.entries[head].entered + timeout;
                if due > now {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    break;
                }
                let count = lane.len.min(units_per_page);
                if !self.flush_group(now, part, domain as u32, count) {
                    // As much as may be in flight is. Full pages follow as others land; what does
                    // not fill one has another timeout to do so.
                    let again = now + timeout;
                    next = Some(next.map_or(again, |next| next.min(again)));
                    break;
                }
            }
        }
        next
    }

    /// After room has come: flushes that had to wait.
    pub(super) fn retry_lanes(&mut self, now: Time, part: usize) {
        let buffer = &self.partitions[part].buffer;
        if let Some(group) = buffer.triggers.page {
            for domain in 0..buffer.lanes().len() {
                while self.partitions[part].buffer.lanes()[domain].len >= group
                    && self.flush_group(now, part, domain as u32, group)
                {}
            }
        }
        let occupancy = self.partitions[part].buffer.occupancy;
        let triggers = self.partitions[part].buffer.triggers;
        if triggers.full && occupancy.pending >= occupancy.size && occupancy.flushing == 0 {
            self.flush_all(now, part);
        }
        if let Some(mark) = triggers.watermark {
            self.flush_above(now, part, mark);
        }
    }
}
