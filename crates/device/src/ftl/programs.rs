//! Programs of every writer: forming a page, placing it, installing it in the
//! map when it is done.

use flashkeel_engine::{Cause, Time};

use super::ecc_check::EccCheck;
use super::gc::Gc;
use super::scrub::Scrub;
use super::slc::Slc;
use super::{Entry, Ftl, Lane, Waiter};
use crate::address::{BlockId, NONE, Ppn};
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, FlashOpId, Purpose, Task};

/// A page of the host that is in flash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// The request that waits for it, if one does.
    pub owner: u32,
    /// Which flush of the host covers it.
    pub epoch: u32,
}

impl Ftl {
    /// Makes a program of the first `count` entries of `lane`. It has no
    /// place yet: see [`place`](Self::place).
    #[inline(always)]
    pub fn form(
        &mut self,
        now: Time,
        lane: &mut Lane,
        count: u32,
        purpose: Purpose,
        domain: u32,
        machine: &mut Machine,
    ) -> FlashOpId {
        let task = purpose.activity().task();
        machine.counters.padding_pages += u64::from(self.shape.units_per_page - count);
        let entries = self.tables.entries.take(lane, count);
        let id =
            machine.dispatcher.operations.create(now, purpose, task, self.shape.index, Cause::Controller);
        let operation = &mut machine.dispatcher.operations[id];
        operation.entries = entries;
        operation.target = domain;
        operation.units = self.shape.units_per_page as u16;
        id
    }

    /// Gives a formed program its page and puts it into its request queue, or
    /// lets it wait for a free block.
    pub fn place(&mut self, now: Time, id: FlashOpId, machine: &mut Machine) {
        let operation = &machine.dispatcher.operations[id];
        let (writer, domain) = (operation.purpose.activity().writer(), operation.target);
        let waiting = !self.tasks.stalled.of(writer, domain).is_empty();
        let held = writer == Task::Host && Gc::holds_host(self, now, domain, machine);
        if held || waiting || !self.try_place(now, id, machine) {
            self.stall(now, id, writer, domain, machine);
        }
    }

    fn stall(&mut self, now: Time, id: FlashOpId, writer: Task, domain: u32, machine: &mut Machine) {
        machine.dispatcher.operations.set_outside(now, id, Cause::NoFreeBlock);
        if writer == Task::Host {
            machine.counters.free_block_stalls += 1;
        }
        self.tasks.stalled.of(writer, domain).push_back(id);
        Gc::start(self, now, domain, machine);
    }

    /// Offers stalled programs the blocks that have become free.
    pub(super) fn retry_stalled(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        for writer in [Task::Map, Task::Host] {
            while let Some(&id) = self.tasks.stalled.of(writer, domain).front() {
                let held = writer == Task::Host && Gc::holds_host(self, now, domain, machine);
                if held || !self.try_place(now, id, machine) {
                    break;
                }
                self.tasks.stalled.of(writer, domain).pop_front();
            }
        }
    }

    /// Allocates a page for a program in its domain and queues it.
    pub(super) fn try_place(&mut self, now: Time, id: FlashOpId, machine: &mut Machine) -> bool {
        let operation = &machine.dispatcher.operations[id];
        let (writer, domain) = (operation.purpose.activity().writer(), operation.target);
        let (stripes, dispatcher) = (self.shape.stripes, &machine.dispatcher);
        let loads = dispatcher.loads(stripes.member(0, 0), stripes.groups());
        let load = |group| loads[group as usize];
        let chosen = self.choose_block(domain, writer);
        let keep = match writer {
            Task::Map => Gc::claim(self, domain),
            // The block of its choice is open already, or there is none.
            _ if chosen.is_some() => u32::MAX,
            Task::Host => self.tables.left_by_host(domain),
            _ => self.tables.points.reserves().of(writer),
        };
        let Some(place) = self.tables.points.allocate(writer, domain, keep, &mut self.tables.blocks, load)
        else {
            return false;
        };
        let operation = &mut machine.dispatcher.operations[id];
        let page = self.shape.page_of(place.block, place.page);
        self.tables.aim(operation, page);
        // The map entries will be wanted when the program is done. Those of the
        // host have just been changed.
        if writer != Task::Host {
            self.tables.prefetch_homes(machine.dispatcher.operations[id].entries);
        }
        let task = machine.dispatcher.operations[id].task;
        if writer == Task::Host {
            machine.dispatcher.operations[id].slc = Slc::take(self, now, machine);
        }
        self.watch_program(id, machine);
        machine.enqueue(now, id);
        if self.shape.stripes.is_parity(place.page + 1) {
            self.write_parity(now, writer, task, page + 1, machine);
        }
        if writer == Task::Host {
            Gc::host_wrote(self, domain);
        }
        if place.opened || chosen == Some(true) {
            Gc::check(self, now, domain, machine);
        }
        true
    }

    /// Notes, if that is watched, for which requests a program is.
    #[inline]
    fn watch_program(&self, id: FlashOpId, machine: &mut Machine) {
        let FlashOp { purpose, entries, .. } = machine.dispatcher.operations[id];
        if let Some(log) = machine.dispatcher.log_mut()
            && purpose == Activity::Host.program()
        {
            let mut next = entries;
            while next != NONE {
                log.programs(id, usize::from(self.shape.index), next);
                next = self.tables.entries.next(next);
            }
        }
    }

    /// Programs the parity of the stripe whose last data page has just been
    /// queued: through the same request queue, so that it follows that page.
    fn write_parity(&mut self, now: Time, writer: Task, task: Task, page: u32, machine: &mut Machine) {
        self.tables.points.skip(writer, &mut self.tables.blocks, self.shape.block_of_page(page));
        let slc = writer == Task::Host && Slc::take(self, now, machine);
        let operations = &mut machine.dispatcher.operations;
        let id =
            operations.create(now, Activity::Parity.program(), task, self.shape.index, Cause::Controller);
        let operation = &mut operations[id];
        self.tables.aim(operation, page);
        operation.units = self.shape.units_per_page as u16;
        operation.owner = writer as u32;
        operation.slc = slc;
        machine.enqueue(now, id);
    }

    /// The parity of a stripe has been programmed.
    pub fn parity_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = self.shape.block_of_page(operation.target);
        self.page_programmed(now, Task::ALL[operation.owner as usize], block, machine);
        Slc::programmed(self, now, operation, machine);
    }

    #[inline(always)]
    pub(super) fn page_programmed(&mut self, now: Time, writer: Task, block: BlockId, machine: &mut Machine) {
        let chip = self.tables.blocks.chip(block);
        if self.tables.blocks.end_program(block, self.tables.points.is_exhausted(writer, chip, block)) {
            self.block_filled(now, writer, block, machine);
        }
    }

    /// A block has become full.
    #[inline]
    pub(super) fn block_filled(&mut self, now: Time, writer: Task, block: BlockId, machine: &mut Machine) {
        Gc::found(self, now, self.tables.blocks.domain(block), machine);
        Scrub::check(self, now, block, machine);
        if writer == Task::Gc {
            EccCheck::check_full(self, now, block, machine);
        }
    }

    /// Installs the pages of a finished program in the map. Those of the host are
    /// in `finished` afterwards, for the front to tell its requests.
    pub fn program_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let writer = operation.purpose.activity().writer();
        let block = self.shape.block_of_page(operation.target);
        let mut ppn = self.shape.first_unit(operation.target);
        let mut next = operation.entries;
        self.finished.clear();
        while next != NONE {
            let id = next;
            let (entry, following) = self.tables.entries.release(id);
            next = following;
            match writer {
                Task::Host => {
                    // The parity covers it, whatever is in the buffer meanwhile. Else it
                    // is newer than any copy that garbage collection is making of it.
                    if self.shape.static_stripes.is_some() || self.tables.is_newest_copy(&entry) {
                        self.tables.install(entry.lpn, entry.from, ppn);
                    }
                    self.tables.data_programmed(id, &entry, ppn);
                    self.finished.push(Finished { owner: entry.owner, epoch: entry.epoch });
                    self.change_map(now, entry.lpn, None, Task::Map, machine);
                }
                Task::Map => {
                    self.tables.install(entry.lpn, entry.from, ppn);
                    self.tables.note_programmed(&entry, ppn);
                    self.map_page_written(entry.lpn);
                }
                _ => self.copy_programmed(now, writer, &entry, ppn, machine),
            }
            ppn.0 += 1;
        }
        self.page_programmed(now, writer, block, machine);
        match writer {
            Task::Host => Slc::programmed(self, now, operation, machine),
            Task::Map => self.evict(now, machine),
            mover => {
                self.moved(now, mover, machine);
                Gc::has_moved(self, now, self.tables.blocks.domain(block), machine);
            }
        }
    }

    /// A copy that a mover has made is in flash.
    #[inline]
    fn copy_programmed(&mut self, now: Time, writer: Task, entry: &Entry, ppn: Ppn, machine: &mut Machine) {
        let is_newest = self.tables.install_current(entry.lpn, entry.from, ppn);
        let mover = self.tasks.relocation.jobs[entry.owner as usize].mover;
        self.tasks.relocation[mover].moving -= 1;
        if is_newest {
            machine.counters.moved_pages += 1;
            self.tables.data_copied(entry.from, ppn);
        }
        let waiter = Waiter::Job(entry.owner);
        let is_data = entry.lpn.0 < self.shape.lpns;
        if !is_newest || !is_data || self.change_map(now, entry.lpn, Some(waiter), writer, machine) {
            self.copy_done(now, entry.owner, machine);
        }
    }

    /// A read of a flash page is done; an erase may have waited for it.
    #[inline(always)]
    pub fn read_done(&mut self, now: Time, page: u32, machine: &mut Machine) {
        let block = self.shape.block_of_page(page);
        let part = self.shape.stripes.member_of(page - block.0 * self.shape.pages_per_block);
        if self.tables.blocks.end_read(block, part)
            && self.tables.blocks.state(block) == super::BlockState::Victim
        {
            self.readers_gone(now, block, machine);
        }
        Scrub::check(self, now, block, machine);
    }
}
