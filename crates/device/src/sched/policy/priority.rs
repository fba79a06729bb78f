//! `priority`: fixed priority, host first (the arbitration of AutoSSD's "rain").

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending};
use crate::address::ChipId;
use crate::sched::Task;

/// Settings of `priority`: none; tasks rank host, map, garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {}

impl Build for Priority {
    fn build(&self, _chips: u32, _depth: u32, _random: Stream) -> Box<dyn Arbiter> {
        Box::new(PriorityArbiter)
    }
}

struct PriorityArbiter;

impl Arbiter for PriorityArbiter {
    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        pending.tasks().next().expect("something is pending")
    }
}
