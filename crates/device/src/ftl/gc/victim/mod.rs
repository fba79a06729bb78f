//! The victim axis: which full block garbage collection empties next.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::Stream;

flashkeel_config::axis! {
    /// Which block garbage collection empties next.
    pub enum VictimConfig as "victim policy": Build {
        /// The block with the fewest valid pages.
        Greedy(Greedy) in greedy = "greedy",
        /// The block with the best ratio of benefit to cost, by age and validity.
        CostBenefit(CostBenefit) in cost_benefit = "cost-benefit",
        /// The block that has been full longest.
        Fifo(Fifo) in fifo = "fifo",
        /// The best of d blocks drawn at random.
        DChoices(DChoices) in d_choices = "d-choices",
    }
}

impl Default for VictimConfig {
    fn default() -> Self {
        VictimConfig::CostBenefit(cost_benefit::CostBenefit::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, with a random stream of its own.
    fn build(&self, random: Stream) -> Box<dyn Victim>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The blocks of one domain, as a victim policy sees them.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    /// Valid pages per block; above `block_size` where the block may not be
    /// chosen.
    pub valid: &'a [u32],
    /// Position of each block in the order in which blocks became full.
    pub closed: &'a [u32],
    /// How many blocks have become full so far.
    pub closes: u32,
    /// Number of the first of these blocks: those of different domains, or chips, are
    /// told apart by it and by how many they are.
    pub first: usize,
    /// Changes whenever a block that may be chosen, of these or others, loses a valid page.
    pub losses: u64,
    /// How many of the blocks that may be chosen have no valid page.
    pub dead: u32,
    /// Valid pages of a block without garbage.
    pub block_size: u32,
    /// Where to start looking, so that ties spread over the chips.
    pub start: usize,
}

impl Candidates<'_> {
    /// Whether block `index` may be chosen.
    #[inline]
    pub fn is_candidate(&self, index: usize) -> bool {
        self.valid[index] <= self.block_size
    }

    /// The block to empty instead of `picked`, where that has no valid page: of those like it
    /// on its chip, of `per_chip` blocks, the one that has been full longest. Nothing is moved
    /// for any of them, and in turn they wear alike.
    pub fn in_turn(&self, picked: usize, per_chip: usize) -> usize {
        if self.valid[picked] > 0 || self.dead == 1 {
            return picked;
        }
        let begin = ((self.first + picked) / per_chip * per_chip).saturating_sub(self.first);
        let chip = begin..(begin + per_chip).min(self.valid.len());
        let dead = chip.filter(|&block| self.valid[block] == 0);
        dead.max_by_key(|&block| self.closes.wrapping_sub(self.closed[block])).unwrap_or(picked)
    }

    /// Candidate with the least `score`; ties go to the first from `start` on.
    #[inline]
    pub fn least<S: PartialOrd + Copy>(&self, score: impl Fn(usize) -> S, worst: S) -> Option<usize> {
        let mut best = (worst, None);
        for index in (self.start..self.valid.len()).chain(0..self.start) {
            let score = score(index);
            if score < best.0 {
                best = (score, Some(index));
            }
        }
        best.1
    }
}

/// A victim policy.
pub trait Victim: DynClone + Send {
    /// The index of the block to empty, if any may be chosen.
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize>;
}

dyn_clone::clone_trait_object!(Victim);
