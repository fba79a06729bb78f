//! `static-cap`: writes stop once a period's share is used up, until the next
//! period (the static throttling that READY compares with).

use flashkeel_engine::units::Rate;
use flashkeel_engine::{Hint, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Goal, Passed, Stretch, THROTTLE_UNIT_BYTES, Throttle, ThrottleConfig};
use crate::limits::LONGEST_PERIOD;

/// Settings of `static-cap`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaticCap {
    /// Throughput that writes may not exceed over a period. A write larger than
    /// a period's share uses up several periods.
    pub rate: Rate,
    /// Length of a period. What one leaves unused is lost.
    pub period: Span,
}

impl Default for StaticCap {
    /// Ours; the paper gives no figures.
    fn default() -> Self {
        StaticCap { rate: Rate(100_000_000), period: Span::from_secs(1) }
    }
}

impl Build for StaticCap {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        Some(Box::new(Cap {
            share: self.share(),
            period: self.period.0,
            ends: Time::ZERO + self.period,
            used: 0,
        }))
    }

    fn aimed_at(&self, goal: &Goal) -> ThrottleConfig {
        ThrottleConfig::StaticCap(StaticCap { rate: goal.rate, ..self.clone() })
    }

    fn is_aimed_by_rate(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        if self.rate.0 == 0 {
            return Err("rate is zero; no write would ever end".into());
        }
        if self.period == Span::ZERO {
            return Err("period is zero; it must be longer than 0ns".into());
        }
        if self.period > LONGEST_PERIOD {
            return Err(format!("period is {}; at most {LONGEST_PERIOD}", self.period));
        }
        if self.share() == 0 {
            return Err(format!(
                "period: {} at {} is less than a byte; lengthen the period",
                self.period, self.rate
            ));
        }
        Ok(())
    }
}

impl StaticCap {
    fn share(&self) -> u64 {
        let share = u128::from(self.rate.0) * u128::from(self.period.0) / 1_000_000_000;
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

#[derive(Clone)]
struct Cap {
    /// Bytes of a period.
    share: u64,
    period: u64,
    /// End of the period in which the next write is released, and the bytes
    /// used up of it.
    ends: Time,
    used: u64,
}

impl Throttle for Cap {
    fn delay(&mut self, now: Time, bytes: u64, _hint: Hint) -> Span {
        let mut periods = self.used / self.share;
        if now >= self.ends {
            periods = periods.max(now.since(self.ends).0 / self.period + 1);
        }
        self.ends.0 += periods * self.period;
        self.used = self.used.saturating_sub(periods.saturating_mul(self.share)) + bytes;
        Span((self.ends.0 - self.period).saturating_sub(now.0))
    }

    fn stretch(&mut self, stretch: &Stretch, tell: &mut dyn FnMut(f64, f64)) -> Passed {
        let (share, period) = (self.share as f64 / THROTTLE_UNIT_BYTES as f64, self.period as f64);
        if period <= share * stretch.gap_ns {
            let passed = stretch.pass(stretch.gap_ns);
            tell(passed.pages, 0.0);
            return passed;
        }
        // The page that finds the share used up waits for the rest of the period.
        let passed = stretch.pass(period / share);
        let held = 1.0 / share.max(1.0);
        tell(passed.pages * (1.0 - held), 0.0);
        tell(passed.pages * held, period / share.min(1.0) - stretch.gap_ns * share.max(1.0));
        passed
    }
}
