//! Writes, trims and flush commands: into the buffer, and from it to flash.

use flashkeel_engine::{Cause, Operation, Time};

use crate::address::{Lpn, NONE};
use crate::machine::DeviceEvent;
use crate::sched::{FlashOp, FlashOpId};
use crate::ssd::{Partition, Ssd};

impl Ssd {
    /// Goes on with a write whose delay or wait is over. `turn_in` is the partition for
    /// whose buffer it has waited, where its turn has come.
    pub(crate) fn continue_write(&mut self, now: Time, index: u32, turn_in: Option<usize>) {
        self.requests[index].pass(now, Cause::Controller);
        loop {
            let request = &mut self.requests[index];
            let lpn = request.next;
            if lpn == request.end {
                break;
            }
            let (part, local) = self.layout.locate(lpn);
            let Partition { ftl, buffer } = &mut self.partitions[part];
            if request.translated != lpn {
                if !ftl.translate(now, local, index, request.has_awaited_map(), &mut self.machine) {
                    return request.await_map(now);
                }
                request.translated = lpn;
            }
            let overtakes = buffer.first_waiting() != NONE && turn_in != Some(part);
            if overtakes || !buffer.kind().admits(buffer.occupancy) {
                let is_flushing = buffer.is_flushing();
                self.wait_for_buffer(now, part, index, turn_in == Some(part));
                if !is_flushing {
                    self.flush_all(now, part);
                }
                return;
            }
            self.insert(now, part, local, index);
            self.requests[index].next += 1;
        }
        self.finish_write(now, index);
    }

    /// Acknowledges a write whose pages are all in the buffer, unless it has
    /// to wait for flash.
    #[inline(always)]
    fn finish_write(&mut self, now: Time, index: u32) {
        let request = &mut self.requests[index];
        request.issued = true;
        request.owner = Cause::Aggregation;
        if request.outstanding > 0 {
            return;
        }
        // One partition after another: they flush at the same time.
        while request.awaited_flushes != 0 {
            let part = request.awaited_flushes.trailing_zeros() as usize;
            request.awaited_flushes &= request.awaited_flushes - 1;
            if self.partitions[part].buffer.is_flushing() {
                return self.wait_for_buffer(now, part, index, false);
            }
        }
        if request.fua && self.layout.buffer.is_volatile {
            return self.flush_behind(now, index);
        }
        self.complete(now, index);
    }

    /// As if a flush command came behind a write, for the partitions that it has written to.
    fn flush_behind(&mut self, now: Time, index: u32) {
        let pages = self.requests[index].first..self.requests[index].end;
        let parts = pages.fold(0, |parts, lpn| parts | 1 << self.layout.locate(lpn).0);
        self.start_flush(now, index, parts);
    }

    /// Puts one page into the buffer and starts the flushes it triggers.
    #[inline]
    fn insert(&mut self, now: Time, part: usize, lpn: Lpn, index: u32) {
        let flushed = self.buffer_page(now, part, lpn, index);
        if flushed && self.partitions[part].buffer.kind().waits_for_own_flush() {
            self.requests[index].awaited_flushes |= 1 << part;
        }
    }

    /// There is no room for a write's next page: it ends with what it has written.
    #[cold]
    pub(super) fn refuse_rest(&mut self, index: u32) {
        let request = &mut self.requests[index];
        let pages = request.end - request.next;
        request.end = request.next + 1;
        request.lacks_room = true;
        self.may_fail = true;
        let written = &mut self.machine.counters.host_pages_written;
        *written = written.saturating_sub(pages);
    }

    /// Sees to it that the buffer is looked at when its oldest page is due.
    #[inline]
    pub(crate) fn expect_timeout(&mut self, now: Time, part: usize) {
        let buffer = &mut self.partitions[part].buffer;
        if !buffer.timing
            && let Some(timeout) = buffer.triggers.timeout
        {
            buffer.timing = true;
            self.machine.schedule(now + timeout, DeviceEvent::BufferTimeout(part as u32));
        }
    }

    /// The oldest buffered page may have been there for long enough.
    pub(crate) fn buffer_timeout(&mut self, now: Time, part: usize) {
        let buffer = &self.partitions[part].buffer;
        let timeout = buffer.triggers.timeout.expect("only a timeout schedules this");
        let next = if buffer.is_held { Some(now + timeout) } else { self.flush_old(now, part, timeout) };
        self.partitions[part].buffer.timing = next.is_some();
        if let Some(next) = next {
            self.machine.schedule(next, DeviceEvent::BufferTimeout(part as u32));
        }
    }

    /// A host program is done: its pages are in the map and in flash.
    pub(crate) fn host_write_done(&mut self, now: Time, id: FlashOpId, operation: &FlashOp) {
        let part = operation.partition as usize;
        let partition = &mut self.partitions[part];
        partition.ftl.program_done(now, operation, &mut self.machine);
        let finished = std::mem::take(&mut partition.ftl.finished);
        partition.buffer.land(now, operation.owner, finished.len() as u32, &self.machine.dispatcher);
        for page in &finished {
            self.partitions[part].buffer.leave(page.epoch);
            if page.owner != NONE {
                self.written(now, id, page.owner);
            }
        }
        while let Some(flush) = self.partitions[part].buffer.next_flushed() {
            self.partition_flushed(now, part, flush);
        }
        self.partitions[part].ftl.finished = finished;
        self.retry_buffer(now, part);
    }

    /// A page of a request that waits for flash is in flash.
    fn written(&mut self, now: Time, id: FlashOpId, index: u32) {
        let request = &mut self.requests[index];
        request.outstanding -= 1;
        if request.outstanding == 0 && request.issued {
            // The program that finished last was formed this long ago.
            let mut ledger = *self.machine.dispatcher.operations.ledger(id);
            let formed = Time(now.0 - ledger.total().0);
            if formed < request.mark {
                // Formed before the request's last page was in the buffer.
                ledger.drop_start(request.mark.since(formed));
            }
            request.pass(formed.max(request.mark), Cause::Aggregation);
            request.ledger.add(&ledger);
            self.complete(now, index);
        }
    }

    /// After room has come: pending flushes first, then those who wait.
    pub(crate) fn retry_buffer(&mut self, now: Time, part: usize) {
        self.retry_flushes(now, part);
        self.release_waiting(now, part);
    }

    /// Lets a request wait for room or for a flush: at the end of the queue,
    /// or at its front if it had been there already.
    #[inline(always)]
    fn wait_for_buffer(&mut self, now: Time, part: usize, index: u32, at_front: bool) {
        let buffer = &mut self.partitions[part].buffer;
        let request = &mut self.requests[index];
        request.pass(now, Cause::BufferFull);
        buffer.begin_wait(now, &mut request.ledger, &self.machine.dispatcher);
        let (first, last) = buffer.waiting_mut();
        request.behind = NONE;
        if *first == NONE {
            (*first, *last) = (index, index);
        } else if at_front {
            request.behind = *first;
            *first = index;
        } else {
            self.requests[*last].behind = index;
            *last = index;
        }
    }

    /// Lets those who waited for the buffer go on, in order, while it can
    /// take more.
    fn release_waiting(&mut self, now: Time, part: usize) {
        loop {
            let buffer = &mut self.partitions[part].buffer;
            let index = buffer.first_waiting();
            if index == NONE {
                return;
            }
            let request = &mut self.requests[index];
            let for_flush = request.issued || request.operation == Operation::Read;
            let ready =
                if for_flush { !buffer.is_flushing() } else { buffer.kind().admits(buffer.occupancy) };
            if !ready {
                // Lanes too short for a flush of their own may fill the buffer together.
                if !buffer.is_flushing() {
                    self.flush_all(now, part);
                }
                return;
            }
            buffer.end_wait(now, &mut request.ledger, &self.machine.dispatcher);
            let (first, last) = buffer.waiting_mut();
            *first = request.behind;
            if *first == NONE {
                *last = NONE;
            }
            // The wait is charged; go on from now.
            request.mark = now;
            if request.operation == Operation::Read {
                request.owner = Cause::Controller;
                self.continue_read(now, index);
            } else if request.issued {
                self.finish_write(now, index);
            } else {
                self.continue_write(now, index, Some(part));
            }
        }
    }

    /// Flushes the buffer if a request is a read that has just arrived; true if it
    /// has to wait for that.
    pub(crate) fn flush_for_read(&mut self, now: Time, index: u32) -> bool {
        let request = &self.requests[index];
        if request.operation != Operation::Read || request.next != request.first {
            return false;
        }
        let (part, _) = self.layout.locate(request.next);
        if self.partitions[part].buffer.is_held {
            return false;
        }
        self.flush_all(now, part);
        let flushing = self.partitions[part].buffer.is_flushing();
        if flushing {
            self.requests[index].pass(now, Cause::Controller);
            self.wait_for_buffer(now, part, index, false);
        }
        flushing
    }

    /// Unmaps a trimmed range.
    pub(crate) fn continue_trim(&mut self, now: Time, index: u32) {
        self.requests[index].pass(now, Cause::Controller);
        while self.requests[index].next < self.requests[index].end {
            let request = &mut self.requests[index];
            let lpn = request.next;
            let (part, local) = self.layout.locate(lpn);
            if request.translated != lpn {
                let ftl = &mut self.partitions[part].ftl;
                if !ftl.translate(now, local, index, request.has_awaited_map(), &mut self.machine) {
                    return request.await_map(now);
                }
                request.translated = lpn;
            }
            self.partitions[part].ftl.trim(now, local, &mut self.machine);
            self.requests[index].next += 1;
        }
        self.complete(now, index);
    }

    /// Flushes partitions, of which `parts` is the bit set; done when all that was written to
    /// them before is in flash.
    pub(crate) fn start_flush(&mut self, now: Time, index: u32, parts: u64) {
        self.requests[index].pass(now, Cause::Controller);
        for part in (0..self.partitions.len()).filter(|part| parts >> part & 1 == 1) {
            if self.partitions[part].buffer.is_held && !self.layout.buffer.is_volatile {
                // It is durable where it is, and stays there.
                continue;
            }
            if self.partitions[part].buffer.is_held {
                self.leave_to_flush(now, part);
            }
            self.partitions[part].buffer.end_epoch(now, index);
            self.flush_owed(now, part);
            // Done at once where nothing is buffered.
            self.partitions[part].buffer.next_flushed();
        }
        self.follow_flush(now, index);
    }

    /// Charges a flush command's wait to the first partition that is not
    /// done; completes it if there is none.
    fn follow_flush(&mut self, now: Time, index: u32) {
        let Some(part) = self.partitions.iter().position(|partition| partition.buffer.owes(index)) else {
            self.requests[index].pass(now, Cause::Controller);
            self.complete(now, index);
            return;
        };
        let request = &mut self.requests[index];
        self.partitions[part].buffer.begin_wait(now, &mut request.ledger, &self.machine.dispatcher);
        request.awaited_flushes = 1 << part;
    }

    /// All that was written to a partition before a flush command is in flash.
    fn partition_flushed(&mut self, now: Time, part: usize, index: u32) {
        let request = &mut self.requests[index];
        if request.awaited_flushes == 1 << part {
            let buffer = &mut self.partitions[part].buffer;
            buffer.end_wait(now, &mut request.ledger, &self.machine.dispatcher);
            request.mark = now;
            self.follow_flush(now, index);
        }
    }
}
