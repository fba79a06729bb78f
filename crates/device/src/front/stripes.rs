//! Writes to logical stripes: buffered pages are flushed stripe by stripe, each
//! with its parity.

use flashkeel_engine::{Ledger, Span, Time};

use crate::address::{Home, Lpn, NONE};
use crate::ftl::{Entry, Lane};
use crate::sched::{Activity, FlashOp};
use crate::ssd::Ssd;

impl Ssd {
    /// Puts one page into the buffer and starts the flushes it triggers;
    /// whether there were any.
    pub(super) fn insert_in_stripe(&mut self, now: Time, part: usize, lpn: Lpn, index: u32) -> bool {
        let partition = &mut self.partitions[part];
        let (ftl, buffer) = (&mut partition.ftl, &mut partition.buffer);
        let was_trimmed = ftl.tables.is_trimmed(lpn);
        ftl.tables.set_trimmed(lpn, false);
        ftl.tables.set_gone(lpn, false);
        if let Some(entry) = ftl.tables.buffered(ftl.tables.map.home(lpn))
            && ftl.tables.entries.is_pending(entry)
        {
            self.machine.counters.coalesced_pages += 1;
            if was_trimmed {
                // What was written before the trim is void.
                ftl.tables.entries.renew(entry);
            }
            self.hold(index, part, entry);
            return false;
        }
        let stripe = ftl.shape.static_stripes.expect("a device with stripes").stripe_of(lpn);
        let mut entry = Entry::new(lpn, Home::UNMAPPED, NONE, buffer.enter(), now);
        entry.behind = ftl.tables.flash_copy(lpn).map_or(Home::UNMAPPED, |ppn| Home(ppn.0));
        let first_entry = ftl.tables.map.ppns();
        let id = ftl.tables.entries.add(entry, Some(first_entry));
        ftl.tables.map.set_home(lpn, Home(first_entry + id));
        buffer.stripes_mut().add(now, stripe);
        self.hold(index, part, id);
        self.expect_timeout(now, part);
        self.trigger_stripes(now, part, stripe)
    }

    /// Starts the flushes that the state of the buffer calls for, after a
    /// change of one stripe.
    pub(crate) fn trigger_stripes(&mut self, now: Time, part: usize, stripe: u32) -> bool {
        let buffer = &self.partitions[part].buffer;
        if buffer.is_held {
            return false;
        }
        let triggers = buffer.triggers;
        let mut flushed = false;
        if let Some(group) = triggers.page
            && self.partitions[part].buffer.stripes().is_due(stripe)
            && self.pending_pages(part, stripe).count_ones() >= group.min(self.stripe_pages(part, stripe))
        {
            // Not before those that a flush command waits for.
            let is_next = self.partitions[part].buffer.commanded.is_none();
            flushed = is_next && self.flush_stripe_if_allowed(now, part, stripe);
            if !flushed {
                self.partitions[part].buffer.stripes_mut().ready.push_back(stripe);
            }
        }
        flushed | self.flush_stripes_if_full(now, part)
    }

    /// Pages of the host in a stripe: no group of one has more.
    fn stripe_pages(&self, part: usize, stripe: u32) -> u32 {
        let stripes = self.partitions[part].ftl.shape.static_stripes.expect("a device with stripes");
        stripes.data(stripe).len() as u32
    }

    /// Flushes what the buffer's level calls for.
    fn flush_stripes_if_full(&mut self, now: Time, part: usize) -> bool {
        let buffer = &self.partitions[part].buffer;
        let (triggers, occupancy) = (buffer.triggers, buffer.occupancy);
        let mut flushed = false;
        if triggers.full && occupancy.pending >= occupancy.size && occupancy.flushing == 0 {
            self.flush_stripes(now, part);
            flushed = true;
        }
        if let Some(mark) = triggers.watermark {
            while self.partitions[part].buffer.occupancy.pending > mark
                && let Some((stripe, _)) = self.partitions[part].buffer.stripes_mut().first()
                && self.flush_stripe_if_allowed(now, part, stripe)
            {
                flushed = true;
            }
        }
        flushed
    }

    /// Flushes every stripe that is not being updated.
    pub(super) fn flush_stripes(&mut self, now: Time, part: usize) {
        if !self.flush_owed_stripes(now, part, now) {
            self.partitions[part].buffer.commanded = Some(now);
        }
    }

    /// Flushes what was there at `commanded`, oldest first, as far as so much may be in
    /// flight; whether that was all that may be flushed.
    pub(super) fn flush_owed_stripes(&mut self, now: Time, part: usize, commanded: Time) -> bool {
        while let Some((stripe, since)) = self.partitions[part].buffer.stripes_mut().first() {
            if since > commanded {
                break;
            }
            if !self.flush_stripe_if_allowed(now, part, stripe) {
                return false;
            }
        }
        true
    }

    /// Flushes stripes that have been there for long enough; when the next
    /// will be, if there is one.
    pub(super) fn flush_old_stripes(&mut self, now: Time, part: usize, timeout: Span) -> Option<Time> {
        while let Some((stripe, since)) = self.partitions[part].buffer.stripes_mut().first() {
            if since + timeout > now {
                return Some(since + timeout);
            }
            if !self.flush_stripe_if_allowed(now, part, stripe) {
                // As much as may be in flight is: stripes follow as others land.
                return Some(now + timeout);
            }
        }
        None
    }

    /// After room has come: flushes that had to wait.
    pub(super) fn retry_stripes(&mut self, now: Time, part: usize) {
        while let Some(&stripe) = self.partitions[part].buffer.stripes().ready.front() {
            if self.partitions[part].buffer.stripes().is_due(stripe)
                && !self.flush_stripe_if_allowed(now, part, stripe)
            {
                break;
            }
            self.partitions[part].buffer.stripes_mut().ready.pop_front();
        }
        self.flush_stripes_if_full(now, part);
    }

    /// The pages of a stripe that wait for a flush, one bit for each page of
    /// the host in it.
    fn pending_pages(&self, part: usize, stripe: u32) -> u128 {
        let ftl = &self.partitions[part].ftl;
        let stripes = ftl.shape.static_stripes.expect("a device with stripes");
        let mut pending = 0;
        for (at, lpn) in stripes.data(stripe).enumerate() {
            let entry = ftl.tables.buffered(ftl.tables.map.home(Lpn(lpn)));
            pending |= u128::from(entry.is_some_and(|entry| ftl.tables.entries.is_pending(entry))) << at;
        }
        pending
    }

    /// Flushes a stripe, if as much as that may be in flight.
    #[inline(never)]
    fn flush_stripe_if_allowed(&mut self, now: Time, part: usize, stripe: u32) -> bool {
        let occupancy = self.partitions[part].buffer.occupancy;
        let written = self.pending_pages(part, stripe);
        if occupancy.flushing > 0 && occupancy.flushing + written.count_ones() > occupancy.size {
            return false;
        }
        self.flush_stripe(now, part, stripe, written);
        true
    }

    /// Flushes the pending pages of a stripe, those `written`, flash page by
    /// flash page.
    fn flush_stripe(&mut self, now: Time, part: usize, stripe: u32, written: u128) {
        self.partitions[part].buffer.stripes_mut().begin_update(stripe);
        if let Some((next, _)) = self.partitions[part].buffer.stripes_mut().first() {
            self.partitions[part].ftl.tables.prefetch_stripe(next);
        }
        let units_per_page = self.layout.geometry.units_per_page;
        let partition = &mut self.partitions[part];
        let (ftl, machine) = (&mut partition.ftl, &mut self.machine);
        let stripes = ftl.shape.static_stripes.expect("a device with stripes");
        let update = ftl.begin_update(stripe);
        let first = stripes.data(stripe).start;
        let mut left = written;
        while left != 0 {
            let page = left.trailing_zeros() / units_per_page;
            let mut lane = Lane::EMPTY;
            for at in page * units_per_page..(page + 1) * units_per_page {
                if left >> at & 1 == 1 {
                    let home = ftl.tables.map.home(Lpn(first + at));
                    let entry = ftl.tables.buffered(home).expect("a pending page is buffered");
                    ftl.tables.entries.append(&mut lane, entry);
                    left &= !(1 << at);
                }
            }
            let (count, domain) = (lane.len, stripes.chip_of(Lpn(first + page * units_per_page)));
            let id = ftl.form(now, &mut lane, count, Activity::Host.program(), domain, machine);
            let ticket = partition.buffer.take_off(now, id, count, &machine.dispatcher);
            let operations = &mut machine.dispatcher.operations;
            operations.track(id, &Ledger::ZERO);
            operations[id].owner = ticket;
            ftl.add_to_update(update, id, machine);
        }
        ftl.start_update(now, update, written, machine);
    }

    /// A program of a stripe's update is done.
    pub(crate) fn stripe_programmed(&mut self, now: Time, operation: &FlashOp) {
        let part = operation.partition as usize;
        let ftl = &mut self.partitions[part].ftl;
        let Some(stripe) = ftl.update_programmed(operation) else { return };
        ftl.stripe_updated(now, stripe, &mut self.machine);
        if self.partitions[part].buffer.stripes_mut().end_update(now, stripe) {
            self.expect_timeout(now, part);
            let buffer = &mut self.partitions[part].buffer;
            if buffer.awaits_flush() {
                // A flush command has passed this stripe over. Now it has its turn.
                let is_next = buffer.commanded.is_none();
                if !(is_next && self.flush_stripe_if_allowed(now, part, stripe)) {
                    self.partitions[part].buffer.commanded = Some(now);
                }
            } else {
                self.trigger_stripes(now, part, stripe);
            }
        }
        self.retry_buffer(now, part);
    }
}
