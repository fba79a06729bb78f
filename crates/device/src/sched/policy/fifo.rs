//! `fifo`: one queue for all tasks, in order of arrival (AutoSSD's "vanilla").

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending};
use crate::address::ChipId;
use crate::sched::Task;

/// Settings of `fifo`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {}

impl Build for Fifo {
    fn build(&self, _chips: u32, _depth: u32, _partitions: u32, _random: Stream) -> Box<dyn Arbiter> {
        Box::new(FifoArbiter)
    }
}

#[derive(Clone)]
struct FifoArbiter;

impl Arbiter for FifoArbiter {
    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        pending.tasks().min_by_key(|&task| pending.arrival(task)).expect("something is pending")
    }
}
