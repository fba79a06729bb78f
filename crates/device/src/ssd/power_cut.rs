//! A power cut: what is on its way is dropped, what survives is found again.

use flashkeel_engine::{Cause, Completion, EventQueue, Ledger, Status, Time};

use super::Ssd;
use crate::address::{Home, NONE};
use crate::front::Link;
use crate::front::buffer::Pending;
use crate::ftl::{Entry, Kept};

impl Ssd {
    /// Power is cut and comes back. See `ftl/power_cut.rs` for what is left.
    pub(super) fn lose_power(&mut self, now: Time) {
        self.end_requests(now, Status::Aborted);
        let (layout, machine) = (&self.layout, &self.machine);
        let mut kept = Vec::new();
        for partition in &mut self.partitions {
            let operations = &machine.dispatcher.operations;
            kept.push(partition.ftl.cut_power(now, &layout.partition, self.seed, operations));
        }
        self.begin_again(now, kept);
    }

    /// Begins with nothing under way, and with pages that are to be buffered again in
    /// each partition.
    pub(super) fn begin_again(&mut self, now: Time, kept: Vec<Vec<Kept>>) {
        let (layout, machine) = (&self.layout, &mut self.machine);
        for partition in &mut self.partitions {
            partition.buffer = Ssd::empty_buffer(layout);
            (partition.ftl.background_allowed, partition.ftl.holds_queued) = (true, false);
        }
        machine.events = EventQueue::new();
        let mut former = std::mem::replace(&mut machine.dispatcher, Ssd::idle_chips(layout, self.seed));
        machine.dispatcher.watch_on(now, &mut former);
        machine.arrivals = Ssd::no_arrivals(layout);
        machine.woken.clear();
        machine.controlling = false;
        self.link = layout.host_link.map(Link::new);
        (self.windows, self.preparing) = (Ssd::windows(layout), 0);
        (self.active_at, self.awake_at) = (now, now);
        self.idleness = Ssd::no_pauses(layout);
        self.forget_reads();
        self.begin_windows(now);
        for (part, kept) in kept.into_iter().enumerate() {
            self.buffer_again(now, part, kept);
            self.partitions[part].ftl.tables.count_held();
            self.partitions[part].ftl.start_again(now, &mut self.machine);
        }
    }

    /// Ends every request inside; what it had waited for is not told apart.
    pub(super) fn end_requests(&mut self, now: Time, status: Status) {
        for request in self.requests.take_all() {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Controller, request.submitted, now);
            self.completed.push(Completion { id: request.id, time: now, status, ledger });
        }
    }

    /// Puts pages that have survived in memory back into the buffer.
    fn buffer_again(&mut self, now: Time, part: usize, kept: Vec<Kept>) {
        let is_empty = kept.is_empty();
        let mut stripes = Vec::new();
        for Kept { lpn, page, .. } in kept {
            let partition = &mut self.partitions[part];
            let (ftl, buffer) = (&mut partition.ftl, &mut partition.buffer);
            let mut entry = Entry::new(lpn, Home::UNMAPPED, NONE, buffer.enter(), now);
            entry.behind = ftl.tables.flash_copy(lpn).map_or(Home::UNMAPPED, |ppn| Home(ppn.0));
            let first_entry = ftl.tables.map.ppns();
            let id = ftl.tables.entries.add(entry, Some(first_entry));
            ftl.tables.map.set_home(lpn, Home(first_entry + id));
            if let Some(page) = page {
                ftl.tables.hold(id, &page);
            }
            let domain = ftl.shape.domain_of(lpn);
            match &mut buffer.pending {
                Pending::Lanes(_) => {
                    let entries = &mut ftl.tables.entries;
                    buffer.change_lane(domain, |lane| entries.append(lane, id));
                }
                Pending::Stripes(queue) => {
                    let stripe = ftl.shape.static_stripes.expect("a device with stripes").stripe_of(lpn);
                    queue.add(now, stripe);
                    stripes.push(stripe);
                }
            }
        }
        if is_empty {
            return;
        }
        self.expect_timeout(now, part);
        stripes.dedup();
        for stripe in stripes {
            self.trigger_stripes(now, part, stripe);
        }
        self.retry_buffer(now, part);
    }
}
