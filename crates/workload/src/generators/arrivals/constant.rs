//! `constant`: requests arrive at equal gaps.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock, Elapsed, gap_ns};
use crate::{Seeds, WorkloadError};

/// Equal gaps, the first request at time 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Constant {
    /// Rate in requests per second.
    pub iops: f64,
}

impl Default for Constant {
    fn default() -> Self {
        Constant { iops: 10_000.0 }
    }
}

impl Arrive for Constant {
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
    fn next(&mut self, _: &mut Stream) -> u64 {
        let now_ns = self.elapsed.ns;
        self.elapsed.add(self.gap_ns);
        now_ns
    }
}
