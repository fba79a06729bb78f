//! The task: when garbage collection starts and stops, and which blocks it
//! empties.

use flashkeel_engine::{Stream, Time};

use super::victim::Candidates;
use super::{Domain, Gc, GcLayout, VictimConfig};
use crate::address::BlockId;
use crate::ftl::background::Background;
use crate::ftl::{BlockState, Ftl, PartitionLayout};
use crate::machine::Machine;
use crate::sched::{Activity, Task};

impl Background for Gc {
    const ACTIVITY: Activity = Activity::Gc;
    const EMPTIES_BLOCKS: bool = true;

    fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
        let random = Stream::new(seed, &format!("gc/{index}"));
        let GcLayout { start_below, stop_above, force_below, jobs, manner, rotates, .. } = layout.gc;
        let greedy = VictimConfig::Greedy(Default::default());
        Gc {
            start_below,
            stop_above,
            force_below,
            invocation: layout.policies.invocation.clone(),
            manner,
            rotates,
            turns: vec![0; layout.static_stripes.map_or(0, |stripes| stripes.groups() as usize)],
            gave_way: false,
            victim: layout.policies.victim.policy().build(random.clone()),
            last_resort: (layout.policies.victim != greedy).then(|| greedy.policy().build(random)),
            domains: vec![Domain::default(); layout.domains as usize],
            max_jobs: jobs,
        }
    }

    fn is_active(ftl: &Ftl) -> bool {
        ftl.tasks.gc.domains.iter().any(|domain| domain.active) || ftl.tasks.relocation[Task::Gc].jobs() > 0
    }

    /// Free blocks missing to the start threshold, in the domain that is
    /// shortest of them.
    fn error(ftl: &Ftl) -> u32 {
        // Where collection is not at work there is no error to correct.
        let active = (0..ftl.shape.domains).filter(|&domain| ftl.tasks.gc.domains[domain as usize].active);
        let shortfall = |domain| ftl.tasks.gc.start_below.saturating_sub(ftl.tables.blocks.free_in(domain));
        active.map(shortfall).max().unwrap_or(0)
    }

    fn pages_in_flight(layout: &PartitionLayout) -> u32 {
        layout.gc.pages_in_flight
    }

    #[inline]
    fn wants_victim(ftl: &Ftl) -> bool {
        (0..ftl.shape.domains).any(|domain| ftl.gc_wants_victim_in(domain))
    }

    /// Chooses victims while collection is active and there is room to move
    /// their valid pages.
    fn start_jobs(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if ftl.tasks.gc.rotates {
            return ftl.gc_start_in_turn(now, machine);
        }
        for domain in 0..ftl.shape.domains {
            while ftl.gc_start_job(now, domain, machine) {}
        }
    }

    fn start_again(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        for domain in 0..ftl.shape.domains {
            ftl.gc_check(now, domain, machine);
        }
    }

    #[inline]
    fn go_on(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if std::mem::take(&mut ftl.tasks.gc.gave_way) {
            ftl.wake(now, Task::Gc, machine);
        }
    }
}

impl Ftl {
    /// Free blocks have become fewer in `domain`.
    pub(in crate::ftl) fn gc_check(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let short = self.tables.blocks.free_in(domain) < self.tasks.gc.start_below;
        if short && self.tasks.gc.invocation.policy().starts_by_itself() {
            self.gc_start(now, domain, machine);
        }
    }

    /// Starts collection in `domain` if it is not at work.
    pub(in crate::ftl) fn gc_start(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut self.tasks.gc.domains[domain as usize];
        if !state.active {
            state.active = true;
            machine.wake_control(now);
        }
        self.wake(now, Task::Gc, machine);
    }

    /// A block of `domain` has become full: the victim that collection may
    /// have been unable to find.
    pub(in crate::ftl) fn gc_found(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut self.tasks.gc.domains[domain as usize];
        state.starved = false;
        if state.active && self.tasks.relocation.jobs_of(Task::Gc, domain) == 0 {
            self.wake(now, Task::Gc, machine);
        }
    }

    /// A block of `domain` has become free, whoever emptied it.
    pub(in crate::ftl) fn gc_gained(&mut self, domain: u32) {
        let blocks = &self.tables.blocks;
        let free = blocks.free_in(domain);
        let state = &mut self.tasks.gc.domains[domain as usize];
        state.starved = false;
        state.refused = state.refused.filter(|&block| blocks.state(block) == BlockState::Full);
        if free > state.most_free {
            (state.most_free, state.fruitless) = (free, 0);
        }
        if free > self.tasks.gc.stop_above {
            state.active = false;
        }
    }

    /// The host has written to `domain`: no victim so far was emptied in vain.
    #[inline]
    pub(in crate::ftl) fn gc_host_wrote(&mut self, domain: u32) {
        let state = &mut self.tasks.gc.domains[domain as usize];
        (state.most_free, state.fruitless) = (self.tables.blocks.free_in(domain), 0);
    }

    /// Whether host programs must wait for collection in `domain`; starts it
    /// if a flush has just found free blocks short.
    pub(in crate::ftl) fn gc_holds_host(&mut self, now: Time, domain: u32, machine: &mut Machine) -> bool {
        if !self.tasks.gc.invocation.policy().holds_host() {
            return false;
        }
        if self.tables.blocks.free_in(domain) < self.tasks.gc.start_below {
            self.gc_start(now, domain, machine);
        }
        self.tasks.gc.domains[domain as usize].active
    }

    /// Whether the host needs collection now.
    #[inline]
    pub fn gc_is_urgent(&self) -> bool {
        (0..self.shape.domains)
            .any(|domain| !self.tables.has_spare_block(domain) || self.tasks.stalled.holds_host(domain))
    }

    #[inline]
    fn gc_wants_victim_in(&self, domain: u32) -> bool {
        let state = &self.tasks.gc.domains[domain as usize];
        state.active
            && !state.starved
            && self.tasks.relocation.jobs_of(Task::Gc, domain) < self.tasks.gc.max_jobs
    }

    /// Chooses victims so that one chip of each plane group collects at a
    /// time, those first whose turn it is; more where they are forced to.
    fn gc_start_in_turn(&mut self, now: Time, machine: &mut Machine) {
        let stripes = self.shape.static_stripes.expect("chips of plane groups collect in turn");
        for group in 0..stripes.groups() {
            let mut members = (0..stripes.width()).map(|member| stripes.chip_at(group, member));
            let mut is_idle = members.all(|chip| self.tasks.relocation.jobs_of(Task::Gc, chip) == 0);
            let turn = self.tasks.gc.turns[group as usize];
            for step in 0..stripes.width() {
                let member = (turn + step) % stripes.width();
                let chip = stripes.chip_at(group, member);
                if (is_idle || self.gc_is_forced(chip)) && self.gc_start_job(now, chip, machine) {
                    machine.counters.collections_out_of_turn += u64::from(!is_idle);
                    self.tasks.gc.turns[group as usize] = (member + 1) % stripes.width();
                    is_idle = false;
                }
            }
        }
    }

    /// Chooses a victim in `domain`, if collection may begin with one there.
    fn gc_start_job(&mut self, now: Time, domain: u32, machine: &mut Machine) -> bool {
        let may = self.gc_wants_victim_in(domain)
            && !(self.tasks.gc.invocation.policy().defers() && self.gc_gives_way(domain, machine));
        if !may {
            return false;
        }
        let victim = self.gc_choose_victim(domain, machine);
        let Some(block) = victim.filter(|&block| self.gc_has_room(domain, block)) else {
            let state = &mut self.tasks.gc.domains[domain as usize];
            (state.starved, state.refused) = (true, victim);
            return false;
        };
        self.start_job(now, Task::Gc, domain, block, machine);
        true
    }

    /// Whether so few blocks are free in `domain` that collection gives way to
    /// nobody.
    fn gc_is_forced(&self, domain: u32) -> bool {
        self.tables.blocks.free_in(domain) < self.tasks.gc.force_below
            || self.tasks.stalled.holds_host(domain)
    }

    /// Whether collection gives way to the host's work on a channel of
    /// `domain`; it goes on when a channel has none.
    pub(in crate::ftl) fn gc_gives_way(&mut self, domain: u32, machine: &Machine) -> bool {
        if self.gc_is_forced(domain) {
            return false;
        }
        let chips = self.shape.stripes.groups() / self.shape.domains;
        let mut members = (domain * chips..(domain + 1) * chips)
            .flat_map(|group| (0..self.shape.stripes.width()).map(move |member| (group, member)));
        let gives_way = members.any(|(group, member)| {
            machine.dispatcher.host_load(self.shape.stripes.member(group, member)) > 0
        });
        self.tasks.gc.gave_way |= gives_way;
        gives_way
    }

    /// Whether a whole round of the blocks of `domain` has been emptied and no
    /// space gained, so that `greedy` chooses instead of the policy asked for:
    /// victims may hold no garbage, or cost as much in map pages as they gain.
    fn gc_is_in_vain(&self, domain: u32) -> bool {
        let round = self.tables.blocks.domain_range(domain).len();
        let gc = &self.tasks.gc;
        gc.last_resort.is_some() && gc.domains[domain as usize].fruitless as usize >= round
    }

    /// The block to empty next: the last choice if there was no room for it, or
    /// else a new one.
    fn gc_choose_victim(&mut self, domain: u32, machine: &mut Machine) -> Option<BlockId> {
        let refused = self.tasks.gc.domains[domain as usize].refused.take();
        if let Some(block) = refused.filter(|&block| self.tables.blocks.state(block) == BlockState::Full) {
            return Some(block);
        }
        let in_vain = self.gc_is_in_vain(domain);
        let block = self.gc_pick_victim(domain)?;
        machine.counters.victims += 1;
        machine.counters.victims_by_greedy += u64::from(in_vain);
        Some(block)
    }

    /// A new choice of the block to empty next.
    pub(in crate::ftl) fn gc_pick_victim(&mut self, domain: u32) -> Option<BlockId> {
        let in_vain = self.gc_is_in_vain(domain);
        let range = self.tables.blocks.domain_range(domain);
        let block_size = self.shape.data_units_per_block();
        let state = &mut self.tasks.gc.domains[domain as usize];
        let candidates = Candidates {
            valid: self.tables.blocks.keys(range.clone()),
            closed: self.tables.blocks.closed(range.clone()),
            closes: self.tables.blocks.closes(),
            losses: self.tables.blocks.losses(),
            dead: self.tables.blocks.dead_in(domain),
            block_size,
            start: state.cursor,
        };
        let policy = match &mut self.tasks.gc.last_resort {
            Some(greedy) if in_vain => greedy,
            _ => &mut self.tasks.gc.victim,
        };
        let index = policy.pick(candidates)?;
        state.fruitless += 1;
        let per_chip = self.tables.blocks.per_chip() as usize;
        state.cursor = (index / per_chip + 1) * per_chip % range.len();
        Some(BlockId((range.start + index) as u32))
    }
}
