//! `static-cap`: writes stop while a fixed throughput is exceeded (the static
//! throttling that READY compares with).

use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Throttle};

/// Settings of `static-cap`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaticCap {
    /// Throughput that writes may not exceed in the long run.
    pub rate: Rate,
    /// Bytes that may be written ahead of the rate.
    pub burst: Bytes,
}

impl Default for StaticCap {
    fn default() -> Self {
        StaticCap { rate: Rate(100_000_000), burst: Bytes(1 << 20) }
    }
}

impl Build for StaticCap {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        let ahead = self.rate.time_for(self.burst.0);
        Some(Box::new(Cap { rate: self.rate, ahead, paid_until: Time::ZERO }))
    }

    fn validate(&self) -> Result<(), String> {
        if self.rate.0 == 0 {
            return Err("throttle.rate is zero; no write would ever end".into());
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Cap {
    rate: Rate,
    /// How far ahead of time the rate may be used up.
    ahead: Span,
    /// The time up to which the rate is used up.
    paid_until: Time,
}

impl Throttle for Cap {
    fn delay(&mut self, now: Time, bytes: u64) -> Span {
        self.paid_until = self.paid_until.max(now) + self.rate.time_for(bytes);
        Span((self.paid_until.0 - now.0).saturating_sub(self.ahead.0))
    }
}
