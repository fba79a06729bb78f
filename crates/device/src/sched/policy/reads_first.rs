//! `reads-first`: on a chip the reads that the host waits for go before anything else,
//! what waits in the chip's slots too; all others rank as under `priority`. MQSim's
//! scheduler as it is delivered (`TSU_OutOfOrder`) serves reads before writes so.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending, priority};
use crate::address::ChipId;
use crate::sched::Task;

/// Settings of `reads-first`: none. However many reads come, they are served first; a
/// program that a chip has begun is broken off only by chips that can suspend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadsFirst {}

impl Build for ReadsFirst {
    fn build(&self, _chips: u32, _depth: u32, _partitions: u32, _random: Stream) -> Box<dyn Arbiter> {
        Box::new(ReadsFirstArbiter)
    }
}

#[derive(Clone)]
struct ReadsFirstArbiter;

impl Arbiter for ReadsFirstArbiter {
    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        priority::first(pending)
    }

    fn reads_pass_slots(&self) -> bool {
        true
    }
}
