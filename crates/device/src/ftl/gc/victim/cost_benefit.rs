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
        Box::new(Scorer { best: Vec::new() })
    }
}

/// Blocks scored together: few enough to stay in the nearest cache.
const CHUNK: usize = 256;

struct Scorer {
    /// Scratch: the best score of each chunk.
    best: Vec<i32>,
}

/// Scores a chunk of blocks. In single precision and without branches, which
/// the compiler vectorises: every block is scored for every victim. Scores are
/// 0 or more, so their bits order like integers, whose maximum vectorises too;
/// blocks that may not be chosen score -1.
#[inline]
fn score(valid: &[u32], closed: &[u32], candidates: &Candidates<'_>, scores: &mut [i32; CHUNK]) {
    let (size, closes, most) = (candidates.block_size as f32, candidates.closes, candidates.block_size);
    for ((score, &valid), &closed) in scores.iter_mut().zip(valid).zip(closed) {
        let age = (closes.wrapping_sub(closed) as i32) as f32;
        let used = (valid & i32::MAX as u32) as i32 as f32;
        let benefit = (size - used) * age / (size + used);
        *score = if valid <= most { benefit.to_bits() as i32 } else { -1 };
    }
}

impl Victim for Scorer {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        let chunks = || candidates.valid.chunks(CHUNK).zip(candidates.closed.chunks(CHUNK));
        let mut scores = [0; CHUNK];
        self.best.clear();
        self.best.extend(chunks().map(|(valid, closed)| {
            score(valid, closed, &candidates, &mut scores);
            scores[..valid.len()].iter().copied().max().unwrap_or(-1)
        }));
        let best = self.best.iter().copied().max().filter(|&best| best >= 0)?;
        let first = candidates.start / CHUNK;
        let mut order = (first..self.best.len()).chain(0..first);
        let chunk = order.find(|&chunk| self.best[chunk] == best)?;
        let (valid, closed) = chunks().nth(chunk)?;
        score(valid, closed, &candidates, &mut scores);
        scores[..valid.len()].iter().position(|&score| score == best).map(|at| chunk * CHUNK + at)
    }
}
