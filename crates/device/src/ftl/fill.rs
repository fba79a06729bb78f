//! Preconditioning: bringing the device to its steady state without timing.
//!
//! The same map, block states, write points and victim policy as in a run,
//! but a program takes effect at once: tens of millions of pages a second.

use std::ops::ControlFlow;

use flashkeel_engine::{Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gc::Gc;
use super::{Ftl, Map, StaticStripes, Tables};
use crate::address::{BlockId, Home, Lpn, Ppn};
use crate::sched::Task;

/// What the device has been through before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FillPattern {
    /// Nothing: fresh from the factory.
    None,
    /// Written once from the first to the last address.
    Sequential,
    /// Written once, then at random until write amplification has converged.
    #[default]
    Random,
}

/// How the device is brought to its initial state (SNIA PTS: purge, then
/// precondition to the steady state).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PreconditionConfig {
    /// What is written.
    pub pattern: FillPattern,
    /// Fraction of the logical capacity that is written.
    pub fill: f64,
    /// Every written block starts with a random read count below this; below
    /// `scrub.start_above` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_counts_below: Option<u32>,
    /// Seed of this state, if runs with different seeds are to start from the
    /// same one; the run's own if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Default for PreconditionConfig {
    /// AutoSSD, "Workload and Test Settings"; counts end at the scrubbing threshold.
    fn default() -> Self {
        PreconditionConfig { pattern: FillPattern::Random, fill: 1.0, read_counts_below: None, seed: None }
    }
}

impl PreconditionConfig {
    /// The seed that preconditioning draws from in a run with `seed`.
    pub fn seed_in(&self, seed: u64) -> u64 {
        self.seed.unwrap_or(seed)
    }
}

/// What precedes the run, in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precondition {
    /// Logical pages of each partition that are written.
    pages: u64,
    /// Whether they are written at random after that.
    at_random: bool,
    /// Every written block starts with a random read count below this.
    read_counts_below: u32,
    /// The seed of this state, if it has one of its own.
    pub seed: Option<u64>,
}

impl Precondition {
    /// Resolves a configuration for partitions of `lpns` logical pages, with blocks scrubbed
    /// above `scrubbed_above` reads; `None` where it asks for nothing.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn resolve(
        config: &PreconditionConfig,
        lpns: u64,
        scrubbed_above: u32,
    ) -> Result<Option<Precondition>, String> {
        let &PreconditionConfig { pattern, fill, read_counts_below, seed } = config;
        if !(fill > 0.0 && fill <= 1.0) {
            return Err(format!("precondition.fill is {fill}; it must be above 0 and at most 1"));
        }
        let pages = ((lpns as f64 * fill) as u64).max(1);
        let at_random = pattern == FillPattern::Random;
        Ok((pattern != FillPattern::None).then_some(Precondition {
            pages,
            at_random,
            read_counts_below: read_counts_below.unwrap_or(scrubbed_above),
            seed,
        }))
    }

    /// About how many pages are written, by the host and by collection, in
    /// `partitions` with so many mapping units in all.
    pub fn expected_pages(&self, partitions: u64, units: u64) -> f64 {
        let filled = (self.pages * partitions) as f64;
        if !self.at_random {
            return filled;
        }
        // Under uniform random writes blocks hold between their fewest valid
        // pages and all of them, evenly spread around the mean utilisation.
        let spare = 1.0 - filled / units as f64;
        // Filled once, then typically twice.
        filled * (1.0 + 2.0 / (2.0 * spare).min(1.0))
    }
}

/// What preconditioning came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// 4 KiB pages written, as a host would have.
    pub host_pages: u64,
    /// Write amplification of the last round of random writes; 1 where there
    /// was none.
    pub write_amplification: f64,
}

/// Random writes per round, as a divisor of the filled pages.
const ROUND_DIVISOR: u64 = 4;
/// Rounds compared to judge convergence.
const ROUNDS_COMPARED: usize = 4;
/// Most rounds: six times the filled capacity.
const ROUNDS_MOST: usize = 24;
/// Converged when the largest of the compared rounds' write amplification is
/// within this factor of the smallest.
const CONVERGED_WITHIN: f64 = 1.01;
/// Pages whose map entries are fetched ahead of their use.
const AHEAD: usize = 32;

pub(super) struct Untimed<'a> {
    pub ftl: &'a mut Ftl,
    /// By domain, logical pages of the host about to be programmed together.
    /// None has a home.
    forming: Vec<Vec<Lpn>>,
    /// The same for pages of the block being emptied.
    moving: Vec<Lpn>,
    programs: u64,
    erases: u64,
    /// The time as far as wear is concerned; before the run there is none.
    pub now: Option<Time>,
}

impl Ftl {
    /// Brings an empty partition to the state that was asked for. `progress` is
    /// told the pages written, host's and moved; where it breaks off the partition
    /// is of no use any more.
    pub fn precondition(
        &mut self,
        wanted: &Precondition,
        random: &mut Stream,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<(), SteadyState> {
        let &Precondition { pages: filled, at_random, read_counts_below, .. } = wanted;
        let mut untimed = Untimed::new(self);
        untimed.write_map_pages();
        let mut reported = 0;
        let mut report = |programs: u64, ftl: &Ftl| {
            let pages = programs * u64::from(ftl.shape.units_per_page);
            let new = pages - reported;
            reported = pages;
            progress(new)
        };
        for lpn in 0..filled {
            untimed.write(Lpn(lpn as u32));
            let is_last = |stripes: &StaticStripes| stripes.is_last(Lpn(lpn as u32)) || lpn + 1 == filled;
            if untimed.ftl.shape.static_stripes.as_ref().is_some_and(is_last) {
                untimed.write_parity_page(Lpn(lpn as u32));
            }
            if lpn % (1 << 20) == 0 {
                report(untimed.programs, untimed.ftl)?;
            }
        }
        let mut rounds: Vec<Round> = Vec::new();
        while at_random && rounds.len() < ROUNDS_MOST && !has_converged(&rounds) {
            let (before, erases) = (untimed.programs, untimed.erases);
            let pages = (filled / ROUND_DIVISOR).max(1);
            let mut left = pages;
            while left > 0 {
                let batch = left.min(1 << 20);
                untimed.write_at_random(batch, filled, random);
                report(untimed.programs, untimed.ftl)?;
                left -= batch;
            }
            let programmed = (untimed.programs - before) * u64::from(untimed.ftl.shape.units_per_page);
            let write_amplification = programmed as f64 / pages as f64;
            rounds.push(Round { write_amplification, has_erased: untimed.erases > erases });
        }
        untimed.drain();
        if at_random {
            self.tables.warm_map_cache(random);
        }
        if read_counts_below > 0 {
            self.tables.blocks.randomise_read_counts(read_counts_below, random);
        }
        let host_pages = filled + rounds.len() as u64 * (filled / ROUND_DIVISOR).max(1);
        let write_amplification = rounds.last().map_or(1.0, |round| round.write_amplification);
        ControlFlow::Continue(SteadyState { host_pages, write_amplification })
    }
}

/// A round of random writes.
struct Round {
    write_amplification: f64,
    has_erased: bool,
}

fn has_converged(rounds: &[Round]) -> bool {
    let Some(last) = rounds.len().checked_sub(ROUNDS_COMPARED).map(|first| &rounds[first..]) else {
        return false;
    };
    let each = last.iter().map(|round| round.write_amplification);
    let (least, most) = each.fold((f64::MAX, 0.0f64), |(a, b), w| (a.min(w), b.max(w)));
    // While free space lasts nothing is amplified but by parity; that is not the steady state.
    most <= least * CONVERGED_WITHIN && least > 1.0 && last.iter().all(|round| round.has_erased)
}

impl<'a> Untimed<'a> {
    pub fn new(ftl: &'a mut Ftl) -> Self {
        let forming = vec![Vec::new(); ftl.shape.domains as usize];
        Untimed { ftl, forming, moving: Vec::new(), programs: 0, erases: 0, now: None }
    }

    /// Places the map itself in flash, where it has a place there.
    fn write_map_pages(&mut self) {
        if self.ftl.shape.map_in_flash {
            for lpn in self.ftl.shape.lpns..self.ftl.tables.map.lpns() {
                self.write(Lpn(lpn));
            }
        }
    }

    fn write_at_random(&mut self, count: u64, span: u64, random: &mut Stream) {
        // A page's map entry is fetched when it is drawn, the validity of what
        // that points at some pages later, and both are at hand when it is
        // written: one page of each at a time, so that memory is never idle.
        let mut drawn = [Lpn(0); 2 * AHEAD];
        let at = |index: u64| (index % (2 * AHEAD as u64)) as usize;
        let ahead = AHEAD as u64;
        for index in 0..count + 2 * ahead {
            if let Some(ready) = index.checked_sub(2 * ahead) {
                self.write(drawn[at(ready)]);
                self.write_parity(drawn[at(ready)]);
            }
            if index < count {
                let lpn = Lpn(random.below(span) as u32);
                self.ftl.tables.map.prefetch(lpn);
                drawn[at(index)] = lpn;
            }
            if (ahead..count + ahead).contains(&index) {
                self.ftl.tables.map.prefetch_validity(drawn[at(index - ahead)]);
            }
        }
    }

    /// Writes one page of the host.
    #[inline]
    pub fn write(&mut self, lpn: Lpn) {
        // The former copy is garbage at once; the page has no home until its
        // flash page is full.
        self.ftl.tables.move_home(lpn, Home::UNMAPPED);
        let domain = self.ftl.shape.domain_of(lpn);
        let forming = &mut self.forming[domain as usize];
        forming.push(lpn);
        if forming.len() == self.ftl.shape.units_per_page as usize {
            self.program_host(domain);
            self.collect(domain);
        }
    }

    /// Writes the parity page of a stripe whose last page `lpn` is.
    fn write_parity_page(&mut self, lpn: Lpn) {
        let Some(stripes) = self.ftl.shape.static_stripes else { return };
        let stripe = stripes.stripe_of(lpn);
        let units = (lpn.0 + 1 - stripes.data(stripe).start).min(self.ftl.shape.units_per_page);
        for unit in 0..units {
            self.write(stripes.parity(stripe, unit));
        }
    }

    /// Writes the parity that covers `lpn`.
    #[inline]
    pub fn write_parity(&mut self, lpn: Lpn) {
        if let Some(stripes) = self.ftl.shape.static_stripes {
            self.write(stripes.parity(stripes.stripe_of(lpn), stripes.unit_of(lpn)));
        }
    }

    /// Programs what the host has written in `domain`.
    fn program_host(&mut self, domain: u32) {
        let mut forming = std::mem::take(&mut self.forming[domain as usize]);
        // A page that was written twice since it began to form has a home by
        // its first copy.
        self.program(Task::Host, domain, &forming, |map, lpn| map.home(lpn) == Home::UNMAPPED);
        forming.clear();
        self.forming[domain as usize] = forming;
    }

    /// Programs a flash page with `lpns`; those that are `current` are valid.
    #[inline]
    fn program(&mut self, writer: Task, domain: u32, lpns: &[Lpn], current: impl Fn(&Map, Lpn) -> bool) {
        let keep = match self.ftl.choose_block(domain, writer) {
            Some(_) => u32::MAX,
            None => self.ftl.tables.points.reserves().of(writer),
        };
        let Tables { shape, points, blocks, map, .. } = &mut self.ftl.tables;
        let place = points.allocate(writer, domain, keep, blocks, |_| 0);
        let place = place.expect("a validated device never runs out of free blocks here");
        let first = shape.first_unit(shape.page_of(place.block, place.page)).0;
        let mut valid = 0u64;
        for (unit, &lpn) in lpns.iter().enumerate() {
            if current(map, lpn) {
                map.settle(lpn, Ppn(first + unit as u32));
                valid |= 1 << unit;
            }
        }
        map.set_valid_run(Ppn(first), valid);
        blocks.gain(place.block, valid.count_ones());
        self.programmed(writer, place.chip, place.block);
        if self.ftl.shape.stripes.is_parity(place.page + 1) {
            self.ftl.tables.points.skip(writer, &mut self.ftl.tables.blocks, place.block);
            self.programmed(writer, place.chip, place.block);
        }
    }

    #[inline]
    fn programmed(&mut self, writer: Task, chip: u32, block: BlockId) {
        let exhausted = self.ftl.tables.points.is_exhausted(writer, chip, block);
        self.ftl.tables.blocks.end_program(block, exhausted);
        self.programs += 1;
    }

    /// Collects garbage from the start to the stop threshold, as a run would.
    fn collect(&mut self, domain: u32) {
        if self.ftl.tables.blocks.free_in(domain) >= self.ftl.tasks.gc.start_below {
            return;
        }
        Gc::host_wrote(self.ftl, domain);
        while self.ftl.tables.blocks.free_in(domain) <= self.ftl.tasks.gc.stop_above {
            let Some(victim) = Gc::next_victim(self.ftl, domain) else { return };
            self.empty(victim, domain, Task::Gc);
        }
        if self.now.is_some() {
            self.go_on(domain);
        }
    }

    /// Moves the data of a full block to where `writer` writes, and erases it.
    pub fn empty(&mut self, victim: BlockId, domain: u32, writer: Task) {
        self.ftl.tables.blocks.choose(victim);
        let first = victim.0 * self.ftl.shape.units_per_block;
        let run = self.ftl.shape.units_per_page;
        let mut moving = std::mem::take(&mut self.moving);
        for page in 0..self.ftl.shape.pages_per_block {
            // The map entries of a later page are fetched while this one moves.
            let later = (page + AHEAD as u32 / run).min(self.ftl.shape.pages_per_block - 1);
            self.ftl.tables.map.prefetch_holders(Ppn(first + later * run), run);
            let start = first + page * run;
            let mut valid = self.ftl.tables.map.take_valid_run(Ppn(start), run);
            self.ftl.tables.blocks.lose(victim, valid.count_ones());
            while valid != 0 {
                moving.push(self.ftl.tables.map.holds(Ppn(start + valid.trailing_zeros())));
                valid &= valid - 1;
                if moving.len() == run as usize {
                    self.program(writer, domain, &moving, |_, _| true);
                    moving.clear();
                }
            }
        }
        // A victim is erased before the next is chosen, so its last pages go
        // out in a page of their own, partly empty.
        if !moving.is_empty() {
            self.program(writer, domain, &moving, |_, _| true);
            moving.clear();
        }
        self.moving = moving;
        self.ftl.tables.blocks.free(victim);
        self.erases += 1;
        Gc::gained(self.ftl, domain);
        if let Some(now) = self.now {
            self.erased(now, victim, domain);
        }
    }

    /// Programs what is still forming.
    pub fn drain(&mut self) {
        for domain in 0..self.ftl.shape.domains {
            if !self.forming[domain as usize].is_empty() {
                self.program_host(domain);
            }
        }
    }
}
