//! Reads: translated page by page, served from the buffer or from flash.

use flashkeel_engine::{Cause, Time};

use crate::address::{Lpn, Ppn};
use crate::machine::Event;
use crate::sched::{Activity, FlashOp, FlashOpId, Purpose, Task};
use crate::ssd::Ssd;

impl Ssd {
    /// Goes on with a read whose delay is over: generates its next flash
    /// operation, and schedules the one after it.
    pub(crate) fn continue_read(&mut self, now: Time, index: u32) {
        loop {
            let request = &self.requests[index];
            let (lpn, end) = (request.next, request.end);
            if lpn == end {
                break;
            }
            let (part, local) = self.layout.locate(lpn);
            if request.translated != lpn {
                if !self.partitions[part].ftl.translate(now, local, index, &mut self.machine) {
                    self.requests[index].pass(now, Cause::MapLoad);
                    return;
                }
                self.requests[index].translated = lpn;
            }
            let partition = &mut self.partitions[part];
            let trimmed = partition.ftl.tables.is_trimmed(local);
            let Some(ppn) = partition.ftl.tables.map.flash_home(local).filter(|_| !trimmed) else {
                let buffered =
                    !trimmed && partition.ftl.tables.map.home(local) != crate::address::Home::UNMAPPED;
                self.machine.counters.buffered_pages_read += u64::from(buffered);
                self.machine.counters.unmapped_pages_read += u64::from(!buffered);
                self.serve_from_memory(index, part, local);
                self.requests[index].next += 1;
                continue;
            };
            if self.requests[index].outstanding >= self.layout.reads_per_request {
                self.requests[index].held_back = true;
                return;
            }
            if !self.requests[index].is_generated {
                self.schedule_generation(now, index);
                return;
            }
            self.requests[index].is_generated = false;
            self.generate_read(now, index, part, local, ppn);
        }
        self.requests[index].issued = true;
        if self.requests[index].outstanding == 0 {
            self.requests[index].pass(now, Cause::Controller);
            self.complete(now, index);
        }
    }

    /// Lets the request go on when its next flash read is generated.
    fn schedule_generation(&mut self, now: Time, index: u32) {
        self.requests[index].is_generated = true;
        let delay = self.machine.controller.host_generation.draw(&mut self.machine.random);
        self.machine.schedule_turn(now + delay, Event::Request(index), self.requests[index].turn);
    }

    /// Reads the flash page of the request's next logical page, together with
    /// those after it that lie in the same flash page.
    fn generate_read(&mut self, now: Time, index: u32, part: usize, lpn: Lpn, ppn: Ppn) {
        let units_per_page = self.layout.geometry.units_per_page;
        let page = ppn.0 / units_per_page;
        let request = &self.requests[index];
        let (mut next, end) = (request.next + 1, request.end);
        let mut units = 1;
        while next < end {
            let (other, local) = self.layout.locate(next);
            let home = self.partitions[part].ftl.tables.map.flash_home(local);
            if other != part || home.is_none_or(|home| home.0 / units_per_page != page) {
                break;
            }
            let ftl = &mut self.partitions[part].ftl;
            if !ftl.tables.is_translated(local) || ftl.tables.is_trimmed(local) {
                break;
            }
            units += 1;
            next += 1;
        }
        let request = &mut self.requests[index];
        request.next = next;
        request.outstanding += 1;
        request.pass(now, Cause::Controller);
        let pages = lpn.0..lpn.0 + u32::from(units);
        if self.may_rebuild && self.rebuild(now, index, part, pages.clone(), ppn) {
            return;
        }
        let id = self.issue_read(now, index, part, Activity::Host.read(), page, units);
        self.note_read(id, index, part, pages, false);
    }

    /// Queues one flash read for a request.
    #[inline]
    pub(super) fn issue_read(
        &mut self,
        now: Time,
        index: u32,
        part: usize,
        purpose: Purpose,
        page: u32,
        units: u16,
    ) -> FlashOpId {
        let ftl = &mut self.partitions[part].ftl;
        ftl.tables.begin_read(page);
        let operations = &mut self.machine.dispatcher.operations;
        let id = operations.create(now, purpose, Task::Host, part as u16, Cause::Controller);
        *operations.ledger_mut(id) = self.requests[index].ledger;
        let operation = &mut operations[id];
        operation.tracked = true;
        ftl.tables.aim(operation, page);
        operation.units = units;
        operation.owner = index;
        self.machine.enqueue(now, id);
        id
    }

    /// A flash read of the host is done.
    pub(crate) fn host_read_done(&mut self, now: Time, id: FlashOpId, operation: &FlashOp) {
        self.serve_read(id, operation.owner, operation.partition as usize);
        self.partitions[operation.partition as usize].ftl.read_done(now, operation, &mut self.machine);
        let request = &mut self.requests[operation.owner];
        request.outstanding -= 1;
        let is_over = request.outstanding == 0 && request.issued;
        if !is_over && !request.held_back {
            return;
        }
        // The operation that finished last carries the blame since submission.
        request.ledger = *self.machine.dispatcher.operations.ledger(id);
        if operation.purpose == Activity::Rebuild.read() {
            request.ledger.reassign(Cause::OwnFlash, Cause::Reconstruction);
        }
        request.mark = now;
        if is_over {
            return self.complete(now, operation.owner);
        }
        request.held_back = false;
        self.schedule_generation(now, operation.owner);
    }
}
