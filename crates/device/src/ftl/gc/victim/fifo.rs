//! `fifo`: the block that has been full longest.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Candidates, Victim};

/// Settings of `fifo`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {}

impl Build for Fifo {
    fn build(&self, _random: Stream) -> Box<dyn Victim> {
        Box::new(Fifo {})
    }
}

impl Victim for Fifo {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        let age = |index: usize| candidates.closes.wrapping_sub(candidates.closed[index]);
        let rank =
            |index: usize| if candidates.is_candidate(index) { u32::MAX - age(index) } else { u32::MAX };
        candidates.least(rank, u32::MAX)
    }
}
