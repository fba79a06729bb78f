//! Years at once: stretches of constant demand through a throttle and a law of
//! wear.

use std::collections::VecDeque;

use flashkeel_device::{
    Endurance, Law, Passed, Stretch, THROTTLE_UNIT_BYTES, Throttle, ThrottleConfig, WearConfig,
};
use flashkeel_engine::{Span, Time};
use flashkeel_workload::Watch;
use flashkeel_workload::demand::Demand;

use super::course::{Course, response};
use super::delays::{Brief, Delays};
use super::outcome::{Blocks, Endured, Lifetime, slowdown};
use super::simulation::Steady;
use super::{DAY_NS, Drive, HORIZON, LifetimePlan, ask};
use crate::Error;

/// Intervals between two reports of progress: some milliseconds.
const REPORT: u64 = 1 << 14;

/// A drive's life without its single writes.
pub(super) struct Years<'a> {
    plan: &'a LifetimePlan,
    demand: &'a Demand,
    steady: &'a Steady,
    throttle: Option<Box<dyn Throttle>>,
    rounds: Rounds,
    endurance: Endurance,
    now: Time,
    held: Delays,
    course: Course,
    /// When the day begins that is looked at closely, and what was seen.
    day_from: Time,
    day: Vec<(f64, f64, f64)>,
}

impl<'a> Years<'a> {
    pub fn new(
        plan: &'a LifetimePlan,
        demand: &'a Demand,
        steady: &'a Steady,
        write_amplification: f64,
        wear: &WearConfig,
        throttle: &ThrottleConfig,
    ) -> Self {
        let law = wear.policy().build().expect("a lifetime has a law of wear");
        Years {
            plan,
            demand,
            steady,
            throttle: throttle.policy().build(),
            rounds: Rounds::new(law, steady.recovered),
            endurance: Endurance {
                rated_cycles: wear.policy().rated_cycles().map_or(0.0, f64::from),
                flash_bytes: plan.drive.flash_bytes(),
                cost: 1.0,
                write_amplification,
                ..Endurance::default()
            },
            now: Time::ZERO,
            held: Delays::default(),
            course: Course::default(),
            day_from: Time((365 * DAY_NS).min(plan.target.0 / 2)),
            day: Vec::new(),
        }
    }

    /// Lives through the demand, over and over, until the drive is worn out.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `watch` breaks off.
    pub fn run(mut self, seed: u64, watch: &mut Watch<'_>) -> Result<Lifetime, Error> {
        let demand = self.demand;
        for (count, &bytes) in (0u64..).zip(demand.written.iter().cycle()) {
            self.interval(bytes);
            let (worn, passed) = (self.endurance.wear / self.endurance.rated_cycles, self.now.0 as f64);
            if worn >= 1.0 || self.now >= HORIZON {
                break;
            }
            if count.is_multiple_of(REPORT) {
                ask(watch, worn.max(passed / HORIZON.0 as f64))?;
            }
        }
        Ok(self.finish(seed))
    }

    /// Writes what one interval of the demand asks for, however long it takes.
    fn interval(&mut self, bytes: f64) {
        let length = self.demand.interval;
        let mut pages = bytes / THROTTLE_UNIT_BYTES as f64;
        if pages <= 0.0 {
            self.now += length;
            return;
        }
        let gap_ns = length.0 as f64 / pages + self.steady.service.mean_ns();
        let from = self.now;
        let mut seen = Brief::default();
        // Idle times are known as well as the round is divided finely.
        let part_of_round = self.endurance.flash_bytes
            / (THROTTLE_UNIT_BYTES as f64 * self.endurance.write_amplification)
            / 64.0;
        // What is left of a page after roundings counts as none.
        while pages > 1e-6 {
            let passed = self.stretch(gap_ns, pages.min(part_of_round), &mut seen);
            pages -= passed.pages;
            let cycles = passed.pages * THROTTLE_UNIT_BYTES as f64 * self.endurance.write_amplification
                / self.endurance.flash_bytes;
            let cost = self.rounds.pass(passed.until, self.endurance.cycles + cycles);
            // The last stretch ends when the drive is worn out.
            let left = (self.endurance.rated_cycles - self.endurance.wear) / (cycles * cost);
            let part = if left < 1.0 { left } else { 1.0 };
            self.endurance.cycles += part * cycles;
            self.endurance.wear =
                if left <= 1.0 { self.endurance.rated_cycles } else { self.endurance.wear + cycles * cost };
            self.endurance.cost = cost;
            self.now += Span((part * passed.until.since(self.now).0 as f64) as u64);
            if left <= 1.0 {
                break;
            }
        }
        self.course.note(self.now, self.endurance.wear / self.endurance.rated_cycles);
        if from >= self.day_from && from.0 < self.day_from.0 + DAY_NS + DAY_NS / 4 {
            let minutes = from.since(self.day_from).0 as f64 / 60e9;
            let service = self.steady.service.mean_ns();
            self.day.push((minutes, service + seen.mean_ns(), service + seen.longest_ns));
        }
    }

    fn stretch(&mut self, gap_ns: f64, pages: f64, seen: &mut Brief) -> Passed {
        let Years { held, course, .. } = self;
        let mut tell = |pages: f64, delay_ns: f64| {
            held.add(pages, delay_ns);
            course.add(pages, delay_ns);
            seen.add(pages, delay_ns);
        };
        let stretch = Stretch { from: self.now, until: Time::MAX, gap_ns, pages };
        let Some(throttle) = &mut self.throttle else {
            tell(pages, 0.0);
            return Passed { pages, until: self.now + Span((pages * gap_ns) as u64) };
        };
        if self.now >= throttle.review_due() {
            throttle.review(self.now, &self.endurance);
        }
        throttle.stretch(&Stretch { until: throttle.review_due(), ..stretch }, &mut tell)
    }

    fn finish(self, seed: u64) -> Lifetime {
        let days = self.now.0 as f64 / DAY_NS as f64;
        let is_worn = self.endurance.wear >= self.endurance.rated_cycles;
        // Beyond the horizon the life goes on as it has until there.
        let lives = self.endurance.rated_cycles / self.endurance.wear;
        let whole_years = lives * Drive::years(days);
        let written_per_day = self.held.pages() * THROTTLE_UNIT_BYTES as f64 / days;
        let mut notes = self.demand.notes.clone();
        if self.plan.recovery.is_some() {
            notes.push("the constants of recovery are ours, not measured on a chip".into());
        }
        if !is_worn {
            notes.push(format!("not worn out after {:.0} years", Drive::years(days)));
        }
        Lifetime {
            seed,
            years: is_worn.then_some(whole_years),
            is_infinite: false,
            endured: Endured {
                rated_cycles: self.endurance.rated_cycles,
                cycles: self.endurance.cycles,
                write_amplification: self.endurance.write_amplification,
                write_amplification_measured: Some(self.steady.write_amplification),
                demanded_per_day: self.demand.bytes_per_day(),
                slowdown: slowdown(self.demand, self.steady.service.mean_ns()),
                written_per_day,
                drive_writes_per_day: self.plan.drive.writes_per_day(written_per_day),
            },
            blocks: Blocks::foreseen(&self.steady.blocks, lives * self.endurance.cycles, whole_years),
            response: Some(response(&self.steady.service, &self.held)),
            course: self.course.moments,
            day: self.day,
            is_synthetic: self.demand.is_synthetic,
            recorded_ns: self.demand.recorded.as_ref().map(|recording| recording.span.0),
            notes,
        }
    }
}

/// The rounds in which all blocks are cycled: a block's idle time is how long
/// ago the drive stood one cycle lower.
struct Rounds {
    law: Box<dyn Law>,
    /// What blocks recover, as a share of what they would if all of them were
    /// idle equally long.
    recovered: f64,
    /// Cycles and when they were reached, about one round back.
    reached: VecDeque<(f64, Time)>,
}

/// Points kept of a round.
const POINTS: f64 = 128.0;

impl Rounds {
    fn new(law: Box<dyn Law>, recovered: f64) -> Self {
        Rounds { law, recovered, reached: VecDeque::from([(0.0, Time::ZERO)]) }
    }

    /// What a cycle costs by which the drive reaches `cycles` at `now`.
    fn pass(&mut self, now: Time, cycles: f64) -> f64 {
        let before = cycles - 1.0;
        while self.reached.get(1).is_some_and(|&(then, _)| then <= before) {
            self.reached.pop_front();
        }
        let (first, from) = self.reached[0];
        let since = match self.reached.get(1) {
            Some(&(next, until)) if before > first => {
                from.0 as f64 + (before - first) / (next - first) * until.since(from).0 as f64
            }
            _ => from.0 as f64,
        };
        if cycles - self.reached[self.reached.len() - 1].0 >= 1.0 / POINTS {
            self.reached.push_back((cycles, now));
        }
        1.0 - self.recovered * (1.0 - self.law.cost(Span((now.0 as f64 - since) as u64)))
    }
}
