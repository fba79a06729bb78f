//! Dynamic throttling by epochs of similar demand: the forecast says how long
//! an epoch is, the estimator how long each page is held in it, the regulator
//! what happens when an epoch uses more than its capacity (READY, FAST 2012).

mod estimator;
mod forecast;
mod plan;
mod regulator;

use flashkeel_engine::{Hint, Span, Time};

use super::{Passed, Stretch, THROTTLE_UNIT_BYTES, Throttle};
use crate::flash::Endurance;
use estimator::Estimator;
use forecast::Forecast;
use plan::Known;
pub use plan::Plan;
use regulator::Regulator;

/// What is unused is carried over for a day at most: the longest cycle that
/// enterprise traffic is known for.
const DAY_NS: u64 = 86_400_000_000_000;

/// A throttle that works by epochs.
#[derive(Clone)]
pub(crate) struct Epochs {
    plan: Plan,
    knows_recovery: bool,
    forecast: Forecast,
    estimator: Estimator,
    regulator: Regulator,
    epoch_began: Time,
    epoch_ends: Time,
    /// Bytes that this epoch may write by its own share of the endurance, and
    /// those that it may write because epochs before it left them unused.
    base: f64,
    carried: f64,
    /// Bytes and pages written in this epoch.
    written: f64,
    pages: f64,
    /// When the last page held so far is released: pages pass one by one.
    gate: Time,
}

impl Epochs {
    /// Nothing is held until the first epoch has shown a demand.
    pub fn new(plan: &Plan, knows_recovery: bool) -> Self {
        Epochs {
            knows_recovery,
            forecast: Forecast::new(&plan.epochs),
            estimator: Estimator::default(),
            regulator: Regulator::new(plan),
            epoch_began: Time::ZERO,
            epoch_ends: Time::ZERO,
            base: 0.0,
            carried: 0.0,
            written: 0.0,
            pages: 0.0,
            gate: Time::ZERO,
            plan: plan.clone(),
        }
    }

    fn count(&mut self, bytes: f64, pages: f64) {
        self.written += bytes;
        self.pages += pages;
        self.regulator.count(bytes);
    }
}

impl Throttle for Epochs {
    fn delay(&mut self, now: Time, bytes: u64, _hint: Hint) -> Span {
        self.regulator.roll(now);
        let pages = bytes.div_ceil(THROTTLE_UNIT_BYTES);
        self.forecast.count(now, bytes as f64);
        self.count(bytes as f64, pages as f64);
        let each = self.estimator.delay_ns + self.regulator.extra_ns(self.estimator.delay_ns);
        self.gate = self.gate.max(now) + Span((each * pages as f64) as u64);
        if let Some(budget) = self.plan.latency_budget {
            self.gate = self.gate.min(now + budget);
        }
        self.gate.since(now)
    }

    fn review_due(&self) -> Time {
        self.epoch_ends
    }

    fn review(&mut self, now: Time, endurance: &Endurance) {
        let known = Known::new(endurance, self.knows_recovery);
        let length = self.epoch_ends.since(self.epoch_began);
        if length > Span::ZERO {
            let epochs = now.since(self.epoch_began).0 / length.0;
            let most = self.base * DAY_NS as f64 / length.0 as f64;
            self.carried = (self.carried + self.base * epochs as f64 - self.written).min(most);
            self.carried = self.carried.min(known.left_bytes).max(0.0);
            // Nothing was written in the epochs that have passed since.
            let (written, pages) = if epochs == 1 { (self.written, self.pages) } else { (0.0, 0.0) };
            let capacity = self.plan.capacity(now, length, &known, self.carried) + self.carried;
            self.estimator.adjust(length, written, capacity, pages);
            self.forecast.close(written, now);
        }
        let epoch = self.forecast.epoch();
        self.base = self.plan.capacity(now, epoch, &known, self.carried);
        self.regulator.begin(now, epoch, self.base + self.carried);
        self.epoch_began = now;
        self.epoch_ends = now + epoch;
        (self.written, self.pages) = (0.0, 0.0);
    }

    fn stretch(&mut self, stretch: &Stretch, tell: &mut dyn FnMut(f64, f64)) -> Passed {
        let mut rest = *stretch;
        let mut pages = 0.0;
        while rest.from < rest.until && rest.pages > 0.0 {
            self.regulator.roll(rest.from);
            let delay = self.estimator.delay_ns + self.regulator.extra_ns(self.estimator.delay_ns);
            let delay = self.plan.latency_budget.map_or(delay, |budget| delay.min(budget.0 as f64));
            let each = rest.gap_ns + delay;
            let steady = self.regulator.steady_ns(each).clamp(1.0, rest.until.since(rest.from).0 as f64);
            let passed = Stretch { until: rest.from + Span(steady as u64), ..rest }.pass(each);
            tell(passed.pages, delay);
            let bytes = passed.pages * THROTTLE_UNIT_BYTES as f64;
            self.forecast.spread(rest.from, passed.until, bytes);
            self.count(bytes, passed.pages);
            pages += passed.pages;
            rest.pages -= passed.pages;
            rest.from = passed.until;
        }
        Passed { pages, until: rest.from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_write_is_held_for_longer_than_the_latency_budget() {
        let budget = Span::from_ms(2);
        let endurance = Endurance {
            rated_cycles: 1.0,
            flash_bytes: 1e9,
            cost: 1.0,
            write_amplification: 1.0,
            ..Endurance::default()
        };
        let longest = |latency_budget| {
            let plan = Plan { epochs: vec![Span::from_secs(60)], latency_budget, ..Plan::default() };
            let mut throttle = Epochs::new(&plan, false);
            let mut longest = Span::ZERO;
            let mut now = Time::ZERO;
            for page in 0..10_000 {
                if now >= throttle.review_due() {
                    throttle.review(now, &endurance);
                }
                let delay = throttle.delay(now, 1 << (13 + page % 8), Hint(0));
                longest = longest.max(delay);
                now += Span::from_us(500) + delay;
            }
            let mut told = 0.0_f64;
            let stretch = Stretch { from: now, until: now + Span::from_secs(9), gap_ns: 1e5, pages: 1e5 };
            throttle.stretch(&stretch, &mut |_, delay| told = told.max(delay));
            (longest, told)
        };
        let (longest_of, told) = longest(Some(budget));
        assert_eq!((longest_of, told), (budget, budget.0 as f64));
        let (longest_of, told) = longest(None);
        assert!(longest_of > budget && told > budget.0 as f64, "{longest_of}, {told} ns");
    }

    #[test]
    fn after_an_idle_gap_the_last_epoch_is_one_without_writes() {
        let plan = Plan { epochs: vec![Span::from_secs(1_800)], ..Plan::default() };
        let endurance = Endurance {
            rated_cycles: 100.0,
            flash_bytes: 1e9,
            cost: 1.0,
            write_amplification: 1.0,
            ..Endurance::default()
        };
        let expected_after = |epochs: u64| {
            let mut throttle = Epochs::new(&plan, false);
            throttle.review(Time::ZERO, &endurance);
            throttle.delay(Time(1), 1 << 20, Hint(0));
            throttle.review(Time(epochs * 1_800_000_000_000), &endurance);
            throttle.forecast.expected
        };
        assert_eq!(expected_after(1), f64::from(1 << 20));
        assert_eq!(expected_after(5), 0.0);
    }
}
