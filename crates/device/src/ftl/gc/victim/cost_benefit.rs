//! `cost-benefit`: the block with the largest (1 - u) * age / (1 + u), where u
//! is the valid fraction (Rosenblum and Ousterhout, "The design and
//! implementation of a log-structured file system", §3.5).
//!
//! Age is counted in blocks that became full since, so that it needs no clock
//! and does not depend on idle time.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Candidates, Victim};

/// Settings of `cost-benefit`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostBenefit {}

impl Build for CostBenefit {
    fn build(&self, _random: Stream) -> Box<dyn Victim> {
        Box::new(Scorer { scores: Vec::new() })
    }
}

struct Scorer {
    /// Scratch: one score per block, at least 0 for candidates.
    scores: Vec<f32>,
}

impl Victim for Scorer {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        // Single precision and separate passes without branches, which the
        // compiler vectorises: every block is scored for every victim.
        let size = candidates.block_size as f32;
        self.scores.resize(candidates.valid.len(), 0.0);
        for ((score, &valid), &closed) in self.scores.iter_mut().zip(candidates.valid).zip(candidates.closed)
        {
            let age = (candidates.closes.wrapping_sub(closed) as i32) as f32;
            let used = (valid & i32::MAX as u32) as i32 as f32;
            let benefit = (size - used) * age / (size + used);
            *score = if valid <= candidates.block_size { benefit } else { -1.0 };
        }
        // In integers the maximum vectorises too; for scores from 0 up the
        // order of the bits is the order of the numbers.
        let best = self.scores.iter().map(|score| score.to_bits() as i32).max().filter(|&best| best >= 0)?;
        let (before, after) = self.scores.split_at(candidates.start);
        let find = |part: &[f32]| part.iter().position(|score| score.to_bits() as i32 == best);
        find(after).map(|index| index + candidates.start).or_else(|| find(before))
    }
}
