//! The steps of relocation: one operation generated after another, each after
//! a delay, and reactions to their completion. Erases come first, because they
//! free space, then programs, because they free memory, then reads.

use flashkeel_engine::{Cause, Time};

use super::{Job, Progress};
use crate::address::{BlockId, Home, NONE, Ppn};
use crate::ftl::ecc_check::EccCheck;
use crate::ftl::gc::Gc;
use crate::ftl::gc::movement::Manner;
use crate::ftl::{Entry, Erased, Ftl};
use crate::machine::{DeviceEvent, Machine};
use crate::sched::{FlashOp, Task};

impl Ftl {
    /// Makes sure that the mover's next operation is generated, if there is one.
    #[inline(always)]
    pub fn wake(&mut self, now: Time, mover: Task, machine: &mut Machine) {
        if !self.tasks.relocation[mover].ticking && self.has_work(mover) && self.may_run(mover) {
            self.tick(now, mover, machine);
        }
    }

    /// Schedules the generation of the mover's next operation.
    fn tick(&mut self, now: Time, mover: Task, machine: &mut Machine) {
        self.tasks.relocation[mover].ticking = true;
        machine.wake_control(now);
        machine.generate_later(now, self.shape.index, mover.activity());
    }

    /// Whether the present window lets the mover run, or the host needs it to
    /// run whatever the window.
    #[inline]
    fn may_run(&self, mover: Task) -> bool {
        self.background_allowed || (mover == Task::Gc && Gc::is_urgent(self))
    }

    /// Sees to it that chips may begin with what is queued in the background if the present
    /// window lets them, or the host needs collection.
    pub(in crate::ftl) fn heed_window(&mut self, now: Time, machine: &mut Machine) {
        let is_kept_back = !self.background_allowed && self.holds_queued;
        let is_urgent = is_kept_back && Gc::is_urgent(self);
        if is_urgent && !std::mem::replace(&mut self.window_broken, true) {
            machine.counters.broken_windows += 1;
        }
        let is_allowed = !is_kept_back || is_urgent;
        let partition = u32::from(self.shape.index);
        machine.dispatcher.allow_background(now, partition, is_allowed, &mut machine.events);
    }

    /// Whether an operation could be generated, or a victim chosen, now.
    #[inline]
    fn has_work(&self, mover: Task) -> bool {
        let moves = &self.tasks.relocation[mover];
        if !moves.erasable.is_empty() {
            return true;
        }
        let may_read = moves.moving + self.shape.units_per_page <= moves.max_moving && moves.unread_jobs > 0;
        // With nothing else on its way, a part of a page goes out alone.
        let may_program = !moves.full.is_empty() || (moves.staged > 0 && moves.staged == moves.moving);
        may_read || may_program || self.wants_victim(mover)
    }

    /// Generates the mover's next operation, if there is one.
    pub(in crate::ftl) fn relocate(&mut self, now: Time, mover: Task, machine: &mut Machine) {
        self.tasks.relocation[mover].ticking = false;
        if !self.may_run(mover) {
            return;
        }
        // What it still waits for it finds out now.
        self.tables.points.waits.end(mover.activity());
        self.start_jobs(now, mover, machine);
        let manner = if mover == Task::Gc { self.tasks.gc.manner } else { Manner::Queued };
        if manner == Manner::Untimed {
            self.move_untimed(now, machine);
        }
        // Part of a page is programmed only if nothing more will come to fill it.
        let generated = self.erase_next(now, mover, machine)
            || match manner {
                Manner::Inside(inside) if self.move_next(now, inside, machine) => true,
                _ => {
                    self.program_next(now, mover, machine, false)
                        || self.read_next(now, mover, machine)
                        || self.program_next(now, mover, machine, true)
                }
            };
        if generated {
            self.wake(now, mover, machine);
        }
    }

    /// Begins to empty a full block.
    pub(in crate::ftl) fn start_job(
        &mut self,
        now: Time,
        mover: Task,
        domain: u32,
        block: BlockId,
        machine: &mut Machine,
    ) {
        self.tables.blocks.choose(block);
        let jobs = &mut self.tasks.relocation.jobs;
        let unused = jobs.iter().position(|job| job.progress == Progress::Unused);
        let index = unused.unwrap_or(jobs.len());
        let job = Job::new(mover, block, domain, self.tables.blocks.valid(block));
        if unused.is_some() {
            jobs[index] = job;
        } else {
            jobs.push(job);
        }
        let moves = &mut self.tasks.relocation[mover];
        moves.domains[domain as usize].jobs += 1;
        moves.unread_jobs += 1;
        if mover == Task::Gc {
            Gc::note_search(self, domain);
        }
        if self.tables.blocks.valid(block) == 0 {
            self.tasks.relocation.jobs[index].next_page = self.shape.pages_per_block;
            self.tasks.relocation[mover].unread_jobs -= 1;
            self.check_job(now, index as u32, machine);
        }
    }

    /// Erases an emptied block, on one chip of its group after the other, so
    /// that the other chips can stand in for the one that is busy.
    fn erase_next(&mut self, now: Time, mover: Task, machine: &mut Machine) -> bool {
        let waits = mover == Task::Gc && self.tasks.gc.erases_in_pauses;
        let next = if waits { self.erasable_in_pause(machine) } else { Some(0) };
        let erasable = &mut self.tasks.relocation[mover].erasable;
        let Some(index) = next.and_then(|at| erasable.remove(at)) else { return false };
        if mover == Task::Gc && self.tasks.gc.manner == Manner::Untimed {
            self.erased(now, index, machine);
            return true;
        }
        let job = &mut self.tasks.relocation.jobs[index as usize];
        let block = job.block;
        let operations = &mut machine.dispatcher.operations;
        let id = operations.create(now, mover.activity().erase(), mover, self.shape.index, Cause::Controller);
        let operation = &mut operations[id];
        operation.chip = self.shape.stripes.member(self.tables.blocks.chip(block), job.erases);
        operation.target = block.0;
        operation.owner = index;
        job.erases += 1;
        self.tasks.relocation[mover].outstanding += 1;
        machine.enqueue(now, id);
        true
    }

    /// The first block that collection has emptied whose next erase the host would
    /// not notice, or has to bear.
    fn erasable_in_pause(&mut self, machine: &Machine) -> Option<usize> {
        (0..self.tasks.relocation[Task::Gc].erasable.len()).find(|&at| {
            let job = &self.tasks.relocation.jobs[self.tasks.relocation[Task::Gc].erasable[at] as usize];
            let (domain, chip) = (job.domain, self.tables.blocks.chip(job.block));
            !Gc::gives_way(self, domain, chip..chip + 1, machine)
        })
    }

    /// Programs a page of moved data; part of a page only if nothing that is
    /// on its way can fill it.
    #[inline(always)]
    fn program_next(&mut self, now: Time, mover: Task, machine: &mut Machine, partial: bool) -> bool {
        let moves = &self.tasks.relocation[mover];
        let is_enough = !moves.full.is_empty() || partial && moves.staged > 0;
        is_enough && self.program_staged(now, mover, machine, partial)
    }

    fn program_staged(&mut self, now: Time, mover: Task, machine: &mut Machine, partial: bool) -> bool {
        let mut next = 0;
        while next < self.shape.domains {
            let full = self.tasks.relocation[mover].full.next(next);
            let Some(domain) = (if partial { Some(next) } else { full }) else { break };
            next = domain + 1;
            let staged = self.tasks.relocation[mover].domains[domain as usize].staged.len;
            let count = staged.min(self.shape.units_per_page);
            let enough = count == self.shape.units_per_page
                || (partial && count > 0 && !self.expects_data(mover, domain));
            if !enough || !self.may_program(mover, domain) {
                continue;
            }
            let mut lane = self.tasks.relocation[mover].domains[domain as usize].staged;
            let id = self.form(now, &mut lane, count, mover.activity().program(), domain, machine);
            let moves = &mut self.tasks.relocation[mover];
            moves.unstage(domain, lane, count);
            moves.outstanding += 1;
            let placed = self.try_place(now, id, machine);
            assert!(placed, "{mover:?} has an open block or may open one");
            return true;
        }
        false
    }

    /// Whether a page of moved data can be placed in `domain`; otherwise it waits.
    fn may_program(&mut self, mover: Task, domain: u32) -> bool {
        let may_open = self.tables.blocks.free_in(domain) > self.tables.points.reserves().of(mover);
        if may_open || self.tables.points.room(mover, domain) > 0 {
            return true;
        }
        // Collection waits for nobody but itself.
        mover != Task::Gc && self.tables.has_spare_block_for(mover.activity(), domain)
    }

    /// Whether more valid pages of `domain` will be staged.
    fn expects_data(&self, mover: Task, domain: u32) -> bool {
        self.tasks.relocation.jobs.iter().any(|job| {
            job.progress == Progress::Moving
                && job.mover == mover
                && job.domain == domain
                && (job.reads > 0 || job.next_page < self.shape.pages_per_block && !self.waits_to_move(job))
        })
    }

    /// Whether nothing of a job may be read through the controller now: what has room on its
    /// chip is moved there, by `move_next`, once what was taken of it before is settled and
    /// the chip has time for it; through the controller goes only what would wait for room.
    fn waits_to_move(&self, job: &Job) -> bool {
        let is_inside = job.mover == Task::Gc && matches!(self.tasks.gc.manner, Manner::Inside(_));
        is_inside && (job.copies > 0 || self.has_room_inside(job.block, job.domain))
    }

    /// Generates the next read, taking turns among the blocks being emptied.
    fn read_next(&mut self, now: Time, mover: Task, machine: &mut Machine) -> bool {
        let jobs = self.tasks.relocation.jobs.len();
        for step in 0..jobs {
            let moves = &self.tasks.relocation[mover];
            if moves.moving + self.shape.units_per_page > moves.max_moving {
                return false;
            }
            let index = (moves.turn + step) % jobs;
            let job = &self.tasks.relocation.jobs[index];
            if job.mover != mover || job.progress != Progress::Moving {
                continue;
            }
            if self.waits_to_move(job) {
                continue;
            }
            let block = job.block;
            let Some((page, valid)) = self.next_page(index) else {
                self.check_job(now, index as u32, machine);
                continue;
            };
            self.tasks.relocation.jobs[index].reads += 1;
            let moves = &mut self.tasks.relocation[mover];
            moves.turn = index + 1;
            moves.moving += valid;
            moves.outstanding += 1;
            self.tables.blocks.begin_read(block);
            let operations = &mut machine.dispatcher.operations;
            let id =
                operations.create(now, mover.activity().read(), mover, self.shape.index, Cause::Controller);
            let operation = &mut operations[id];
            self.tables.aim(operation, self.shape.page_of(block, page));
            operation.units = valid as u16;
            operation.owner = index as u32;
            machine.enqueue(now, id);
            return true;
        }
        false
    }

    /// The job's next page with valid data, and how many 4 KiB pages are.
    fn next_page(&mut self, index: usize) -> Option<(u32, u32)> {
        while self.tasks.relocation.jobs[index].next_page < self.shape.pages_per_block {
            let job = &mut self.tasks.relocation.jobs[index];
            let page = job.next_page;
            job.next_page += 1;
            job.next_unit = 0;
            let first = self.shape.first_unit(self.shape.page_of(job.block, page));
            let valid = self.tables.map.valid_run(first, self.shape.units_per_page).count_ones();
            if job.next_page == self.shape.pages_per_block {
                let mover = job.mover;
                self.tasks.relocation[mover].unread_jobs -= 1;
            }
            if valid > 0 {
                self.tables.map.prefetch_held(first);
                return Some((page, valid));
            }
        }
        None
    }

    /// A page of a block being emptied has been read: what is still valid is
    /// staged.
    pub(in crate::ftl) fn victim_read(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let index = operation.owner;
        let first = self.shape.first_unit(operation.target);
        let job = &mut self.tasks.relocation.jobs[index as usize];
        job.reads -= 1;
        let (mover, domain) = (job.mover, job.domain);
        let mut valid = self.tables.map.valid_run(first, self.shape.units_per_page);
        job.copies += valid.count_ones();
        let moves = &mut self.tasks.relocation[mover];
        moves.outstanding -= 1;
        moves.moving = moves.moving - u32::from(operation.units) + valid.count_ones();
        while valid != 0 {
            let ppn = Ppn(first.0 + valid.trailing_zeros());
            valid &= valid - 1;
            let entry = Entry::new(self.tables.map.holds(ppn), Home(ppn.0), index, 0, now);
            moves.stage(&mut self.tables.entries, domain, entry);
        }
        self.read_done(now, operation.target, machine);
        self.check_job(now, index, machine);
        self.wake(now, mover, machine);
    }

    /// A page of moved data has been programmed.
    pub(in crate::ftl) fn moved(&mut self, now: Time, mover: Task, machine: &mut Machine) {
        self.tasks.relocation[mover].outstanding -= 1;
        self.wake(now, mover, machine);
    }

    /// One moved page has its new home settled, map included.
    pub(in crate::ftl) fn copy_done(&mut self, now: Time, job: u32, machine: &mut Machine) {
        let state = &mut self.tasks.relocation.jobs[job as usize];
        state.copies -= 1;
        let settled = state.copies == 0 && state.mover == Task::Gc;
        self.check_job(now, job, machine);
        if settled && matches!(self.tasks.gc.manner, Manner::Inside(_)) {
            // The next move of the block waits until all of this one's are.
            self.wake(now, Task::Gc, machine);
        }
    }

    /// The last read of a block on its way is done.
    pub(in crate::ftl) fn readers_gone(&mut self, now: Time, block: BlockId, machine: &mut Machine) {
        let waits = |job: &Job| job.block == block && job.progress == Progress::AwaitingReaders;
        if let Some(index) = self.tasks.relocation.jobs.iter().position(waits) {
            self.make_erasable(now, index as u32, machine);
        }
    }

    pub(super) fn check_job(&mut self, now: Time, index: u32, machine: &mut Machine) {
        let job = &mut self.tasks.relocation.jobs[index as usize];
        if job.progress != Progress::Moving || !job.is_emptied(self.shape.pages_per_block) {
            return;
        }
        debug_assert_eq!(self.tables.blocks.valid(job.block), 0, "an emptied block holds valid pages");
        if self.tables.blocks.is_read(job.block) {
            job.progress = Progress::AwaitingReaders;
        } else {
            self.make_erasable(now, index, machine);
        }
    }

    fn make_erasable(&mut self, now: Time, index: u32, machine: &mut Machine) {
        let job = &mut self.tasks.relocation.jobs[index as usize];
        job.progress = Progress::Erasing;
        let mover = job.mover;
        self.tasks.relocation[mover].erasable.push_back(index);
        self.wake(now, mover, machine);
    }

    /// A block has been erased.
    pub(in crate::ftl) fn erase_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        debug_assert_ne!(operation.owner, NONE);
        let Job { mover, erases, .. } = self.tasks.relocation.jobs[operation.owner as usize];
        self.tasks.relocation[mover].outstanding -= 1;
        if erases < self.shape.stripes.width() {
            return self.make_erasable(now, operation.owner, machine);
        }
        self.erased(now, operation.owner, machine);
    }

    /// The block of a job is erased on every chip of its group.
    fn erased(&mut self, now: Time, index: u32, machine: &mut Machine) {
        let job = &mut self.tasks.relocation.jobs[index as usize];
        job.progress = Progress::Unused;
        let (mover, block, domain) = (job.mover, job.block, job.domain);
        let erased = if mover == Task::Gc && self.tasks.gc.manner == Manner::Untimed {
            // An ideal device wears nothing.
            self.tables.blocks.free(block);
            Erased::Freed
        } else {
            self.tables.end_cycle(now, block)
        };
        self.tables.data_erased(block);
        if erased != Erased::Freed {
            self.note_worn_out(now, erased, machine);
        }
        self.tasks.relocation[mover].domains[domain as usize].jobs -= 1;
        Gc::gained(self, domain);
        self.note_erased(domain, block);
        EccCheck::erased(self, block);
        self.retry_stalled(now, domain, machine);
        self.wake_all(now, machine);
    }

    /// A block is worn out, and retires or has to stay in use.
    #[cold]
    fn note_worn_out(&mut self, now: Time, erased: Erased, machine: &mut Machine) {
        if erased == Erased::Retired {
            machine.counters.retired_blocks += u64::from(self.shape.stripes.width());
        } else {
            machine.schedule(now, DeviceEvent::WornOut);
        }
    }
}
