//! The task: generates one operation after another, each after a delay, and
//! reacts to their completion. Erases come first, because they free space,
//! then programs, because they free memory, then reads.

use flashkeel_engine::{Cause, Time};

use super::job::{Job, Progress};
use super::victim::Candidates;
use crate::address::{BlockId, NONE, Ppn};
use crate::ftl::{Entry, Ftl, Writer};
use crate::machine::{Event, Machine};
use crate::sched::{Operation, Purpose, Signals, Task};

impl Ftl {
    /// Free blocks have become fewer in `domain`.
    pub(in crate::ftl) fn gc_check(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let short = self.blocks.free_in(domain) < self.gc.start_below;
        if short && self.gc.invocation.policy().starts_by_itself() {
            self.gc_start(now, domain, machine);
        }
    }

    /// Starts collection in `domain` if it is not at work.
    pub(in crate::ftl) fn gc_start(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut self.gc.domains[domain as usize];
        if !state.active {
            state.active = true;
            machine.wake_control(now);
        }
        self.gc_wake(now, machine);
    }

    /// A block of `domain` has become full: the victim that collection may
    /// have been unable to find.
    pub(in crate::ftl) fn gc_found(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut self.gc.domains[domain as usize];
        state.starved = false;
        if state.active && state.jobs == 0 {
            self.gc_wake(now, machine);
        }
    }

    /// Whether host programs must wait for collection in `domain`; starts it
    /// if a flush has just found free blocks short.
    pub(in crate::ftl) fn gc_holds_host(&mut self, now: Time, domain: u32, machine: &mut Machine) -> bool {
        if !self.gc.invocation.policy().holds_host() {
            return false;
        }
        if self.blocks.free_in(domain) < self.gc.start_below {
            self.gc_start(now, domain, machine);
        }
        self.gc.domains[domain as usize].active
    }

    /// What the share controller wants to know.
    pub fn signals(&self) -> Signals {
        // Where collection is not at work there is no error to correct.
        let active = (0..self.domains).filter(|&domain| self.gc.domains[domain as usize].active);
        let shortfall = |domain| self.gc.start_below.saturating_sub(self.blocks.free_in(domain));
        Signals {
            gc_active: self.gc.domains.iter().any(|domain| domain.active || domain.jobs > 0),
            free_block_shortfall: active.map(shortfall).max().unwrap_or(0),
            host_stalled: self.stalled_host.iter().any(|stalled| !stalled.is_empty()),
        }
    }

    /// Makes sure that the next operation is generated, if there is one.
    #[inline]
    pub fn gc_wake(&mut self, now: Time, machine: &mut Machine) {
        if !self.gc.ticking && self.gc_has_work() && self.gc_is_allowed(machine) {
            self.gc.ticking = true;
            let delay = machine.controller.background_generation.draw(&mut machine.random);
            machine.schedule(now + delay, Event::Gc(u32::from(self.index)));
        }
    }

    /// Whether the present window lets collection run, or the host needs it
    /// to run whatever the window.
    #[inline]
    fn gc_is_allowed(&self, machine: &Machine) -> bool {
        let urgent = |domain| {
            self.blocks.free_in(domain) <= self.points.reserves().host
                || !self.stalled_host[domain as usize].is_empty()
        };
        machine.background_allowed || (0..self.domains).any(urgent)
    }

    /// Whether an operation could be generated, or a victim chosen, now.
    #[inline]
    fn gc_has_work(&self) -> bool {
        let gc = &self.gc;
        if !gc.erasable.is_empty() {
            return true;
        }
        let may_read = gc.moving + self.slots_per_page <= gc.max_moving && gc.unread_jobs > 0;
        let mut staged = 0;
        for domain in &gc.domains {
            staged += domain.staged.len;
            if domain.staged.len >= self.slots_per_page || domain.wants_victim(gc.max_jobs) {
                return true;
            }
        }
        // With nothing else on its way, a part of a page goes out alone.
        may_read || (staged > 0 && staged == gc.moving)
    }

    /// Generates the next operation, if there is one.
    pub fn gc_tick(&mut self, now: Time, machine: &mut Machine) {
        self.gc.ticking = false;
        if !self.gc_is_allowed(machine) {
            return;
        }
        for domain in 0..self.domains {
            self.gc_start_jobs(now, domain, machine);
        }
        // Part of a page is programmed only if nothing more will come to fill it.
        let generated = self.gc_erase(now, machine)
            || self.gc_program(now, machine, false)
            || self.gc_read(now, machine)
            || self.gc_program(now, machine, true);
        if generated {
            self.gc_wake(now, machine);
        }
    }

    /// Chooses victims while collection is active and there is room to move
    /// their valid pages.
    fn gc_start_jobs(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        while self.gc.domains[domain as usize].wants_victim(self.gc.max_jobs) {
            let victim = self.gc_pick_victim(domain).filter(|&block| self.gc_has_room(domain, block));
            let Some(block) = victim else {
                self.gc.domains[domain as usize].starved = true;
                return;
            };
            self.blocks.choose(block);
            let job = Job {
                progress: Progress::Moving,
                block,
                domain,
                next_page: 0,
                reads: 0,
                erases: 0,
                copies: 0,
            };
            let unused = self.gc.jobs.iter().position(|job| job.progress == Progress::Unused);
            let index = unused.unwrap_or(self.gc.jobs.len());
            if unused.is_some() {
                self.gc.jobs[index] = job;
            } else {
                self.gc.jobs.push(job);
            }
            let state = &mut self.gc.domains[domain as usize];
            state.jobs += 1;
            state.fruitless += 1;
            self.gc.unread_jobs += 1;
            if self.blocks.valid(block) == 0 {
                self.gc.jobs[index].next_page = self.pages_per_block;
                self.gc.unread_jobs -= 1;
                self.gc_check_job(now, index as u32, machine);
            }
        }
    }

    /// The block to empty next.
    pub(in crate::ftl) fn gc_pick_victim(&mut self, domain: u32) -> Option<BlockId> {
        let range = self.blocks.domain_range(domain);
        let block_size = self.data_slots_per_block();
        let state = &mut self.gc.domains[domain as usize];
        let candidates = Candidates {
            valid: self.blocks.keys(range.clone()),
            closed: self.blocks.closed(range.clone()),
            closes: self.blocks.closes(),
            losses: self.blocks.losses(),
            block_size,
            start: state.cursor,
        };
        // Policies that move blocks full of valid pages can cost as much space
        // in map pages as they gain.
        let in_vain = state.fruitless as usize > range.len();
        let desperate = in_vain || self.blocks.free_in(domain) <= self.points.reserves().host;
        let policy = if desperate { &mut self.gc.last_resort } else { &mut self.gc.victim };
        let index = policy.pick(candidates)?;
        let per_chip = self.blocks.per_chip() as usize;
        state.cursor = (index / per_chip + 1) * per_chip % range.len();
        Some(BlockId((range.start + index) as u32))
    }

    /// Flash pages that moving `slots` mapping units takes, parity included.
    fn gc_pages_for(&self, slots: u32) -> u32 {
        self.stripes.with_parity(slots.div_ceil(self.slots_per_page))
    }

    /// Flash pages that the blocks being emptied may still need: their valid
    /// pages, staged ones that have become garbage, and one for each that may
    /// have to be programmed part empty.
    fn gc_needs(&self, domain: u32) -> u32 {
        let pages = |slots: u32| self.gc_pages_for(slots);
        let moving =
            self.gc.jobs.iter().filter(|job| job.progress != Progress::Unused && job.domain == domain);
        let valid: u32 = moving.map(|job| pages(self.blocks.valid(job.block)) + 1).sum();
        valid + pages(self.gc.domains[domain as usize].staged.len)
    }

    /// Free blocks that map pages must leave in `domain`, so that the blocks
    /// being emptied can be.
    pub(in crate::ftl) fn gc_claim(&self, domain: u32) -> u32 {
        // Each needs a block at most, and is not looked at while there are many.
        let (jobs, least) = (self.gc.domains[domain as usize].jobs, self.points.reserves().map);
        if jobs == 0 || self.blocks.free_in(domain) > jobs + least {
            return least;
        }
        let missing = self.gc_needs(domain).saturating_sub(self.points.room(Writer::Gc, domain));
        missing.div_ceil(self.pages_per_block).max(least)
    }

    /// Whether the valid pages of `block` and of the blocks being emptied fit
    /// into what the other writers leave. Alone, one block always fits into
    /// the one free block that nobody else may open.
    fn gc_has_room(&self, domain: u32, block: BlockId) -> bool {
        let open = self.points.room(Writer::Gc, domain);
        let free = self.blocks.free_in(domain);
        let pages = |valid: u32| self.gc_pages_for(valid);
        if self.gc.domains[domain as usize].jobs == 0 {
            return pages(self.blocks.valid(block)) <= open + free.min(1) * self.pages_per_block;
        }
        let reserves = self.points.reserves();
        let spare = free.min(reserves.host).saturating_sub(reserves.map_margin);
        self.gc_needs(domain) + pages(self.blocks.valid(block)) < open + spare * self.pages_per_block
    }

    /// Erases an emptied block, on one chip of its group after the other, so
    /// that the other chips can stand in for the one that is busy.
    fn gc_erase(&mut self, now: Time, machine: &mut Machine) -> bool {
        let Some(index) = self.gc.erasable.pop_front() else { return false };
        let job = &mut self.gc.jobs[index as usize];
        let block = job.block;
        let operations = &mut machine.dispatcher.operations;
        let id = operations.create(now, Purpose::Erase, Task::Gc, self.index, Cause::Controller);
        let operation = &mut operations[id];
        operation.chip = self.stripes.member(self.blocks.chip(block), job.erases);
        operation.target = block.0;
        operation.owner = index;
        job.erases += 1;
        machine.enqueue(now, id);
        true
    }

    /// Programs a page of moved data; part of a page only if nothing that is
    /// on its way can fill it.
    fn gc_program(&mut self, now: Time, machine: &mut Machine, partial: bool) -> bool {
        for domain in 0..self.domains {
            let staged = self.gc.domains[domain as usize].staged.len;
            let count = staged.min(self.slots_per_page);
            let enough =
                count == self.slots_per_page || (partial && count > 0 && !self.gc_expects_data(domain));
            if !enough {
                continue;
            }
            if self.blocks.free_in(domain) == 0 && self.points.room(Writer::Gc, domain) == 0 {
                continue;
            }
            let mut lane = self.gc.domains[domain as usize].staged;
            let id = self.form(now, &mut lane, count, Purpose::GcProgram, domain, machine);
            self.gc.domains[domain as usize].staged = lane;
            let placed = self.try_place(now, id, machine);
            assert!(placed, "garbage collection has an open block or a free one");
            return true;
        }
        false
    }

    /// Whether more valid pages of `domain` will be staged.
    fn gc_expects_data(&self, domain: u32) -> bool {
        self.gc.jobs.iter().any(|job| {
            job.progress == Progress::Moving
                && job.domain == domain
                && (job.reads > 0 || job.next_page < self.pages_per_block)
        })
    }

    /// Generates the next read, taking turns among the blocks being emptied.
    fn gc_read(&mut self, now: Time, machine: &mut Machine) -> bool {
        let jobs = self.gc.jobs.len();
        for step in 0..jobs {
            if self.gc.moving + self.slots_per_page > self.gc.max_moving {
                return false;
            }
            let index = (self.gc.turn + step) % jobs;
            if self.gc.jobs[index].progress != Progress::Moving {
                continue;
            }
            let Some((page, valid)) = self.gc_next_page(index) else {
                self.gc_check_job(now, index as u32, machine);
                continue;
            };
            let block = self.gc.jobs[index].block;
            self.gc.turn = index + 1;
            self.gc.jobs[index].reads += 1;
            self.gc.moving += valid;
            self.blocks.begin_read(block);
            let id = machine.dispatcher.operations.create(
                now,
                Purpose::GcRead,
                Task::Gc,
                self.index,
                Cause::Controller,
            );
            let operation = &mut machine.dispatcher.operations[id];
            self.aim(operation, block.0 * self.pages_per_block + page);
            operation.slots = valid as u16;
            operation.owner = index as u32;
            machine.enqueue(now, id);
            return true;
        }
        false
    }

    /// The job's next page with valid data, and how many 4 KiB pages are.
    fn gc_next_page(&mut self, index: usize) -> Option<(u32, u32)> {
        let job = &mut self.gc.jobs[index];
        while job.next_page < self.pages_per_block {
            let page = job.next_page;
            job.next_page += 1;
            let first = Ppn((job.block.0 * self.pages_per_block + page) * self.slots_per_page);
            let valid = self.map.valid_run(first, self.slots_per_page).count_ones();
            if job.next_page == self.pages_per_block {
                self.gc.unread_jobs -= 1;
            }
            if valid > 0 {
                self.map.prefetch_held(first);
                return Some((page, valid));
            }
        }
        None
    }

    /// A page of a victim has been read: what is still valid is staged.
    pub fn gc_read_done(&mut self, now: Time, operation: &Operation, machine: &mut Machine) {
        let index = operation.owner;
        let first = Ppn(operation.target * self.slots_per_page);
        let job = &mut self.gc.jobs[index as usize];
        job.reads -= 1;
        self.gc.moving -= u32::from(operation.slots);
        let lane = &mut self.gc.domains[job.domain as usize].staged;
        let mut valid = self.map.valid_run(first, self.slots_per_page);
        while valid != 0 {
            let ppn = Ppn(first.0 + valid.trailing_zeros());
            valid &= valid - 1;
            let entry = Entry::new(self.map.holds(ppn), crate::address::Home(ppn.0), index, 0, now);
            self.entries.push(lane, entry, None);
            job.copies += 1;
            self.gc.moving += 1;
        }
        self.read_done(now, operation, machine);
        self.gc_check_job(now, index, machine);
        self.gc_wake(now, machine);
    }

    /// One moved page has its new home settled, map included.
    pub(in crate::ftl) fn gc_copy_done(&mut self, now: Time, job: u32, machine: &mut Machine) {
        self.gc.jobs[job as usize].copies -= 1;
        self.gc_check_job(now, job, machine);
    }

    /// The last read of a victim on its way is done.
    pub(in crate::ftl) fn gc_readers_gone(&mut self, now: Time, block: BlockId, machine: &mut Machine) {
        let waits = |job: &Job| job.block == block && job.progress == Progress::AwaitingReaders;
        if let Some(index) = self.gc.jobs.iter().position(waits) {
            self.gc_make_erasable(now, index as u32, machine);
        }
    }

    fn gc_check_job(&mut self, now: Time, index: u32, machine: &mut Machine) {
        let job = &mut self.gc.jobs[index as usize];
        if job.progress != Progress::Moving || !job.is_emptied(self.pages_per_block) {
            return;
        }
        debug_assert_eq!(self.blocks.valid(job.block), 0, "an emptied block holds valid pages");
        if self.blocks.is_read(job.block) {
            job.progress = Progress::AwaitingReaders;
        } else {
            self.gc_make_erasable(now, index, machine);
        }
    }

    fn gc_make_erasable(&mut self, now: Time, index: u32, machine: &mut Machine) {
        self.gc.jobs[index as usize].progress = Progress::Erasing;
        self.gc.erasable.push_back(index);
        self.gc_wake(now, machine);
    }

    /// A block has been erased.
    pub fn gc_erase_done(&mut self, now: Time, operation: &Operation, machine: &mut Machine) {
        debug_assert_ne!(operation.owner, NONE);
        let job = &mut self.gc.jobs[operation.owner as usize];
        if job.erases < self.stripes.width() {
            return self.gc_make_erasable(now, operation.owner, machine);
        }
        job.progress = Progress::Unused;
        let (block, domain) = (job.block, job.domain);
        self.blocks.free(block);
        if let Some(wear) = &mut self.wear {
            wear.erased(now, block.0);
        }
        let state = &mut self.gc.domains[domain as usize];
        state.jobs -= 1;
        state.starved = false;
        if self.blocks.free_in(domain) > self.gc.stop_above {
            state.active = false;
        }
        self.retry_stalled(now, domain, machine);
        self.gc_wake(now, machine);
    }
}
