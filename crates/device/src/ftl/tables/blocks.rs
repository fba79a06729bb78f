//! Block states, valid counts, wear, and free lists.

use std::collections::VecDeque;
use std::io;

use crate::address::BlockId;
use crate::prefetch;

/// Set in a block's key while it may not be chosen as a victim.
const NOT_CANDIDATE: u32 = 1 << 31;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Erased, in its chip's free list.
    Free,
    /// Pages are being allocated or programmed.
    Open,
    /// Fully programmed; a candidate for garbage collection.
    Full,
    /// Being emptied or erased.
    Victim,
    /// Worn out: used no more.
    Retired,
}

/// Reads of one chip's part of a block; side by side, because both change with
/// each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads {
    /// Flash reads since the last erase.
    pub count: u32,
    /// Reads generated but not done, in the first part for all of them; an
    /// erase waits for them.
    under_way: u32,
}

/// The blocks of one partition. Blocks of one chip are consecutive.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Valid pages, with [`NOT_CANDIDATE`] unless the block is full: one
    /// array to scan for the block with the least.
    keys: Vec<u32>,
    pub(super) states: Vec<BlockState>,
    /// Position in the order in which blocks became full.
    pub(super) closed: Vec<u32>,
    pub(super) closes: u32,
    /// How often full blocks have lost pages.
    losses: u64,
    /// By domain, full blocks without a valid page.
    dead: Vec<u32>,
    /// Programs allocated but not done.
    programs: Vec<u32>,
    /// Of each chip's part of each block.
    pub(super) reads: Vec<Reads>,
    pub(super) erase_counts: Vec<u32>,
    pub(super) free: Vec<VecDeque<u32>>,
    pub(super) free_by_domain: Vec<u32>,
    per_chip: u32,
    chips_per_domain: u32,
    /// Parts of a block: one on each chip of a stripe.
    pub(super) width: u32,
}

impl Blocks {
    /// All free, in `domains` domains of equal numbers of chips.
    pub fn new(chips: u32, per_chip: u32, domains: u32, width: u32) -> Self {
        let count = (chips * per_chip) as usize;
        let chips_per_domain = chips / domains;
        Blocks {
            keys: vec![NOT_CANDIDATE; count],
            states: vec![BlockState::Free; count],
            closed: vec![0; count],
            closes: 0,
            losses: 0,
            dead: vec![0; domains as usize],
            programs: vec![0; count],
            reads: vec![Reads::default(); count * width as usize],
            erase_counts: vec![0; count],
            free: (0..chips).map(|chip| (chip * per_chip..(chip + 1) * per_chip).collect()).collect(),
            free_by_domain: vec![chips_per_domain * per_chip; domains as usize],
            per_chip,
            chips_per_domain,
            width,
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> u32 {
        self.keys.len() as u32
    }

    /// The chip of a block, within the partition.
    #[inline]
    pub fn chip(&self, block: BlockId) -> u32 {
        block.0 / self.per_chip
    }

    /// The domain of a block.
    #[inline]
    pub fn domain(&self, block: BlockId) -> u32 {
        self.chip(block) / self.chips_per_domain
    }

    /// First block and number of blocks of a domain.
    #[inline]
    pub fn domain_range(&self, domain: u32) -> std::ops::Range<usize> {
        let blocks = (self.chips_per_domain * self.per_chip) as usize;
        domain as usize * blocks..(domain as usize + 1) * blocks
    }

    /// Blocks of one chip.
    pub fn per_chip(&self) -> u32 {
        self.per_chip
    }

    /// Free blocks of a domain.
    #[inline]
    pub fn free_in(&self, domain: u32) -> u32 {
        self.free_by_domain[domain as usize]
    }

    /// Free blocks of the whole partition.
    pub fn free_total(&self) -> u32 {
        self.free_by_domain.iter().sum()
    }

    /// Free blocks of a chip.
    #[inline]
    pub fn free_on(&self, chip: u32) -> usize {
        self.free[chip as usize].len()
    }

    /// Whether a chip has a free block.
    #[inline]
    pub fn has_free(&self, chip: u32) -> bool {
        !self.free[chip as usize].is_empty()
    }

    /// What a block is doing.
    #[inline]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.states[block.0 as usize]
    }

    /// Valid pages of a block.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.keys[block.0 as usize] & !NOT_CANDIDATE
    }

    /// Valid counts of a range of blocks for a victim policy: values above
    /// the block size mark blocks that may not be chosen.
    #[inline]
    pub fn keys(&self, range: std::ops::Range<usize>) -> &[u32] {
        &self.keys[range]
    }

    /// For each block, its position in the order in which blocks became full.
    #[inline]
    pub fn closed(&self, range: std::ops::Range<usize>) -> &[u32] {
        &self.closed[range]
    }

    /// How many blocks have become full so far.
    #[inline]
    pub fn closes(&self) -> u32 {
        self.closes
    }

    /// Erases of a block.
    pub fn erase_count(&self, block: BlockId) -> u32 {
        self.erase_counts[block.0 as usize]
    }

    /// Fewest and most erases of any block of a domain that has not retired.
    pub fn erase_range(&self, domain: u32) -> (u32, u32) {
        let range = self.domain_range(domain);
        let all = self.states[range.clone()].iter().zip(&self.erase_counts[range]);
        let in_use = all.filter(|&(&state, _)| state != BlockState::Retired).map(|(_, &count)| count);
        in_use.fold((u32::MAX, 0), |(least, most), count| (least.min(count), most.max(count)))
    }

    /// Erases by which the most worn block of a domain is ahead of the least worn.
    pub fn erase_spread(&self, domain: u32) -> u32 {
        let (least, most) = self.erase_range(domain);
        most.saturating_sub(least)
    }

    /// The full block of a domain that has been erased least often, among those
    /// whose data are cold: full for as long as it took to fill as many others as
    /// are full, of all domains, and still valid in part.
    pub fn least_worn_cold(&self, domain: u32) -> Option<BlockId> {
        let round = self.in_state(BlockState::Full).count() as u32;
        let is_cold = |&block: &BlockId| {
            self.closes.wrapping_sub(self.closed[block.0 as usize]) >= round && self.valid(block) > 0
        };
        self.in_domain(domain, BlockState::Full).filter(is_cold).min_by_key(|&block| self.erase_count(block))
    }

    /// The free block of a domain that has been erased most often.
    pub fn most_worn_free(&self, domain: u32) -> Option<BlockId> {
        self.in_domain(domain, BlockState::Free).max_by_key(|&block| self.erase_count(block))
    }

    /// The blocks that are doing this.
    pub fn in_state(&self, state: BlockState) -> impl Iterator<Item = BlockId> + '_ {
        (0..self.len()).map(BlockId).filter(move |&block| self.state(block) == state)
    }

    fn in_domain(&self, domain: u32, state: BlockState) -> impl Iterator<Item = BlockId> + '_ {
        let blocks = self.domain_range(domain).filter(move |&block| self.states[block] == state);
        blocks.map(|block| BlockId(block as u32))
    }

    /// The places of a block's parts in `reads`.
    pub(super) fn parts(&self, block: BlockId) -> std::ops::Range<usize> {
        let (block, width) = (block.0 as usize, self.width as usize);
        block * width..(block + 1) * width
    }

    /// A number that changes whenever a page of a full block becomes invalid.
    #[inline]
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Full blocks of a domain without a valid page.
    #[inline]
    pub fn dead_in(&self, domain: u32) -> u32 {
        self.dead[domain as usize]
    }

    /// Takes the chip's longest free block.
    pub fn open(&mut self, chip: u32) -> BlockId {
        let block = self.free[chip as usize].pop_front().expect("the chip has a free block");
        debug_assert_eq!(self.states[block as usize], BlockState::Free);
        self.states[block as usize] = BlockState::Open;
        self.free_by_domain[(chip / self.chips_per_domain) as usize] -= 1;
        BlockId(block)
    }

    /// Takes a free block out of turn.
    pub fn take(&mut self, block: BlockId) {
        debug_assert_eq!(self.state(block), BlockState::Free);
        let (chip, domain) = (self.chip(block) as usize, self.domain(block) as usize);
        self.free[chip].retain(|&other| other != block.0);
        self.states[block.0 as usize] = BlockState::Open;
        self.free_by_domain[domain] -= 1;
    }

    /// A page of an open block has been allocated and will be programmed.
    #[inline]
    pub fn begin_program(&mut self, block: BlockId) {
        self.programs[block.0 as usize] += 1;
    }

    /// Programs of a block that have been allocated and are not done.
    pub fn programs_under_way(&self, block: BlockId) -> u32 {
        self.programs[block.0 as usize]
    }

    /// A program is done. `exhausted` tells that the block's last page has
    /// been allocated. True if the block is full by it.
    #[inline]
    pub fn end_program(&mut self, block: BlockId, exhausted: bool) -> bool {
        let programs = &mut self.programs[block.0 as usize];
        *programs -= 1;
        let full = exhausted && *programs == 0;
        if full {
            self.close(block);
        }
        full
    }

    /// An open block is fully programmed: from now on a candidate.
    pub fn close(&mut self, block: BlockId) {
        let index = block.0 as usize;
        debug_assert_eq!(self.states[index], BlockState::Open);
        self.states[index] = BlockState::Full;
        self.keys[index] &= !NOT_CANDIDATE;
        self.closed[index] = self.closes;
        self.closes += 1;
        self.count_dead(block, 1);
    }

    /// Counts a block in or out if it is full and has no valid page.
    #[inline]
    fn count_dead(&mut self, block: BlockId, change: i32) {
        if self.keys[block.0 as usize] == 0 {
            let domain = self.domain(block) as usize;
            self.dead[domain] = self.dead[domain].wrapping_add_signed(change);
        }
    }

    /// Pages of the block have become valid.
    #[inline]
    pub fn gain(&mut self, block: BlockId, pages: u32) {
        debug_assert_ne!(self.state(block), BlockState::Full);
        self.keys[block.0 as usize] += pages;
    }

    /// Pages of the block have become invalid.
    #[inline]
    pub fn lose(&mut self, block: BlockId, pages: u32) {
        debug_assert!(self.valid(block) >= pages);
        let key = &mut self.keys[block.0 as usize];
        let full = *key & NOT_CANDIDATE == 0;
        self.losses += u64::from(full);
        *key -= pages;
        if full && pages > 0 {
            self.count_dead(block, 1);
        }
    }

    /// A full block has been chosen to be emptied.
    pub fn choose(&mut self, block: BlockId) {
        let index = block.0 as usize;
        debug_assert_eq!(self.states[index], BlockState::Full);
        self.count_dead(block, -1);
        self.states[index] = BlockState::Victim;
        self.keys[index] |= NOT_CANDIDATE;
    }

    /// A read of the block has been generated.
    #[inline]
    pub fn begin_read(&mut self, block: BlockId) {
        self.reads[(block.0 * self.width) as usize].under_way += 1;
    }

    /// A read of one of the block's parts is done; true when none of the block
    /// is left.
    #[inline]
    pub fn end_read(&mut self, block: BlockId, part: u32) -> bool {
        let first = block.0 * self.width;
        self.reads[(first + part) as usize].count += 1;
        let under_way = &mut self.reads[first as usize].under_way;
        *under_way -= 1;
        *under_way == 0
    }

    /// Asks the processor to fetch what a read of the block changes.
    #[inline]
    pub fn prefetch_reads(&self, block: BlockId) {
        prefetch::read(&self.reads, (block.0 * self.width) as usize);
    }

    /// Asks the processor to fetch the block's number of valid pages.
    #[inline]
    pub fn prefetch_valid(&self, block: BlockId) {
        prefetch::read(&self.keys, block.0 as usize);
    }

    /// Whether a read of the block is on its way.
    #[inline]
    pub fn is_read(&self, block: BlockId) -> bool {
        self.reads[(block.0 * self.width) as usize].under_way > 0
    }

    /// An emptied block has been erased, or an open one whose data is elsewhere.
    pub fn free(&mut self, block: BlockId) {
        self.erase(block, BlockState::Free);
        let chip = self.chip(block);
        self.free[chip as usize].push_back(block.0);
        self.free_by_domain[(chip / self.chips_per_domain) as usize] += 1;
    }

    /// An emptied block has been erased, and is used no more.
    pub fn retire(&mut self, block: BlockId) {
        self.erase(block, BlockState::Retired);
    }

    fn erase(&mut self, block: BlockId, state: BlockState) {
        let index = block.0 as usize;
        debug_assert!(matches!(self.states[index], BlockState::Victim | BlockState::Open));
        debug_assert_eq!((self.valid(block), self.programs[index]), (0, 0));
        debug_assert!(!self.is_read(block));
        self.states[index] = state;
        let parts = self.parts(block);
        self.reads[parts].fill(Reads::default());
        self.erase_counts[index] += 1;
    }

    /// After a power cut: nothing is under way, and no block is being emptied.
    /// Takes the valid pages of each block.
    pub fn restart(&mut self, valid: &[u32]) {
        self.programs.fill(0);
        self.reads.iter_mut().for_each(|part| part.under_way = 0);
        for ((state, key), &valid) in self.states.iter_mut().zip(&mut self.keys).zip(valid) {
            if *state == BlockState::Victim {
                *state = BlockState::Full;
            }
            *key = valid | if *state == BlockState::Full { 0 } else { NOT_CANDIDATE };
        }
        self.dead.fill(0);
        (0..self.len()).for_each(|block| self.count_dead(BlockId(block), 1));
        // Policies may have noted which blocks have lost pages.
        self.losses += 1;
    }

    /// Hands the tables of a partition at rest to `write`: states, order of
    /// closing, counts and free lists.
    pub fn save(&self, mut write: impl FnMut(&[u32]) -> io::Result<()>) -> io::Result<()> {
        write(&self.states.iter().map(|&state| state as u32).collect::<Vec<_>>())?;
        write(&self.closed)?;
        write(&self.reads.iter().map(|part| part.count).collect::<Vec<_>>())?;
        write(&self.erase_counts)?;
        write(&[self.closes])?;
        for free in &self.free {
            write(&[free.len() as u32])?;
            write(&free.iter().copied().collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Restores the tables that [`save`](Self::save) wrote, in the same order,
    /// given the valid pages of each block.
    ///
    /// # Errors
    /// `InvalidData` if they contradict each other, or what `read` returns.
    pub fn restore(
        &mut self,
        valid: &[u32],
        mut read: impl FnMut(usize) -> io::Result<Vec<u32>>,
    ) -> io::Result<()> {
        let check = |good: bool| if good { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) };
        let blocks = self.keys.len();
        for (block, state) in read(blocks)?.into_iter().enumerate() {
            self.states[block] = match state {
                0 => BlockState::Free,
                1 => BlockState::Open,
                2 => BlockState::Full,
                _ => return check(false),
            };
            let candidate = self.states[block] == BlockState::Full;
            self.keys[block] = valid[block] | if candidate { 0 } else { NOT_CANDIDATE };
        }
        self.dead.fill(0);
        (0..self.len()).for_each(|block| self.count_dead(BlockId(block), 1));
        self.closed = read(blocks)?;
        for (part, count) in self.reads.iter_mut().zip(read(blocks * self.width as usize)?) {
            part.count = count;
        }
        self.erase_counts = read(blocks)?;
        self.closes = read(1)?[0];
        self.free_by_domain.fill(0);
        for chip in 0..self.free.len() {
            let count = read(1)?[0];
            check(count <= self.per_chip)?;
            self.free[chip] = read(count as usize)?.into();
            for &block in &self.free[chip] {
                check((block as usize) < blocks && self.states[block as usize] == BlockState::Free)?;
                check(self.chip(BlockId(block)) as usize == chip)?;
            }
            self.free_by_domain[chip / self.chips_per_domain as usize] += count;
        }
        Ok(())
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        self.keys.len() * (4 * 5 + 1) + self.reads.len() * size_of::<Reads>()
    }
}
