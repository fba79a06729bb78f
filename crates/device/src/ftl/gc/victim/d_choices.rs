//! `d-choices`: the block with the fewest valid pages among d drawn at random
//! (Van Houdt, SIGMETRICS 2013).

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Candidates, Victim};

/// Settings of `d-choices`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DChoices {
    /// How many blocks are drawn.
    pub d: u32,
}

impl Default for DChoices {
    fn default() -> Self {
        DChoices { d: 10 }
    }
}

impl Build for DChoices {
    fn build(&self, random: Stream) -> Box<dyn Victim> {
        Box::new(Chooser { d: self.d, random })
    }

    fn validate(&self) -> Result<(), String> {
        if self.d == 0 || self.d > 1000 {
            return Err(format!("d is {}; it must lie between 1 and 1000", self.d));
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Chooser {
    d: u32,
    random: Stream,
}

impl Victim for Chooser {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        let blocks = candidates.valid.len();
        let mut best: Option<usize> = None;
        let mut drawn = 0;
        // Blocks that may not be chosen are drawn again, within reason; a
        // small or nearly empty domain then falls back to the first candidate.
        for _ in 0..self.d * 8 {
            let index = self.random.below(blocks as u64) as usize;
            if candidates.is_candidate(index) {
                if best.is_none_or(|best| candidates.valid[index] < candidates.valid[best]) {
                    best = Some(index);
                }
                drawn += 1;
                if drawn == self.d {
                    break;
                }
            }
        }
        best.or_else(|| (0..blocks).find(|&index| candidates.is_candidate(index)))
    }
}
