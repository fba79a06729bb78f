//! Moves of garbage collection within a chip: one operation moves many pages,
//! which settle together when it is done. And moves of the ideal device, which
//! take no time.

use flashkeel_engine::{Cause, Span, Time};

use super::Progress;
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::ftl::ecc_check::EccCheck;
use crate::ftl::gc::Gc;
use crate::ftl::gc::movement::Inside;
use crate::ftl::{Entry, Ftl, Lane, Waiter};
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, Task};

impl Ftl {
    /// Generates the next move within a chip, taking turns among the blocks
    /// being collected.
    pub(super) fn move_next(&mut self, now: Time, inside: Inside, machine: &mut Machine) -> bool {
        let jobs = self.tasks.relocation.jobs.len();
        for step in 0..jobs {
            let index = (self.tasks.relocation[Task::Gc].turn + step) % jobs;
            let job = &self.tasks.relocation.jobs[index];
            if job.mover != Task::Gc || job.progress != Progress::Moving || job.copies > 0 {
                continue;
            }
            let (block, domain) = (job.block, job.domain);
            if !self.has_room_inside(block, domain) {
                continue;
            }
            let chip = self.tables.blocks.chip(block);
            if inside.yields && Gc::gives_way(self, domain, chip..chip + 1, machine) {
                continue;
            }
            if self.move_inside(now, index, inside, machine) {
                self.tasks.relocation[Task::Gc].turn = index + 1;
                return true;
            }
            self.check_job(now, index as u32, machine);
        }
        false
    }

    /// Whether the chip of `block` has room for what is moved within it. All of the
    /// domain's room counts when a victim is chosen, and a page takes the same of it
    /// on whichever chip it goes.
    #[inline]
    pub(super) fn has_room_inside(&self, block: BlockId, domain: u32) -> bool {
        let chip = self.tables.blocks.chip(block);
        self.tables.points.room_on(Task::Gc, chip) > 0
            || (self.tables.blocks.free_in(domain) > 0 && self.tables.blocks.has_free(chip))
    }

    /// Generates one move of the job's next valid pages, if there are any, into
    /// the block that collection has open on the chip.
    fn move_inside(&mut self, now: Time, index: usize, inside: Inside, machine: &mut Machine) -> bool {
        let job = &self.tasks.relocation.jobs[index];
        let (block, domain) = (job.block, job.domain);
        let chip = self.tables.blocks.chip(block);
        let room = self.tables.points.room_on(Task::Gc, chip);
        let most = inside.pages.min(if room == 0 { self.shape.pages_per_block } else { room });
        let mut lane = Lane::EMPTY;
        let mut span =
            self.take_valid(now, index, most * self.shape.units_per_page, &mut lane, inside, machine);
        let count = lane.len;
        if count == 0 {
            return false;
        }
        let programs = count.div_ceil(self.shape.units_per_page);
        let mut target = NONE;
        for _ in 0..programs {
            let here = |other| if other == chip { 0 } else { u32::MAX };
            let place = self.tables.points.allocate(Task::Gc, domain, 0, &mut self.tables.blocks, here);
            let place = place.expect("collection has room on the chip");
            let page = self.shape.page_of(place.block, place.page);
            target = target.min(page);
            debug_assert!(page - target < programs && place.chip == chip);
            span += machine.dispatcher.timing().program(place.page, false);
            if place.opened {
                Gc::check(self, now, domain, machine);
            }
        }
        machine.counters.padding_pages += u64::from(programs * self.shape.units_per_page - count);
        machine.counters.programmed_inside += u64::from(programs);
        let entries = self.tables.entries.take(&mut lane, count);
        self.tasks.relocation.jobs[index].copies = count;
        let operations = &mut machine.dispatcher.operations;
        let id = operations.create(now, inside.purpose, Task::Gc, self.shape.index, Cause::Controller);
        let operation = &mut operations[id];
        operation.chip = self.shape.stripes.member(chip, 0);
        operation.target = target;
        operation.units = programs as u16;
        operation.owner = index as u32;
        operation.entries = entries;
        operation.span = span;
        self.tasks.relocation[Task::Gc].outstanding += 1;
        machine.enqueue(now, id);
        true
    }

    /// Takes up to `left` valid pages of a job into `lane`; how long reading
    /// and transferring them takes.
    fn take_valid(
        &mut self,
        now: Time,
        index: usize,
        mut left: u32,
        lane: &mut Lane,
        inside: Inside,
        machine: &Machine,
    ) -> Span {
        let timing = machine.dispatcher.timing();
        let mut span = Span(0);
        let job = &mut self.tasks.relocation.jobs[index];
        while job.next_page < self.shape.pages_per_block && left > 0 {
            let first = self.shape.first_unit(self.shape.page_of(job.block, job.next_page));
            let mut valid =
                self.tables.map.valid_run(first, self.shape.units_per_page) >> job.next_unit << job.next_unit;
            let mut taken = 0;
            let begins_page = lane.len.is_multiple_of(self.shape.units_per_page);
            while valid != 0 && left > 0 {
                let unit = valid.trailing_zeros();
                let ppn = Ppn(first.0 + unit);
                let entry = Entry::new(self.tables.map.holds(ppn), Home(ppn.0), index as u32, 0, now);
                self.tables.entries.push(lane, entry, None);
                valid &= valid - 1;
                job.next_unit = unit + 1;
                taken += 1;
                left -= 1;
            }
            if taken > 0 {
                span += timing.read(job.next_page);
                // What is copied back fills a flash page as it did.
                let is_whole = begins_page && taken == self.shape.units_per_page;
                if inside.purpose == Activity::Gc.through_controller() || !is_whole {
                    span += timing.transfer(taken) + timing.transfer(taken);
                }
            }
            if valid != 0 {
                break;
            }
            job.next_unit = 0;
            job.next_page += 1;
            if job.next_page == self.shape.pages_per_block {
                self.tasks.relocation[Task::Gc].unread_jobs -= 1;
                break;
            }
        }
        span
    }

    /// Pages have been moved within a chip.
    pub fn move_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let job = operation.owner;
        self.tasks.relocation[Task::Gc].outstanding -= 1;
        let mut ppn = self.shape.first_unit(operation.target);
        self.tables.prefetch_homes(operation.entries);
        let mut next = operation.entries;
        let units = self.shape.units_per_page;
        // Of the flash page being filled: whence its first unit comes, whether all do, and how
        // many are current.
        let (mut from, mut is_one, mut current) = (NONE, true, 0);
        while next != NONE {
            let (entry, following) = self.tables.entries.release(next);
            next = following;
            let (page, unit) = (entry.from.0 / units, ppn.0 % units);
            if unit == 0 {
                (from, is_one, current) = (page, true, 0);
            }
            is_one &= page == from;
            let is_current = self.tables.install_current(entry.lpn, entry.from, ppn);
            if is_current {
                self.tables.data_copied(entry.from, ppn);
                machine.counters.moved_pages += 1;
                current += 1;
            }
            if unit + 1 == units || next == NONE {
                let is_copied = operation.purpose == Activity::Gc.copyback() && is_one && unit + 1 == units;
                machine.counters.unchecked_pages += if is_copied { current } else { 0 };
                EccCheck::filled(self, is_copied.then_some(from), ppn.0 / units);
            }
            let changes_map = is_current && entry.lpn.0 < self.shape.lpns;
            if !changes_map || self.change_map(now, entry.lpn, Some(Waiter::Job(job)), Task::Gc, machine) {
                self.copy_done(now, job, machine);
            }
            ppn.0 += 1;
        }
        let block = self.shape.block_of_page(operation.target);
        for _ in 0..operation.units {
            self.page_programmed(now, Task::Gc, block, machine);
        }
        Gc::has_moved(self, now, self.tables.blocks.domain(block), machine);
    }

    /// Moves all valid pages of every block being collected at once.
    pub(super) fn move_untimed(&mut self, now: Time, machine: &mut Machine) {
        for index in 0..self.tasks.relocation.jobs.len() {
            let job = &mut self.tasks.relocation.jobs[index];
            if job.mover != Task::Gc
                || job.progress != Progress::Moving
                || job.next_page == self.shape.pages_per_block
            {
                continue;
            }
            job.next_page = self.shape.pages_per_block;
            let (block, domain) = (job.block, job.domain);
            self.tasks.relocation[Task::Gc].unread_jobs -= 1;
            let first = block.0 * self.shape.units_per_block;
            let mut batch = [Ppn(0); MOST_UNITS];
            let mut filled = 0;
            for ppn in (first..first + self.shape.units_per_block).map(Ppn) {
                if self.tables.map.is_valid(ppn) {
                    batch[filled] = ppn;
                    filled += 1;
                    if filled == self.shape.units_per_page as usize {
                        self.program_untimed(now, domain, &batch[..filled], machine);
                        filled = 0;
                    }
                }
            }
            if filled > 0 {
                self.program_untimed(now, domain, &batch[..filled], machine);
            }
            self.check_job(now, index as u32, machine);
        }
    }

    fn program_untimed(&mut self, now: Time, domain: u32, batch: &[Ppn], machine: &mut Machine) {
        let place = self.tables.points.allocate(Task::Gc, domain, 0, &mut self.tables.blocks, |_| 0);
        let place = place.expect("collection has an open block or a free one");
        let first = (self.shape.page_of(place.block, place.page)) * self.shape.units_per_page;
        for (unit, &from) in batch.iter().enumerate() {
            let lpn: Lpn = self.tables.map.holds(from);
            let to = Ppn(first + unit as u32);
            self.tables.install(lpn, Home(from.0), to);
            self.tables.data_copied(Home(from.0), to);
        }
        if self.shape.stripes.is_parity(place.page + 1) {
            self.tables.points.skip(Task::Gc, &mut self.tables.blocks, place.block);
            self.page_programmed(now, Task::Gc, place.block, machine);
        }
        self.page_programmed(now, Task::Gc, place.block, machine);
    }
}

/// 4 KiB pages of the largest flash page.
const MOST_UNITS: usize = 64;
