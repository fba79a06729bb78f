//! `greedy`: the block with the fewest valid pages.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Candidates, Victim};

/// Settings of `greedy`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Greedy {}

impl Build for Greedy {
    fn build(&self, _random: Stream) -> Box<dyn Victim> {
        Box::new(Greedy {})
    }
}

impl Victim for Greedy {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        // Two passes without branches, which the compiler vectorises.
        let least = candidates.valid.iter().copied().min().filter(|&least| least <= candidates.block_size)?;
        let (before, after) = candidates.valid.split_at(candidates.start);
        let find = |part: &[u32]| part.iter().position(|&valid| valid == least);
        find(after).map(|index| index + candidates.start).or_else(|| find(before))
    }
}
