//! `round-robin`: each tenant's queue in turn, up to a burst of requests (NVMe's
//! mandatory arbitration, NVMe 1.4).

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ring::Ring;
use super::{Build, IoScheduler};
use crate::claim::{Claim, index_of};

/// Settings of `round-robin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// Requests taken from a queue at a time (arbitration burst).
    pub burst: u32,
}

impl Default for RoundRobin {
    /// Ours; NVMe leaves it to the controller.
    fn default() -> Self {
        RoundRobin { burst: 1 }
    }
}

impl Build for RoundRobin {
    fn build(&self, claims: &[Claim], _predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        Box::new(Turns(Ring::new(claims.len(), self.burst)))
    }

    fn validate(&self) -> Result<(), String> {
        valid_burst(self.burst)
    }
}

/// Checks an arbitration burst.
///
/// # Errors
/// A sentence that begins with the key.
pub(super) fn valid_burst(burst: u32) -> Result<(), String> {
    if (1..=1 << 16).contains(&burst) {
        return Ok(());
    }
    Err(format!("burst is {burst}; it must lie between 1 and {}", 1 << 16))
}

#[derive(Clone)]
struct Turns(Ring);

impl IoScheduler for Turns {
    fn add(&mut self, _now: Time, request: &Request) {
        self.0.add(index_of(request.tenant, self.0.len()), request);
    }

    fn next(&mut self, _now: Time) -> Option<Request> {
        self.0.next()
    }

    fn cut_power(&mut self, _now: Time) {
        self.0.clear();
    }
}
