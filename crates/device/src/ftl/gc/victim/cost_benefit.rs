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
        Box::new(Scorer)
    }
}

/// Blocks passed over together.
const CHUNK: usize = 256;

struct Scorer;

/// A block's benefit times its cost, and its cost.
#[inline]
fn terms(valid: u32, closed: u32, candidates: &Candidates<'_>) -> (f32, f32) {
    let size = candidates.block_size as f32;
    let age = (candidates.closes.wrapping_sub(closed) as i32) as f32;
    let used = (valid & i32::MAX as u32) as i32 as f32;
    ((size - used) * age, size + used)
}

/// Whether a block of the chunk may score more than `best`. Every block is
/// looked at for every victim: without branches and divisions, in single
/// precision, which the compiler vectorises.
#[inline]
fn may_exceed(best: f32, valid: &[u32], closed: &[u32], candidates: &Candidates<'_>) -> bool {
    // Far more slack than rounding needs.
    let best = best - best.abs() * 1e-5;
    let most = candidates.block_size;
    let exceeds = valid.iter().zip(closed).map(|(&valid, &closed)| {
        let (benefit, cost) = terms(valid, closed, candidates);
        (valid <= most) & (benefit > best * cost)
    });
    exceeds.fold(0, |any, one| any | u32::from(one)) != 0
}

impl Victim for Scorer {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        let first = candidates.start / CHUNK * CHUNK;
        let mut best = (-1.0, None);
        for start in (first..candidates.valid.len()).step_by(CHUNK).chain((0..first).step_by(CHUNK)) {
            let end = (start + CHUNK).min(candidates.valid.len());
            let (valid, closed) = (&candidates.valid[start..end], &candidates.closed[start..end]);
            if !may_exceed(best.0, valid, closed, &candidates) {
                continue;
            }
            let mut scores = [-1.0; CHUNK];
            for ((score, &valid), &closed) in scores.iter_mut().zip(valid).zip(closed) {
                let (benefit, cost) = terms(valid, closed, &candidates);
                *score = if valid <= candidates.block_size { benefit / cost } else { -1.0 };
            }
            // Scores are 0 or more, so their bits order like integers, whose
            // maximum vectorises.
            let most = scores.iter().map(|score| score.to_bits() as i32).max().unwrap_or(-1);
            let most = f32::from_bits(most as u32);
            if most > best.0 {
                best = (most, scores.iter().position(|&score| score == most).map(|at| start + at));
            }
        }
        best.1
    }
}
