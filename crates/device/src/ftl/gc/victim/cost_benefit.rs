//! `cost-benefit`: the block with the largest (1 - u) * age / (1 + u), where u
//! is the valid fraction (Rosenblum and Ousterhout, "The design and
//! implementation of a log-structured file system", §3.5).
//!
//! A block without valid pages comes before all others: it need not be read at
//! all (§3.4), so that its space costs nothing, whatever its age. Map pages,
//! which are written again and again, leave many of them.
//!
//! Age is counted in blocks that became full since, so that it needs no clock
//! and does not depend on idle time.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Candidates, Victim};
use crate::processor::twice;

/// Settings of `cost-benefit`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostBenefit {}

impl Build for CostBenefit {
    fn build(&self, _random: Stream) -> Box<dyn Victim> {
        Box::new(Scorer { seen: None, shortlist: Shortlist::default() })
    }
}

/// Blocks passed over together.
const CHUNK: usize = 256;
/// The shortlist takes the blocks that score better than the best of all but
/// one in this many chunks.
const LISTED_CHUNKS_DIVISOR: usize = 4;

/// Victims are often chosen many at a time, before the host invalidates
/// another page. Then only ages change, all alike, and those that scored well
/// go on doing so: from the second on, victims come from a shortlist. What is
/// picked is the same with and without it.
#[derive(Clone)]
struct Scorer {
    seen: Option<Seen>,
    shortlist: Shortlist,
}

/// Among which blocks the last victim was picked, and when.
#[derive(Clone, Copy, PartialEq)]
struct Seen {
    first: usize,
    blocks: usize,
    losses: u64,
}

/// The blocks that scored best, in order of their index.
#[derive(Clone, Default)]
struct Shortlist {
    blocks: Vec<u32>,
    /// No other block scored more than this.
    rest: f32,
    /// When that was.
    closes: u32,
}

/// A block's benefit times its cost, and its cost.
#[inline(always)]
fn terms(valid: u32, closed: u32, candidates: &Candidates<'_>) -> (f32, f32) {
    let size = candidates.block_size as f32;
    let age = (candidates.closes.wrapping_sub(closed) as i32) as f32;
    let used = (valid & i32::MAX as u32) as i32 as f32;
    ((size - used) * age, size + used)
}

/// Score of a block; negative where it may not be chosen.
#[inline(always)]
fn score(valid: u32, closed: u32, candidates: &Candidates<'_>) -> f32 {
    let (benefit, cost) = terms(valid, closed, candidates);
    if valid <= candidates.block_size { benefit / cost } else { -1.0 }
}

/// Whether a block of the chunk may score more than `best`. Every block is
/// looked at: without branches and divisions, in single precision, which the
/// compiler vectorises.
#[inline(always)]
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

/// Largest score in the chunk from `start` on, and the scores.
#[inline(always)]
fn scores(start: usize, candidates: &Candidates<'_>) -> (f32, [f32; CHUNK]) {
    let mut scores = [-1.0; CHUNK];
    let blocks = candidates.valid[start..].iter().zip(&candidates.closed[start..]);
    for (place, (&valid, &closed)) in scores.iter_mut().zip(blocks) {
        *place = score(valid, closed, candidates);
    }
    // Scores are 0 or more, so their bits order like integers, whose
    // maximum vectorises.
    let most = scores.iter().map(|score| score.to_bits() as i32).max().unwrap_or(-1);
    (f32::from_bits(most as u32), scores)
}

impl Victim for Scorer {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        if candidates.dead > 0 {
            return candidates.least(|block| candidates.valid[block], 1);
        }
        let Candidates { first, losses, .. } = candidates;
        let now = Seen { first, blocks: candidates.valid.len(), losses };
        if self.seen.replace(now) != Some(now) {
            self.shortlist.blocks.clear();
            return best_of_all(&candidates);
        }
        if let Some(best) = self.shortlist.best(&candidates) {
            return Some(best);
        }
        make(&mut self.shortlist, &candidates);
        self.shortlist.best(&candidates).or_else(|| best_of_all(&candidates))
    }
}

twice! {
    /// The best block of all. The copies for AVX2 of this and of `make` take less than a
    /// fifth of the instructions: of 292 million that compiling everything for AVX2 saves in
    /// `bench instructions write 100000`, preconditioning included, they save 234.
    fn best_of_all(candidates: &Candidates<'_>) -> Option<usize> {
        let first = candidates.start / CHUNK * CHUNK;
        let mut best = (-1.0, None);
        for start in (first..candidates.valid.len()).step_by(CHUNK).chain((0..first).step_by(CHUNK)) {
            let end = (start + CHUNK).min(candidates.valid.len());
            let (valid, closed) = (&candidates.valid[start..end], &candidates.closed[start..end]);
            if may_exceed(best.0, valid, closed, candidates) {
                let (most, scores) = scores(start, candidates);
                if most > best.0 {
                    best = (most, scores.iter().position(|&score| score == most).map(|at| start + at));
                }
            }
        }
        best.1
    }
}

twice! {
    /// Lists the blocks that score best. As much is gained.
    fn make(list: &mut Shortlist, candidates: &Candidates<'_>) -> () {
        let starts = || (0..candidates.valid.len()).step_by(CHUNK);
        let mut most = Vec::with_capacity(starts().len());
        for start in starts() {
            most.push(scores(start, candidates).0);
        }
        let rank = most.len() - 1 - most.len() / LISTED_CHUNKS_DIVISOR;
        list.rest = *most.select_nth_unstable_by(rank, f32::total_cmp).1;
        list.closes = candidates.closes;
        list.blocks.clear();
        for start in starts() {
            let (most, scores) = scores(start, candidates);
            if most > list.rest {
                let listed = (start..).zip(scores).filter(|&(_, score)| score > list.rest);
                list.blocks.extend(listed.map(|(block, _)| block as u32));
            }
        }
    }
}

impl Shortlist {
    /// The best block, if it surely is on the list. First of equals is the
    /// one that comes first from the chunk of `candidates.start` on.
    fn best(&self, candidates: &Candidates<'_>) -> Option<usize> {
        let first = candidates.start / CHUNK * CHUNK;
        let (before, after) =
            self.blocks.split_at(self.blocks.partition_point(|&block| (block as usize) < first));
        // Of a block that loses nothing, the score grows by at most 1 as its age
        // grows by 1; a block that became full since began at 0.
        let rest = self.rest + candidates.closes.wrapping_sub(self.closes) as f32;
        let mut best = (rest * (1.0 + 1e-5), None);
        for &block in after.iter().chain(before) {
            let score =
                score(candidates.valid[block as usize], candidates.closed[block as usize], candidates);
            if score > best.0 {
                best = (score, Some(block as usize));
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Picks many victims in a row, as preconditioning does, from blocks that
    /// fill up meanwhile; now and then a block loses pages.
    #[test]
    fn the_shortlist_changes_no_pick() {
        const SIZE: u32 = 64;
        let mut random = Stream::new(1, "shortlist");
        for blocks in [1, 3, CHUNK, CHUNK + 1, 5 * CHUNK + 17] {
            let mut scorer = CostBenefit {}.build(Stream::new(1, "unused"));
            let mut valid: Vec<u32> =
                (0..blocks).map(|_| 1 + random.below(u64::from(SIZE) + 1) as u32).collect();
            let mut closed: Vec<u32> = (0..blocks).map(|_| random.below(1000) as u32).collect();
            let (mut closes, mut losses) = (1000, 0);
            for _ in 0..400 {
                let start = random.below(blocks as u64) as usize;
                let candidates = Candidates {
                    valid: &valid,
                    closed: &closed,
                    closes,
                    first: 0,
                    losses,
                    dead: 0,
                    block_size: SIZE,
                    start,
                };
                let picked = scorer.pick(candidates);
                assert_eq!(picked, best_of_all(&candidates));
                if let Some(picked) = picked {
                    valid[picked] = SIZE + 1;
                }
                if random.below(2) == 0 {
                    let filled = random.below(blocks as u64) as usize;
                    if valid[filled] > SIZE {
                        (valid[filled], closed[filled]) =
                            (1 + random.below(u64::from(SIZE) - 1) as u32, closes);
                        closes += 1;
                    }
                }
                let loser = random.below(blocks as u64) as usize;
                if random.below(50) == 0 && (2..=SIZE).contains(&valid[loser]) {
                    valid[loser] -= 1;
                    losses += 1;
                }
            }
        }
    }

    #[test]
    fn a_domain_is_not_judged_by_the_shortlist_of_another() {
        const SIZE: u32 = 64;
        let blocks = 3 * CHUNK;
        // The best block of each domain is among the worst of the other.
        let valid = |best: usize| (0..blocks).map(|block| if block == best { 1 } else { 60 }).collect();
        let domains: [Vec<u32>; 2] = [valid(5), valid(2 * CHUNK + 7)];
        let closed = vec![0; blocks];
        let mut scorer = CostBenefit {}.build(Stream::new(1, "unused"));
        // A shortlist is made from the second victim on.
        for domain in [0, 0, 1, 1, 0, 1] {
            let candidates = Candidates {
                valid: &domains[domain],
                closed: &closed,
                closes: 1000,
                first: domain * blocks,
                losses: 7,
                dead: 0,
                block_size: SIZE,
                start: 0,
            };
            assert_eq!(scorer.pick(candidates), best_of_all(&candidates));
        }
    }

    #[test]
    fn blocks_without_valid_pages_come_first() {
        let (valid, closed) = ([10, 3, 0, 64, 0], [0, 1, 900, 3, 901]);
        let mut scorer = CostBenefit {}.build(Stream::new(1, "unused"));
        let mut pick = |dead, start| {
            let (closes, losses) = (1000, 0);
            scorer.pick(Candidates {
                valid: &valid,
                closed: &closed,
                closes,
                first: 0,
                losses,
                dead,
                block_size: 64,
                start,
            })
        };
        assert_eq!(pick(2, 0), Some(2));
        assert_eq!(pick(2, 3), Some(4));
    }
}
