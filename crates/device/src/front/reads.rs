//! Reads: translated page by page, served from the buffer or from flash.

use flashkeel_engine::{Cause, Time};

use crate::address::{Lpn, Ppn};
use crate::machine::DeviceEvent;
use crate::sched::{Activity, FlashOp, FlashOpId, Purpose, Task};
use crate::ssd::Ssd;

impl Ssd {
    /// Goes on with a read whose delay is over: generates its next flash
    /// operation, and schedules the one after it.
    #[inline(always)]
    pub(crate) fn continue_read(&mut self, now: Time, index: u32) {
        loop {
            let request = &mut self.requests[index];
            let lpn = request.next;
            if lpn == request.end {
                break;
            }
            let (part, local) = self.layout.locate(lpn);
            let ftl = &mut self.partitions[part].ftl;
            if request.translated != lpn {
                let has_awaited = request.has_awaited_map();
                if has_awaited {
                    // What delays it from now on is not the map.
                    request.pass(now, Cause::Controller);
                }
                if !ftl.translate(now, local, index, has_awaited, &mut self.machine) {
                    return request.await_map(now);
                }
                request.translated = lpn;
            }
            let trimmed = ftl.tables.is_trimmed(local);
            let Some(ppn) = ftl.tables.map.flash_home(local).filter(|_| !trimmed) else {
                let buffered = !trimmed && ftl.tables.map.home(local) != crate::address::Home::UNMAPPED;
                self.machine.counters.buffered_pages_read += u64::from(buffered);
                self.machine.counters.unmapped_pages_read += u64::from(!buffered);
                let is_gone = !buffered && ftl.tables.is_gone(local);
                self.requests[index].is_lost |= is_gone;
                self.serve_from_memory(index, part, local);
                self.requests[index].next += 1;
                continue;
            };
            if request.outstanding >= self.layout.reads_per_request {
                request.held_back = true;
                return;
            }
            if !request.is_generated {
                return self.schedule_generation(now, index);
            }
            request.is_generated = false;
            self.generate_read(now, index, part, local, ppn);
        }
        let request = &mut self.requests[index];
        request.issued = true;
        if request.outstanding == 0 {
            request.pass(now, Cause::Controller);
            self.complete(now, index);
        }
    }

    /// Lets the request go on when its next flash read is generated.
    fn schedule_generation(&mut self, now: Time, index: u32) {
        self.requests[index].is_generated = true;
        let delay = self.machine.controller.host_generation.draw(&mut self.machine.random);
        self.machine.schedule_turn(now + delay, DeviceEvent::Request(index), self.requests[index].turn);
    }

    /// Reads the flash page of the request's next logical page, together with
    /// those after it that lie in the same flash page.
    #[inline]
    fn generate_read(&mut self, now: Time, index: u32, part: usize, lpn: Lpn, ppn: Ppn) {
        let units_per_page = self.layout.geometry.units_per_page;
        let page = ppn.0 / units_per_page;
        let request = &mut self.requests[index];
        let ftl = &mut self.partitions[part].ftl;
        let mut next = request.next + 1;
        while next < request.end {
            let (other, local) = self.layout.locate(next);
            let home = ftl.tables.map.flash_home(local);
            if other != part
                || home.is_none_or(|home| home.0 / units_per_page != page)
                || !ftl.tables.is_translated(local)
                || ftl.tables.is_trimmed(local)
            {
                break;
            }
            next += 1;
        }
        let units = (next - request.next) as u32;
        if ftl.tables.cache.is_some() {
            // The first has been counted.
            self.machine.counters.map_hits += u64::from(units - 1);
        }
        request.next = next;
        request.outstanding += 1;
        request.pass(now, Cause::Controller);
        let pages = lpn.0..lpn.0 + units;
        if self.may_rebuild && self.rebuild(now, index, part, pages.clone(), ppn) {
            return;
        }
        let id = self.issue_read(now, index, part, Activity::Host.read(), page, units as u16);
        self.note_read(id, index, part, pages, false);
    }

    /// Queues one flash read for a request.
    #[inline(always)]
    pub(super) fn issue_read(
        &mut self,
        now: Time,
        index: u32,
        part: usize,
        purpose: Purpose,
        page: u32,
        units: u16,
    ) -> FlashOpId {
        let tables = &mut self.partitions[part].ftl.tables;
        let mut operation = FlashOp::new(now, purpose, Task::Host, part as u16, Cause::Controller);
        tables.aim_read(&mut operation, page);
        operation.units = units;
        operation.owner = index;
        operation.gc_before_ns = self.requests[index].ledger.gc_ns();
        let operations = &mut self.machine.dispatcher.operations;
        let id = operations.add(operation);
        operations.track(id, &self.requests[index].ledger);
        if let Some(log) = self.machine.dispatcher.log_mut() {
            log.serves(id, self.requests[index].origin);
        }
        self.machine.enqueue(now, id);
        id
    }

    /// A flash read of the host is done.
    #[inline]
    pub(crate) fn host_read_done(&mut self, now: Time, id: FlashOpId) {
        let FlashOp { purpose, partition, owner, units, target, gc_before_ns, .. } =
            self.machine.dispatcher.operations[id];
        let part = usize::from(partition);
        if self.machine.dispatcher.operations.ledger(id).gc_ns() > gc_before_ns {
            self.machine.counters.gc_blocked_pages_read += u64::from(units);
        }
        self.serve_read(now, id, owner, part);
        self.partitions[part].ftl.read_done(now, target, &mut self.machine);
        if purpose == Activity::Rebuild.read() {
            let ledger = self.machine.dispatcher.operations.ledger_mut(id);
            ledger.reassign(Cause::OwnFlash, Cause::Reconstruction);
        }
        let request = &mut self.requests[owner];
        request.outstanding -= 1;
        if request.outstanding == 0 && request.issued {
            self.complete_read(now, owner, id);
        } else if request.held_back {
            request.take_blame(now, self.machine.dispatcher.operations.ledger(id));
            request.held_back = false;
            self.schedule_generation(now, owner);
        }
    }
}
