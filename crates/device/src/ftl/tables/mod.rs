//! The tables of one partition: where each page is, what each block holds, where
//! the next program goes. The steady-state cache keeps them, and after a power cut
//! they are made again from flash. Nothing happens here by itself: what changes
//! them, when, and how long that takes, is the tasks' business.

mod bits;
mod blocks;
mod copies;
mod entries;
mod image;
mod map;
mod map_cache;
mod medium;
mod memory;
mod pages;
mod parity;
mod points;
mod power_cut;
mod reads;
mod recovery;
mod spares;
#[cfg(test)]
mod tests;
mod waits;

pub(crate) use bits::Bits;
pub use blocks::{BlockState, Blocks};
pub(crate) use entries::{Entries, Entry, Lane};
pub(crate) use map::Map;
pub(crate) use map_cache::{LPNS_PER_MAP_PAGE, MapCache, Unsaved, Waiter};
pub use medium::{Cycle, Found, Medium, MediumShape, Page, Place};
pub(crate) use pages::Pages;
pub(crate) use points::{Points, Reserves};
pub(crate) use power_cut::{Kept, Known};
pub(crate) use spares::{Erased, Spares, SparesLayout};

use super::{PartitionLayout, Shape};
use crate::address::{BlockId, ChipId, Home, Lpn, NONE, Ppn};
use crate::flash::BlockWear;
use crate::ftl::gc::rotation::Order;
use crate::sched::{Activity, FlashOp};

/// The tables of one partition.
#[derive(Clone)]
pub(crate) struct Tables {
    pub shape: Shape,
    pub map: Map,
    pub blocks: Blocks,
    pub points: Points,
    /// `None` when the whole map is in memory.
    pub cache: Option<MapCache>,
    /// Pages on their way into flash.
    pub entries: Entries,
    /// Effective wear of the blocks, where it is accounted.
    pub wear: Option<BlockWear>,
    /// Which blocks may retire, where any do.
    pub spares: Option<Box<Spares>>,
    /// What pages hold, where their data is real.
    pub pages: Option<Pages>,
    /// Physical pages that hold nothing any more; without room as long as
    /// nothing has failed.
    pub lost: Bits,
    /// Pages of the host that are lost for good.
    gone: Bits,
    /// With logical stripes: pages that the host has trimmed.
    trimmed: Bits,
}

impl Tables {
    /// Of an empty partition.
    pub fn new(layout: &PartitionLayout, shape: &Shape) -> Self {
        let &PartitionLayout { ref geometry, domains, .. } = layout;
        let stripes = &shape.stripes;
        let cached = layout.cached_map_pages < layout.map_pages;
        let wear = layout.policies.wear.policy().build();
        Tables {
            shape: shape.clone(),
            map: Map::new(shape.all_lpns, shape.ppns),
            blocks: Blocks::new(stripes.groups(), geometry.blocks_per_chip, domains, stripes.width()),
            points: Points::new(
                stripes.groups(),
                geometry.chips_per_channel,
                domains,
                shape.pages_per_block,
                layout.reserves,
                usize::from(layout.gc.order == Order::FewestFree),
            ),
            cache: cached.then(|| MapCache::new(layout.map_pages, layout.cached_map_pages, domains)),
            entries: Entries::default(),
            wear: wear.map(|law| BlockWear::new(law, stripes.groups() * geometry.blocks_per_chip)),
            spares: layout.spares.map(|spares| Box::new(Spares::new(spares, domains))),
            pages: None,
            lost: Bits::default(),
            gone: Bits::default(),
            trimmed: Bits::default(),
        }
    }

    /// Points an operation at a flash page.
    #[inline]
    pub fn aim(&self, operation: &mut FlashOp, page: u32) {
        self.aim_at(operation, self.shape.block_of_page(page), page);
    }

    /// Points a read at a flash page: it is on its way from now on.
    #[inline]
    pub fn aim_read(&mut self, operation: &mut FlashOp, page: u32) {
        let block = self.shape.block_of_page(page);
        self.blocks.begin_read(block);
        self.aim_at(operation, block, page);
    }

    #[inline]
    fn aim_at(&self, operation: &mut FlashOp, block: BlockId, page: u32) {
        let page_in_block = page - block.0 * self.shape.pages_per_block;
        let (chip, row) = self.shape.stripes.locate(self.blocks.chip(block), page_in_block);
        operation.chip = chip;
        operation.target = page;
        operation.page_in_block = row as u16;
    }

    /// The chip of a flash page.
    pub fn chip_of(&self, page: u32) -> ChipId {
        self.place_of(page).0
    }

    /// The chip of a flash page, and which of its block on this chip it is.
    pub fn place_of(&self, page: u32) -> (ChipId, u32) {
        let block = self.shape.block_of_page(page);
        self.shape.stripes.locate(self.blocks.chip(block), page % self.shape.pages_per_block)
    }

    /// A read of a flash page has been generated.
    #[inline]
    pub fn begin_read(&mut self, page: u32) {
        self.blocks.begin_read(self.shape.block_of_page(page));
    }

    /// The other pages of a flash page's stripe, if they are all programmed.
    pub fn stripe_mates(&self, page: u32) -> Option<impl Iterator<Item = u32> + Clone + use<>> {
        let state = self.blocks.state(self.shape.block_of_page(page));
        let first = self.shape.stripes.first_of_row(page);
        let is_complete =
            matches!(state, BlockState::Full | BlockState::Victim) && self.shape.stripes.width() > 1;
        is_complete.then(|| (first..first + self.shape.stripes.width()).filter(move |&mate| mate != page))
    }

    /// Gives `lpn` a new home; a former copy in flash becomes garbage.
    /// Returns the former home.
    #[inline(always)]
    pub fn move_home(&mut self, lpn: Lpn, home: Home) -> Home {
        let former = self.map.set_home(lpn, home);
        if former.0 < self.map.ppns() {
            let ppn = Ppn(former.0);
            self.map.set_invalid(ppn);
            self.blocks.lose(self.shape.block_of(ppn), 1);
        }
        former
    }

    /// Asks the processor to fetch what reading `lpn`, or else writing it anew,
    /// changes at its home in flash.
    #[inline]
    pub fn prefetch_home(&self, for_read: bool, lpn: Lpn) {
        let Some(ppn) = self.map.flash_home(lpn) else { return };
        let block = self.shape.block_of(ppn);
        if for_read {
            self.blocks.prefetch_reads(block);
        } else {
            self.map.prefetch_valid(ppn);
            self.blocks.prefetch_valid(block);
        }
    }

    /// Asks the processor to fetch the map entries of a list of entries.
    #[inline]
    pub fn prefetch_homes(&self, mut entry: u32) {
        while entry != NONE {
            self.map.prefetch(self.entries[entry].lpn);
            entry = self.entries.next(entry);
        }
    }

    /// Asks the processor to fetch the map entries of a logical stripe.
    #[inline]
    pub fn prefetch_stripe(&self, stripe: u32) {
        let stripes = self.shape.static_stripes.expect("a device with stripes");
        let data = stripes.data(stripe);
        self.map.prefetch(Lpn(data.start));
        self.map.prefetch(Lpn(data.end - 1));
        self.map.prefetch(stripes.parity(stripe, 0));
    }

    /// Free blocks, counted chip by chip.
    pub fn free_blocks(&self) -> u32 {
        self.blocks.free_total() * self.shape.stripes.width()
    }

    /// Blocks that are used no more, counted chip by chip.
    pub fn retired_blocks(&self) -> u32 {
        self.blocks.in_state(BlockState::Retired).count() as u32 * self.shape.stripes.width()
    }

    /// Mapping units in free blocks.
    pub fn free_units(&self) -> u64 {
        u64::from(self.blocks.free_total()) * u64::from(self.shape.units_per_block)
    }

    /// Mapping units of data in the free blocks that the host may open, where it writes to all
    /// domains alike: the one with the fewest is full first.
    pub fn spare_units(&self) -> u64 {
        let spare = |domain| self.blocks.free_in(domain).saturating_sub(self.left_by_host(domain));
        let fewest = (0..self.shape.domains).map(spare).min().unwrap_or(0);
        [fewest, self.shape.domains, self.shape.data_units_per_block()].map(u64::from).iter().product()
    }

    /// Mapping units not yet allocated in open blocks.
    pub fn open_units(&self) -> u64 {
        u64::from(self.points.room_total()) * u64::from(self.shape.units_per_page)
    }

    /// Pages of an open block that have been allocated.
    pub fn allocated_pages(&self, block: BlockId) -> u32 {
        let mut open = self.points.open_blocks();
        open.find(|&(_, _, other, _)| other == block).map_or(self.shape.pages_per_block, |(.., page)| page)
    }

    /// Whether movers that do not gain space may open a block of `domain`, and so may the
    /// host where nobody else waits for one: what is left is for garbage collection alone.
    #[inline]
    pub fn has_spare_block(&self, domain: u32) -> bool {
        self.blocks.free_in(domain) > self.points.reserves().host
    }

    /// The same for an activity that needs one: where there is none it waits from now on,
    /// until it says that it does not.
    pub fn has_spare_block_for(&mut self, activity: Activity, domain: u32) -> bool {
        let has_one = self.has_spare_block(domain);
        if !has_one {
            self.points.waits.begin(activity, domain);
        }
        has_one
    }

    /// Whether the map entry of `lpn` is in memory; used if it is.
    #[inline]
    pub fn is_translated(&mut self, lpn: Lpn) -> bool {
        self.cache.as_mut().is_none_or(|cache| cache.touch(lpn.0 / LPNS_PER_MAP_PAGE, false))
    }

    /// The state the cache has after random writes to the whole device: full
    /// of random pages, all changed.
    pub fn warm_map_cache(&mut self, random: &mut flashkeel_engine::Stream) {
        let Some(cache) = &mut self.cache else { return };
        let mut pages: Vec<u32> = (0..cache.pages()).collect();
        for at in 0..cache.capacity() as usize {
            let other = at + random.below((pages.len() - at) as u64) as usize;
            pages.swap(at, other);
            cache.loaded(pages[at]);
            cache.touch(pages[at], true);
        }
    }

    /// Whether what a physical page held is lost.
    #[inline]
    pub fn is_lost(&self, ppn: Ppn) -> bool {
        self.lost.get(ppn.0)
    }

    #[inline]
    pub fn set_lost(&mut self, ppn: Ppn, lost: bool) {
        self.lost.set(ppn.0, lost);
    }

    /// Mapping units whose present copy is lost.
    pub fn lost_pages(&self) -> u64 {
        self.lost.iter().filter(|&ppn| self.map.is_valid(Ppn(ppn))).count() as u64
    }

    /// Whether a page of the host is lost for good.
    #[inline]
    pub fn is_gone(&self, lpn: Lpn) -> bool {
        self.gone.get(lpn.0)
    }

    /// Notes whether a page of the host is lost for good; not for long once the
    /// host writes or trims it.
    #[inline]
    pub fn set_gone(&mut self, lpn: Lpn, gone: bool) {
        if gone {
            self.gone.grow(self.shape.lpns);
        }
        self.gone.set(lpn.0, gone);
    }

    /// Whether the version of a page that its stripe's parity covers is neither
    /// in flash nor in memory.
    pub fn is_out_of_reach(&self, lpn: Lpn) -> bool {
        self.flash_copy(lpn).is_some_and(|ppn| self.is_lost(ppn)) && !self.is_updating(lpn)
    }

    /// Bytes of the tables that grow with capacity.
    pub fn table_bytes(&self) -> usize {
        self.map.table_bytes()
            + self.blocks.table_bytes()
            + self.cache.as_ref().map_or(0, MapCache::table_bytes)
    }

    /// Checks that every valid page has exactly one home: each logical page in
    /// flash is held, valid, by its physical page, and every block counts its
    /// valid pages right. Slow; for tests.
    ///
    /// # Panics
    /// If it is not so.
    pub fn check(&self) {
        let mut per_block = vec![0u32; self.blocks.len() as usize];
        for lpn in 0..self.map.lpns() as usize {
            if let Some(ppn) = self.flash_copy(Lpn(lpn as u32)) {
                assert_eq!(self.map.holds(ppn).0 as usize, lpn, "{ppn:?} holds another page than its own");
                assert!(self.map.is_valid(ppn), "{ppn:?} is a home but not valid");
                per_block[self.shape.block_of(ppn).0 as usize] += 1;
            }
        }
        for (block, &count) in per_block.iter().enumerate() {
            let block = BlockId(block as u32);
            assert_eq!(self.blocks.valid(block), count, "valid pages of {block:?}");
            let bits = self.shape.units_of_block(block).filter(|&ppn| self.map.is_valid(ppn)).count();
            assert_eq!(bits as u32, count, "validity bits of {block:?}");
            assert!(
                count == 0 || !matches!(self.blocks.state(block), BlockState::Free | BlockState::Retired),
                "{block:?} is free or retired but valid"
            );
        }
        for domain in 0..self.shape.domains {
            let full = self.blocks.domain_range(domain).map(|block| BlockId(block as u32));
            let dead = full.filter(|&block| {
                self.blocks.state(block) == BlockState::Full && self.blocks.valid(block) == 0
            });
            assert_eq!(self.blocks.dead_in(domain) as usize, dead.count(), "full blocks without valid pages");
        }
        self.check_parity();
        self.check_spares();
    }
}
