//! The epoch-capacity regulator: reclaims what an epoch uses ahead of time,
//! without ever stopping a write.

use flashkeel_engine::{Span, Time};

use super::Plan;
use crate::front::throttle::THROTTLE_UNIT_BYTES;

/// By how much the share of the spare that is drawn on may change within a
/// stretch that is taken as one.
const STEP: f64 = 0.02;

/// Gives each period of an epoch its allowance, and carries over what is
/// unused or overdrawn.
#[derive(Clone)]
pub(super) struct Regulator {
    period: Span,
    spare_share: f64,
    period_ends: Time,
    /// Bytes that a period allows.
    allowance: f64,
    /// Bytes that may be used ahead of time.
    spare: f64,
    /// Bytes that the periods so far have allowed and that are unused.
    unused: f64,
    /// Delay of a page at which no more is written than is allowed.
    hard_ns: f64,
}

impl Regulator {
    pub fn new(plan: &Plan) -> Self {
        Regulator {
            period: plan.period,
            spare_share: plan.spare,
            period_ends: Time::ZERO,
            allowance: 0.0,
            spare: 0.0,
            unused: 0.0,
            hard_ns: 0.0,
        }
    }

    /// An epoch begins that may write `capacity` bytes.
    pub fn begin(&mut self, now: Time, epoch: Span, capacity: f64) {
        self.allowance = capacity * self.period.0 as f64 / epoch.0 as f64;
        self.spare = capacity * self.spare_share;
        self.hard_ns = THROTTLE_UNIT_BYTES as f64 / self.allowance * self.period.0 as f64;
        self.period_ends = now + self.period;
        self.unused = self.allowance;
    }

    pub fn count(&mut self, bytes: f64) {
        self.unused -= bytes;
    }

    /// Begins the period of `now`.
    #[inline]
    pub fn roll(&mut self, now: Time) {
        if now >= self.period_ends {
            let periods = now.since(self.period_ends).0 / self.period.0 + 1;
            self.period_ends.0 += periods * self.period.0;
            self.unused += periods as f64 * self.allowance;
        }
    }

    /// How far the spare is drawn on, 0 to 1.
    fn drawn(&self) -> f64 {
        if self.unused >= 0.0 { 0.0 } else { (-self.unused / self.spare).min(1.0) }
    }

    /// What is added to `delay_ns` on each page: little at first, and up to the
    /// hard delay as the spare is used up.
    #[inline]
    pub fn extra_ns(&self, delay_ns: f64) -> f64 {
        self.drawn() * (self.hard_ns - delay_ns).max(0.0)
    }

    /// For how many nanoseconds writes, one each `each_ns`, change what is added
    /// by little.
    pub fn steady_ns(&self, each_ns: f64) -> f64 {
        let overdraft_per_ns = THROTTLE_UNIT_BYTES as f64 / each_ns - self.allowance / self.period.0 as f64;
        let room = if self.unused > 0.0 && overdraft_per_ns > 0.0 { self.unused } else { 0.0 };
        if self.unused >= 0.0 && overdraft_per_ns <= 0.0 {
            return f64::INFINITY;
        }
        (room + STEP * self.spare) / overdraft_per_ns.abs() + each_ns
    }
}
