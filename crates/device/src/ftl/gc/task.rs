//! The task: when garbage collection starts and stops, and which blocks it
//! empties.

use flashkeel_engine::Time;

use super::victim::Candidates;
use crate::address::BlockId;
use crate::ftl::{Ftl, Mover};
use crate::machine::Machine;

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
        self.wake(now, Mover::Gc, machine);
    }

    /// A block of `domain` has become full: the victim that collection may
    /// have been unable to find.
    pub(in crate::ftl) fn gc_found(&mut self, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut self.gc.domains[domain as usize];
        state.starved = false;
        if state.active && self.relocation.jobs_of(Mover::Gc, domain) == 0 {
            self.wake(now, Mover::Gc, machine);
        }
    }

    /// A block of `domain` has become free, whoever emptied it.
    pub(in crate::ftl) fn gc_gained(&mut self, domain: u32) {
        let state = &mut self.gc.domains[domain as usize];
        state.starved = false;
        if self.blocks.free_in(domain) > self.gc.stop_above {
            state.active = false;
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

    /// Whether collection is at work.
    pub(in crate::ftl) fn gc_is_active(&self) -> bool {
        self.gc.domains.iter().any(|domain| domain.active) || self.relocation[Mover::Gc].jobs() > 0
    }

    /// Free blocks missing to the start threshold, in the domain that is
    /// shortest of them.
    pub(in crate::ftl) fn gc_shortfall(&self) -> u32 {
        // Where collection is not at work there is no error to correct.
        let active = (0..self.domains).filter(|&domain| self.gc.domains[domain as usize].active);
        let shortfall = |domain| self.gc.start_below.saturating_sub(self.blocks.free_in(domain));
        active.map(shortfall).max().unwrap_or(0)
    }

    /// Whether the host needs collection now.
    #[inline]
    pub(in crate::ftl) fn gc_is_urgent(&self) -> bool {
        (0..self.domains)
            .any(|domain| !self.has_spare_block(domain) || !self.stalled_host[domain as usize].is_empty())
    }

    /// Whether another block is to be emptied.
    #[inline]
    pub(in crate::ftl) fn gc_wants_victim(&self) -> bool {
        (0..self.domains).any(|domain| self.gc_wants_victim_in(domain))
    }

    #[inline]
    fn gc_wants_victim_in(&self, domain: u32) -> bool {
        let state = &self.gc.domains[domain as usize];
        state.active && !state.starved && self.relocation.jobs_of(Mover::Gc, domain) < self.gc.max_jobs
    }

    /// Chooses victims while collection is active and there is room to move
    /// their valid pages.
    pub(in crate::ftl) fn gc_start_jobs(&mut self, now: Time, machine: &mut Machine) {
        for domain in 0..self.domains {
            while self.gc_wants_victim_in(domain) {
                let victim = self.gc_pick_victim(domain).filter(|&block| self.gc_has_room(domain, block));
                let Some(block) = victim else {
                    self.gc.domains[domain as usize].starved = true;
                    break;
                };
                self.gc.domains[domain as usize].fruitless += 1;
                self.start_job(now, Mover::Gc, domain, block, machine);
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
}
