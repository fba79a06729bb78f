//! Dynamic throttling by epochs of similar demand: the predictor says how long
//! an epoch is, the estimator how long each page is held in it, the regulator
//! what happens when an epoch uses more than its capacity (READY, FAST 2012).

mod estimator;
mod plan;
mod predictor;
mod regulator;

use flashkeel_engine::{Span, Time};

use super::{PAGE_BYTES, Passed, Stretch, Throttle};
use crate::flash::Endurance;
use estimator::Estimator;
pub use plan::Plan;
use predictor::{MINUTE, Predictor};
use regulator::Regulator;

/// A throttle that works by epochs.
#[derive(Clone)]
pub(crate) struct Epochs {
    plan: Plan,
    knows_recovery: bool,
    predictor: Predictor,
    estimator: Estimator,
    regulator: Regulator,
    epoch_began: Time,
    epoch_ends: Time,
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
            predictor: Predictor::new(&plan.epochs),
            estimator: Estimator::default(),
            regulator: Regulator::new(plan),
            epoch_began: Time::ZERO,
            epoch_ends: Time::ZERO,
            written: 0.0,
            pages: 0.0,
            gate: Time::ZERO,
            plan: plan.clone(),
        }
    }

    fn count(&mut self, now: Time, bytes: f64, pages: f64) {
        self.written += bytes;
        self.pages += pages;
        self.predictor.count(now, bytes);
        self.regulator.count(bytes);
    }
}

impl Throttle for Epochs {
    fn delay(&mut self, now: Time, bytes: u64) -> Span {
        self.regulator.roll(now);
        let pages = bytes.div_ceil(PAGE_BYTES);
        self.count(now, bytes as f64, pages as f64);
        let each = self.estimator.delay_ns + self.regulator.extra_ns(self.estimator.delay_ns);
        self.gate = self.gate.max(now) + Span((each * pages as f64) as u64);
        self.gate.since(now)
    }

    fn review_due(&self) -> Time {
        self.epoch_ends
    }

    fn review(&mut self, now: Time, endurance: &Endurance) {
        let length = self.epoch_ends.since(self.epoch_began);
        let capacity = |epoch: Span| self.plan.capacity(now, epoch, endurance, self.knows_recovery);
        if length > Span::ZERO {
            let next = now < self.epoch_ends + length;
            // Nothing was written in the epochs that have passed since.
            let (written, pages) = if next { (self.written, self.pages) } else { (0.0, 0.0) };
            self.estimator.adjust(length, written, capacity(length), pages);
            self.predictor.close(self.written, now);
        }
        let epoch = self.predictor.epoch();
        self.regulator.begin(now, epoch, capacity(epoch));
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
            let each = rest.gap_ns + delay;
            // Demand is kept by the minute.
            let minute = MINUTE - rest.from.0 % MINUTE;
            let steady = self.regulator.steady_ns(each).min(minute as f64).max(1.0);
            let passed =
                Stretch { until: rest.until.min(rest.from + Span(steady as u64)), ..rest }.pass(each);
            tell(passed.pages, delay);
            self.count(rest.from, passed.pages * PAGE_BYTES as f64, passed.pages);
            pages += passed.pages;
            rest.pages -= passed.pages;
            rest.from = passed.until;
        }
        Passed { pages, until: rest.from }
    }
}
