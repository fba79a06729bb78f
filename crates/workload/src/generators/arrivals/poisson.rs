//! `poisson`: requests arrive independently of each other.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock, Elapsed, gap_ns};
use crate::{Seeds, WorkloadError};

/// A Poisson process: gaps are exponentially distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Poisson {
    /// Mean rate in requests per second.
    pub iops: f64,
}

impl Default for Poisson {
    fn default() -> Self {
        Poisson { iops: 10_000.0 }
    }
}

impl Arrive for Poisson {
    fn clock(&self, _: Seeds, _: f64) -> Result<Box<dyn Clock>, WorkloadError> {
        Ok(Box::new(State { gap_ns: gap_ns(self.iops)?, elapsed: Elapsed::default() }))
    }
}

struct State {
    gap_ns: f64,
    elapsed: Elapsed,
}

impl Clock for State {
    #[inline]
    fn next(&mut self, stream: &mut Stream) -> u64 {
        self.elapsed.add(stream.exponential(self.gap_ns));
        self.elapsed.ns
    }
}
