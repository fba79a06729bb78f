//! The task: when garbage collection starts and stops, and which blocks it
//! empties.

use std::ops::Range;

use flashkeel_engine::{Stream, Time};

use super::movement::Manner;
use super::pace::Stock;
use super::rotation::Order;
use super::victim::Candidates;
use super::{Domain, Gc, GcLayout, VictimConfig};
use crate::address::BlockId;
use crate::ftl::background::Background;
use crate::ftl::{Bits, BlockState, Ftl, PartitionLayout};
use crate::machine::Machine;
use crate::sched::{Activity, Task};

impl Background for Gc {
    const ACTIVITY: Activity = Activity::Gc;
    const EMPTIES_BLOCKS: bool = true;

    fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
        let random = Stream::new(seed, &format!("gc/{index}"));
        let GcLayout { start_below, stop_above, force_below, jobs, manner, order, erases_in_pauses, .. } =
            layout.gc;
        let invocation = &layout.policies.invocation;
        let stock = invocation.policy().looks_ahead().then(|| Stock::new(layout));
        let (start_below, stop_above) =
            stock.map_or((start_below, stop_above), |stock| (stock.at_least, stock.at_least));
        let greedy = VictimConfig::Greedy(Default::default());
        let mut searching = Bits::default();
        searching.grow(layout.domains);
        Gc {
            start_below,
            stop_above,
            force_below,
            invocation: invocation.clone(),
            stock,
            manner,
            order,
            erases_in_pauses,
            turns: vec![0; layout.static_stripes.map_or(0, |stripes| stripes.groups() as usize)],
            gave_way: false,
            victim: layout.policies.victim.policy().build(random.clone()),
            last_resort: (layout.policies.victim != greedy).then(|| greedy.policy().build(random)),
            domains: vec![Domain::default(); layout.domains as usize],
            searching,
            max_jobs: jobs,
        }
    }

    fn is_active(ftl: &Ftl) -> bool {
        ftl.tasks.gc.domains.iter().any(|domain| domain.active) || ftl.tasks.relocation[Task::Gc].jobs() > 0
    }

    /// Free blocks missing to the start threshold, on all chips: what one domain has
    /// more of is of no use to another.
    fn error(ftl: &Ftl) -> u32 {
        // Where collection is not at work there is no error to correct.
        let active = (0..ftl.shape.domains).filter(|&domain| ftl.tasks.gc.domains[domain as usize].active);
        let shortfall = |domain| ftl.tasks.gc.start_below.saturating_sub(ftl.tables.blocks.free_in(domain));
        active.map(shortfall).sum::<u32>() * ftl.shape.stripes.width()
    }

    fn pages_in_flight(layout: &PartitionLayout) -> u32 {
        layout.gc.pages_in_flight
    }

    #[inline]
    fn wants_victim(ftl: &Ftl) -> bool {
        !ftl.tasks.gc.searching.is_empty()
    }

    /// Chooses victims while collection is active and there is room to move
    /// their valid pages.
    fn start_jobs(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let start: fn(&mut Ftl, Time, u32, &mut Machine) -> bool = match ftl.tasks.gc.order {
            Order::InTurn => return Gc::start_in_turn(ftl, now, machine),
            Order::Any => Gc::start_job,
            Order::FewestFree => Gc::start_on_fewest_free,
        };
        let mut next = ftl.tasks.gc.searching.next(0);
        while let Some(domain) = next {
            while start(ftl, now, domain, machine) {}
            next = ftl.tasks.gc.searching.next(domain + 1);
        }
    }

    fn start_again(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        for domain in 0..ftl.shape.domains {
            Gc::check(ftl, now, domain, machine);
        }
    }

    #[inline]
    fn go_on(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if std::mem::take(&mut ftl.tasks.gc.gave_way) {
            ftl.wake(now, Task::Gc, machine);
        }
    }
}

impl Gc {
    /// Free blocks have become fewer in `domain`.
    pub(in crate::ftl) fn check(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) {
        Gc::look_ahead(ftl, machine);
        if Gc::is_short(ftl, domain) && ftl.tasks.gc.invocation.policy().starts_by_itself() {
            Gc::start(ftl, now, domain, machine);
        }
    }

    /// Sets the thresholds by what the host is expected to write, where the invocation
    /// policy goes by that: what an even load needs, and what the next burst brings.
    #[inline]
    fn look_ahead(ftl: &mut Ftl, machine: &Machine) {
        let Some(arrivals) = machine.arrivals(ftl.shape.index) else { return };
        let units = u64::from(ftl.shape.domains) * u64::from(ftl.shape.data_units_per_block());
        let gc = &mut ftl.tasks.gc;
        let Some(stock) = &gc.stock else { return };
        let burst = arrivals.burst_pages().div_ceil(units).min(u64::from(stock.at_most)) as u32;
        let target = (stock.at_least + burst).min(stock.at_most);
        (gc.start_below, gc.stop_above) = (target, target);
    }

    /// Whether free blocks of `domain` are fewer than they have to be, in all or on a chip, or
    /// none for the host.
    fn is_short(ftl: &Ftl, domain: u32) -> bool {
        let free = ftl.tables.blocks.free_in(domain);
        free < ftl.tasks.gc.start_below
            || free <= ftl.tables.left_by_host(domain)
            || Gc::lacks_on_a_chip(ftl, domain)
    }

    /// Starts collection in `domain` if it is not at work.
    pub(in crate::ftl) fn start(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut ftl.tasks.gc.domains[domain as usize];
        if !state.active {
            state.active = true;
            Gc::note_search(ftl, domain);
            machine.wake_control(now);
        }
        if !ftl.background_allowed {
            ftl.heed_window(now, machine);
        }
        ftl.wake(now, Task::Gc, machine);
    }

    /// A block of `domain` has become full: the victim that collection may
    /// have been unable to find.
    pub(in crate::ftl) fn found(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) {
        let state = &mut ftl.tasks.gc.domains[domain as usize];
        state.starved = false;
        Gc::note_search(ftl, domain);
        let state = &ftl.tasks.gc.domains[domain as usize];
        if state.active && ftl.tasks.relocation.jobs_of(Task::Gc, domain) == 0 {
            ftl.wake(now, Task::Gc, machine);
        }
    }

    /// A block of `domain` has become free, whoever emptied it.
    pub(in crate::ftl) fn gained(ftl: &mut Ftl, domain: u32) {
        let blocks = &ftl.tables.blocks;
        let free = blocks.free_in(domain);
        let state = &mut ftl.tasks.gc.domains[domain as usize];
        state.starved = false;
        state.refused = state.refused.filter(|&block| blocks.state(block) == BlockState::Full);
        if free > state.most_free {
            (state.most_free, state.fruitless) = (free, 0);
        }
        let enough = ftl.tasks.gc.stop_above.max(ftl.tables.left_by_host(domain));
        if free > enough && !Gc::lacks_on_a_chip(ftl, domain) {
            ftl.tasks.gc.domains[domain as usize].active = false;
        }
        Gc::note_search(ftl, domain);
    }

    /// Notes whether `domain` would begin to empty another block, after a change of that.
    #[inline]
    pub(in crate::ftl) fn note_search(ftl: &mut Ftl, domain: u32) {
        let gc = &ftl.tasks.gc;
        let Domain { active, starved, .. } = gc.domains[domain as usize];
        let searches = active && !starved && ftl.tasks.relocation.jobs_of(Task::Gc, domain) < gc.max_jobs;
        ftl.tasks.gc.searching.set(domain, searches);
    }

    /// The host has written to `domain`: no victim so far was emptied in vain.
    #[inline]
    pub(in crate::ftl) fn host_wrote(ftl: &mut Ftl, domain: u32) {
        let state = &mut ftl.tasks.gc.domains[domain as usize];
        (state.most_free, state.fruitless) = (ftl.tables.blocks.free_in(domain), 0);
    }

    /// Whether host programs must wait for collection in `domain`; starts it
    /// if a flush has just found free blocks short.
    pub(in crate::ftl) fn holds_host(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) -> bool {
        if let Some(stock) = &ftl.tasks.gc.stock {
            return Gc::paces_host(ftl, domain, stock);
        }
        if !ftl.tasks.gc.invocation.policy().holds_host() {
            return false;
        }
        if Gc::is_short(ftl, domain) {
            Gc::start(ftl, now, domain, machine);
        }
        // What takes no time holds up nobody.
        ftl.tasks.gc.domains[domain as usize].active && ftl.tasks.gc.manner != Manner::Untimed
    }

    /// Whether the host needs collection now.
    #[inline]
    pub fn is_urgent(ftl: &Ftl) -> bool {
        (0..ftl.shape.domains)
            .any(|domain| !ftl.tables.has_spare_block(domain) || ftl.tasks.stalled.holds_host(domain))
    }

    /// Chooses victims so that one chip of each plane group collects at a
    /// time, those first whose turn it is; more where they are forced to.
    fn start_in_turn(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let stripes = ftl.shape.static_stripes.expect("chips of plane groups collect in turn");
        for group in 0..stripes.groups() {
            let mut members = (0..stripes.width()).map(|member| stripes.chip_at(group, member));
            if !members.any(|chip| ftl.tasks.gc.searching.get(chip)) {
                continue;
            }
            let mut members = (0..stripes.width()).map(|member| stripes.chip_at(group, member));
            let mut is_idle = members.all(|chip| ftl.tasks.relocation.jobs_of(Task::Gc, chip) == 0);
            let turn = ftl.tasks.gc.turns[group as usize];
            for step in 0..stripes.width() {
                let member = (turn + step) % stripes.width();
                let chip = stripes.chip_at(group, member);
                if (is_idle || Gc::is_forced(ftl, chip)) && Gc::start_job(ftl, now, chip, machine) {
                    machine.counters.collections_out_of_turn += u64::from(!is_idle);
                    ftl.tasks.gc.turns[group as usize] = (member + 1) % stripes.width();
                    is_idle = false;
                }
            }
        }
    }

    /// Chooses a victim in `domain`, if collection may begin with one there.
    fn start_job(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) -> bool {
        let chips = ftl.shape.stripes.groups() / ftl.shape.domains;
        let chips = domain * chips..(domain + 1) * chips;
        let may = ftl.tasks.gc.searching.get(domain)
            && !(ftl.tasks.gc.invocation.policy().defers() && Gc::gives_way(ftl, domain, chips, machine));
        if !may {
            return false;
        }
        let range = ftl.tables.blocks.domain_range(domain);
        let victim = Gc::choose_victim(ftl, domain, range, machine);
        Gc::begin(ftl, now, domain, victim, machine)
    }

    /// Begins to empty `victim`, if there is one and room for its valid pages.
    fn begin(ftl: &mut Ftl, now: Time, domain: u32, victim: Option<BlockId>, machine: &mut Machine) -> bool {
        let Some(block) = victim.filter(|&block| Gc::has_room(ftl, domain, block)) else {
            let state = &mut ftl.tasks.gc.domains[domain as usize];
            (state.starved, state.refused) = (true, victim);
            Gc::note_search(ftl, domain);
            return false;
        };
        ftl.start_job(now, Task::Gc, domain, block, machine);
        true
    }

    /// Chooses a victim on the chip of `domain` that has the fewest free blocks, of
    /// those that empty none and have one with garbage.
    fn start_on_fewest_free(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) -> bool {
        if !ftl.tasks.gc.searching.get(domain) {
            return false;
        }
        let defers = ftl.tasks.gc.invocation.policy().defers();
        let gc = &ftl.tasks.gc;
        let least = gc.stock.map_or(0, |stock| stock.on_each);
        let any = least == 0 || ftl.tables.blocks.free_in(domain) <= gc.stop_above;
        let mut waits = false;
        let may_collect = |ftl: &mut Ftl, chip: u32| {
            if !any && ftl.tables.blocks.free_on(chip) >= least {
                return false;
            }
            let is_busy = ftl.tasks.relocation.empties_on(Task::Gc, chip, &ftl.tables.blocks);
            let gives_way = !is_busy && defers && Gc::gives_way(ftl, domain, chip..chip + 1, machine);
            waits |= gives_way;
            !(is_busy || gives_way)
        };
        let Some(range) = Gc::blocks_of_fewest_free(ftl, domain, may_collect) else {
            if waits {
                // It goes on when nothing is left to give way to.
                return false;
            }
            ftl.tasks.gc.domains[domain as usize].starved = true;
            Gc::note_search(ftl, domain);
            return false;
        };
        let victim = Gc::choose_victim(ftl, domain, range, machine);
        Gc::begin(ftl, now, domain, victim, machine)
    }

    /// The blocks of the chip of `domain` that has the fewest free ones, of those that
    /// `may_collect` and have a block with garbage; among equals by turn.
    fn blocks_of_fewest_free(
        ftl: &mut Ftl,
        domain: u32,
        mut may_collect: impl FnMut(&mut Ftl, u32) -> bool,
    ) -> Option<Range<usize>> {
        let blocks = ftl.tables.blocks.domain_range(domain);
        let per_chip = ftl.tables.blocks.per_chip() as usize;
        let (chips, first) = (blocks.len() / per_chip, blocks.start / per_chip);
        let turn = ftl.tasks.gc.domains[domain as usize].cursor / per_chip;
        let mut passed_over = None;
        loop {
            let after = |&key: &(usize, usize)| passed_over.is_none_or(|last| key > last);
            let key = |at: usize| (ftl.tables.blocks.free_on((first + (turn + at) % chips) as u32), at);
            let least = (0..chips).map(key).filter(after).min()?;
            passed_over = Some(least);
            let chip = first + (turn + least.1) % chips;
            let range = chip * per_chip..(chip + 1) * per_chip;
            let full = ftl.shape.data_units_per_block();
            if may_collect(ftl, chip as u32)
                && ftl.tables.blocks.keys(range.clone()).iter().any(|&valid| valid < full)
            {
                return Some(range);
            }
        }
    }

    /// The block to empty next where nothing else is being emptied and nobody has to be
    /// waited for.
    pub(in crate::ftl) fn next_victim(ftl: &mut Ftl, domain: u32) -> Option<BlockId> {
        let range = match ftl.tasks.gc.order {
            Order::FewestFree => Gc::blocks_of_fewest_free(ftl, domain, |_, _| true)?,
            Order::Any | Order::InTurn => ftl.tables.blocks.domain_range(domain),
        };
        Gc::pick_victim(ftl, domain, range)
    }

    /// Whether so few blocks are free in `domain` that collection gives way to
    /// nobody.
    fn is_forced(ftl: &Ftl, domain: u32) -> bool {
        ftl.tables.blocks.free_in(domain) < ftl.tasks.gc.force_below || ftl.tasks.stalled.holds_host(domain)
    }

    /// Whether collection gives way to the host's work on a channel of
    /// `chips`, which lie in `domain`; it goes on when a channel has none.
    pub(in crate::ftl) fn gives_way(
        ftl: &mut Ftl,
        domain: u32,
        chips: Range<u32>,
        machine: &Machine,
    ) -> bool {
        if Gc::is_forced(ftl, domain) {
            return false;
        }
        let mut members =
            chips.flat_map(|group| (0..ftl.shape.stripes.width()).map(move |member| (group, member)));
        let gives_way = members
            .any(|(group, member)| machine.dispatcher.host_load(ftl.shape.stripes.member(group, member)) > 0);
        ftl.tasks.gc.gave_way |= gives_way;
        gives_way
    }

    /// Whether a whole round of the blocks of `domain` has been emptied and no
    /// space gained, so that `greedy` chooses instead of the policy asked for:
    /// victims may hold no garbage, or cost as much in map pages as they gain.
    fn is_in_vain(ftl: &Ftl, domain: u32) -> bool {
        let round = ftl.tables.blocks.domain_range(domain).len();
        let gc = &ftl.tasks.gc;
        gc.last_resort.is_some() && gc.domains[domain as usize].fruitless as usize >= round
    }

    /// The block to empty next, of those in `range` of `domain`: the last choice if there was no
    /// room for it, or else a new one.
    fn choose_victim(
        ftl: &mut Ftl,
        domain: u32,
        range: Range<usize>,
        machine: &mut Machine,
    ) -> Option<BlockId> {
        let refused = ftl.tasks.gc.domains[domain as usize].refused.take();
        let is_choice = |block: &BlockId| {
            range.contains(&(block.0 as usize)) && ftl.tables.blocks.state(*block) == BlockState::Full
        };
        if let Some(block) = refused.filter(is_choice) {
            return Some(block);
        }
        let in_vain = Gc::is_in_vain(ftl, domain);
        let block = Gc::pick_victim(ftl, domain, range)?;
        machine.counters.victims += 1;
        machine.counters.victims_by_greedy += u64::from(in_vain);
        Some(block)
    }

    /// A new choice of the block to empty next, of the blocks in `range` of `domain`.
    fn pick_victim(ftl: &mut Ftl, domain: u32, range: Range<usize>) -> Option<BlockId> {
        let in_vain = Gc::is_in_vain(ftl, domain);
        let all = ftl.tables.blocks.domain_range(domain);
        let is_all = range == all;
        let block_size = ftl.shape.data_units_per_block();
        let dead = |range| ftl.tables.blocks.keys(range).iter().filter(|&&valid| valid == 0).count() as u32;
        let state = &mut ftl.tasks.gc.domains[domain as usize];
        let candidates = Candidates {
            valid: ftl.tables.blocks.keys(range.clone()),
            closed: ftl.tables.blocks.closed(range.clone()),
            closes: ftl.tables.blocks.closes(),
            first: range.start,
            losses: ftl.tables.blocks.losses(),
            dead: if is_all { ftl.tables.blocks.dead_in(domain) } else { dead(range.clone()) },
            block_size,
            start: if is_all { state.cursor } else { 0 },
        };
        let policy = match &mut ftl.tasks.gc.last_resort {
            Some(greedy) if in_vain => greedy,
            _ => &mut ftl.tasks.gc.victim,
        };
        let per_chip = ftl.tables.blocks.per_chip() as usize;
        let index = candidates.in_turn(policy.pick(candidates)?, per_chip);
        state.fruitless += 1;
        let chip = (range.start - all.start + index) / per_chip;
        state.cursor = (chip + 1) * per_chip % all.len();
        Some(BlockId((range.start + index) as u32))
    }
}
