//! How often blocks have been read since their last erase.

use flashkeel_engine::Stream;

use super::{BlockState, Blocks};
use crate::address::BlockId;

impl Blocks {
    /// Flash reads of a block since its last erase: of the part with the most.
    #[inline]
    pub fn read_count(&self, block: BlockId) -> u32 {
        self.reads[self.parts(block)].iter().map(|part| part.count).max().unwrap_or(0)
    }

    /// Most flash reads of any block since its last erase.
    pub fn max_read_count(&self) -> u32 {
        self.reads.iter().map(|part| part.count).max().unwrap_or(0)
    }

    /// Most flash reads of any block that is not open since its last erase.
    pub fn max_closed_reads(&self) -> u32 {
        self.closed_reads().max().unwrap_or(0)
    }

    /// The full block that has been read most often since its last erase, of such domains.
    pub fn most_read(&self, is_of: impl Fn(u32) -> bool) -> Option<BlockId> {
        let blocks = self.in_state(BlockState::Full).filter(|&block| is_of(self.domain(block)));
        blocks.max_by_key(|&block| self.read_count(block))
    }

    /// Blocks that are not open, counted chip by chip, with at least `reads` flash reads since
    /// their last erase.
    pub fn read_at_least(&self, reads: u32) -> u32 {
        self.closed_reads().filter(|&count| count >= reads).count() as u32
    }

    /// Gives every block in use a random read count below `limit`, as past
    /// reads would have left it (AutoSSD, "Workload and Test Settings"). The
    /// blocks of a stripe have the same: they were erased together.
    pub fn randomise_read_counts(&mut self, limit: u32, random: &mut Stream) {
        let blocks = self.reads.chunks_mut(self.width as usize);
        for (parts, _) in blocks.zip(&self.states).filter(|(_, state)| **state != BlockState::Free) {
            let count = random.below(u64::from(limit)) as u32;
            parts.iter_mut().for_each(|part| part.count = count);
        }
    }

    /// Reads of each part of the blocks that are not open.
    fn closed_reads(&self) -> impl Iterator<Item = u32> + '_ {
        let blocks = self.reads.chunks(self.width as usize).zip(&self.states);
        let closed = blocks.filter(|(_, state)| **state != BlockState::Open);
        closed.flat_map(|(parts, _)| parts.iter().map(|part| part.count))
    }
}
