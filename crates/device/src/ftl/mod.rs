//! The flash translation layer of one partition: mapping, block states, and
//! the tasks that keep them.

mod aging;
pub mod allocation;
mod background;
mod bits;
mod blocks;
mod copies;
mod divisor;
mod ecc_check;
mod entries;
mod faults;
mod fill;
pub mod gc;
mod image;
mod layout;
mod map;
mod map_cache;
mod mapping;
mod pages;
mod points;
mod power_cut;
mod programs;
pub mod read_path;
pub mod redundancy;
mod relocation;
pub mod slc;
mod updates;

macro_rules! modules {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $($weight:tt)* }
                share { $($share:tt)* }
                work { $($Work:ident $(in $module:ident)?)? }
            }
        )+ }
        others { $($others:tt)* }
    ) => {
        $($($(mod $module;)?)?)+
    };
}

tasks!(modules);

use std::collections::VecDeque;

pub(crate) use aging::Aging;
pub use allocation::AllocationConfig;
use allocation::Spread;
pub(crate) use background::Gauge;
use background::Tasks;
pub(crate) use bits::Bits;
pub use blocks::{BlockState, Blocks};
pub use checkpoint::CheckpointConfig;
pub(crate) use checkpoint::CheckpointLayout;
use divisor::Divisor;
pub(crate) use entries::{Entries, Entry, Lane};
pub(crate) use faults::Part;
use faults::Restoring;
pub(crate) use fill::Precondition;
pub use fill::{Pattern, PreconditionConfig, SteadyState};
pub use gc::GcConfig;
pub(crate) use layout::{PartitionLayout, Policies};
pub(crate) use map::Map;
pub(crate) use map_cache::{LPNS_PER_MAP_PAGE, MapCache, Waiter};
pub(crate) use pages::Page;
use pages::Pages;
pub(crate) use points::{Points, Reserves};
pub(crate) use power_cut::Kept;
pub use read_path::ReadPathConfig;
pub use redundancy::RedundancyConfig;
pub(crate) use redundancy::{StaticStripes, Stripes, UpdateConfig};
use relocation::Relocation;
pub use scrub::ScrubConfig;
pub(crate) use scrub::ScrubLayout;
pub use slc::SlcConfig;
pub use wear_levelling::WearLevellingConfig;
pub(crate) use wear_levelling::WearLevellingLayout;

use crate::address::{BlockId, ChipId, Home, Lpn, NONE, Ppn};
use crate::flash::BlockWear;
use crate::sched::tasks::tasks;
use crate::sched::{FlashOp, FlashOpId};
use ecc_check::EccCheck;
use updates::Updates;

/// The translation layer of one partition.
#[derive(Clone)]
pub(crate) struct Ftl {
    /// Partition number.
    index: u16,
    /// How blocks and pages lie on the device's chips.
    pub stripes: Stripes,
    /// Logical stripes, if any, and how their parity is updated.
    pub static_stripes: Option<StaticStripes>,
    /// Whether the copy of a page in flash stays valid behind a buffered one.
    keeps_behind: bool,
    parity_update: UpdateConfig,
    updates: Updates,
    /// What pages hold, where their data is real.
    pub pages: Option<Pages>,
    /// Physical pages that hold nothing any more; without room as long as
    /// nothing has failed.
    lost: Bits,
    /// Pages of the host that are lost for good.
    gone: Bits,
    restoring: Restoring,
    ecc_check: EccCheck,
    /// With logical stripes: pages that the host has trimmed.
    trimmed: Bits,
    slots_per_page: u32,
    pages_per_block: u32,
    slots_per_block: u32,
    /// Divides by `slots_per_block`.
    by_block: Divisor,
    /// Logical pages of the host; map pages are numbered after them.
    lpns: u32,
    allocation: AllocationConfig,
    domains: u32,
    /// Whether map pages have a place in flash.
    map_in_flash: bool,
    /// What pages are spread over.
    spread: Spread,
    pub map: Map,
    pub blocks: Blocks,
    /// Effective wear of the blocks, where it is accounted.
    pub wear: Option<BlockWear>,
    pub entries: Entries,
    points: Points,
    /// `None` when the whole map is in memory.
    cache: Option<MapCache>,
    /// Evicted map pages not yet programmed, by domain.
    map_lanes: Vec<Lane>,
    /// Programs without a free block, oldest first, by domain.
    stalled_host: Vec<VecDeque<FlashOpId>>,
    stalled_map: Vec<VecDeque<FlashOpId>>,
    pub gc: gc::Gc,
    slc: Option<slc::Slc>,
    tasks: Tasks,
    relocation: Relocation,
    /// Entries of the program that finished last.
    pub finished: Vec<Entry>,
}

impl Ftl {
    /// An empty partition number `index` of a validated device.
    pub fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
        let &PartitionLayout { ref geometry, domains, static_stripes, .. } = layout;
        let all_lpns =
            layout.lpns + layout.map_pages + static_stripes.map_or(0, |stripes| stripes.parity_lpns());
        let ppns = layout.chips * geometry.blocks_per_chip * geometry.slots_per_block();
        let stripes = Stripes::new(u32::from(index) * layout.chips, layout.chips, layout.stripe_width);
        let pages_per_block = geometry.pages_per_block * stripes.width();
        let is_by_chip = stripes.width() == 1 && layout.chips.is_multiple_of(geometry.chips_per_channel);
        let per_channel = if is_by_chip { geometry.chips_per_channel } else { 1 };
        let cached = layout.cached_map_pages < layout.map_pages;
        Ftl {
            index,
            stripes,
            static_stripes,
            keeps_behind: static_stripes.is_some() || layout.has_volatile_buffer,
            parity_update: layout.policies.update.clone(),
            updates: Updates::default(),
            pages: None,
            lost: Bits::default(),
            gone: Bits::default(),
            restoring: Restoring::default(),
            ecc_check: EccCheck::default(),
            trimmed: Bits::default(),
            slots_per_page: geometry.slots_per_page,
            pages_per_block,
            slots_per_block: pages_per_block * geometry.slots_per_page,
            by_block: Divisor::new(pages_per_block * geometry.slots_per_page),
            lpns: layout.lpns,
            allocation: layout.policies.allocation.clone(),
            domains,
            map_in_flash: layout.map_in_flash(),
            spread: Spread { slots_per_page: geometry.slots_per_page, domains, per_channel },
            map: Map::new(all_lpns, ppns),
            blocks: Blocks::new(stripes.groups(), geometry.blocks_per_chip, domains, stripes.width()),
            wear: layout
                .policies
                .wear
                .policy()
                .build()
                .map(|law| BlockWear::new(law, stripes.groups() * geometry.blocks_per_chip)),
            entries: Entries::default(),
            points: Points::new(
                stripes.groups(),
                geometry.chips_per_channel,
                domains,
                pages_per_block,
                layout.reserves,
            ),
            cache: cached.then(|| MapCache::new(layout.map_pages, layout.cached_map_pages)),
            map_lanes: vec![Lane::EMPTY; domains as usize],
            stalled_host: vec![VecDeque::new(); domains as usize],
            stalled_map: vec![VecDeque::new(); domains as usize],
            gc: gc::Gc::new(layout, index, seed),
            slc: slc::Slc::new(layout),
            tasks: Tasks::new(layout),
            relocation: Relocation::new(domains, geometry.slots_per_page, |task| {
                Self::pages_in_flight(layout, task)
            }),
            finished: Vec::new(),
        }
    }

    /// Forgets what a restored partition would not know either (rotations,
    /// random numbers drawn), so that a run is the same from a saved state.
    pub fn rest(&mut self, layout: &PartitionLayout, seed: u64) {
        self.gc = gc::Gc::new(layout, self.index, seed);
        self.points.rest();
        self.note_rest();
    }

    /// The domain in which a logical page stays.
    #[inline]
    pub fn domain_of(&self, lpn: Lpn) -> u32 {
        if let Some(stripes) = &self.static_stripes {
            return stripes.chip_of(lpn);
        }
        match self.domains {
            1 => 0,
            _ => self.allocation.policy().domain_of(lpn, self.spread),
        }
    }

    /// The block of a physical page.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_block.divide(ppn.0))
    }

    /// Mapping units of a block that can hold data.
    pub fn data_slots_per_block(&self) -> u32 {
        match self.stripes.width() {
            1 => self.slots_per_block,
            width => self.slots_per_block / width * (width - 1),
        }
    }

    /// Points an operation at a flash page.
    #[inline]
    pub fn aim(&self, operation: &mut FlashOp, page: u32) {
        let block = BlockId(page / self.pages_per_block);
        let (chip, row) = self.stripes.locate(self.blocks.chip(block), page % self.pages_per_block);
        operation.chip = chip;
        operation.target = page;
        operation.page_in_block = row as u16;
    }

    /// The chip of a flash page.
    pub fn chip_of(&self, page: u32) -> ChipId {
        let block = BlockId(page / self.pages_per_block);
        self.stripes.locate(self.blocks.chip(block), page % self.pages_per_block).0
    }

    /// A read of a flash page has been generated.
    #[inline]
    pub fn begin_read(&mut self, page: u32) {
        self.blocks.begin_read(BlockId(page / self.pages_per_block));
    }

    /// The other pages of a flash page's stripe, if they are all programmed.
    pub fn stripe_mates(&self, page: u32) -> Option<impl Iterator<Item = u32> + Clone + use<>> {
        let state = self.blocks.state(BlockId(page / self.pages_per_block));
        let first = self.stripes.first_of_row(page);
        let is_complete = matches!(state, BlockState::Full | BlockState::Victim) && self.stripes.width() > 1;
        is_complete.then(|| (first..first + self.stripes.width()).filter(move |&mate| mate != page))
    }

    /// Gives `lpn` a new home; a former copy in flash becomes garbage.
    /// Returns the former home.
    #[inline(always)]
    pub fn move_home(&mut self, lpn: Lpn, home: Home) -> Home {
        let former = self.map.set_home(lpn, home);
        if former.0 < self.map.ppns() {
            let ppn = Ppn(former.0);
            self.map.set_invalid(ppn);
            self.blocks.lose(self.block_of(ppn), 1);
        }
        former
    }

    /// Asks the processor to fetch what reading `lpn`, or else writing it anew,
    /// changes at its home in flash.
    #[inline]
    pub fn prefetch_home(&self, for_read: bool, lpn: Lpn) {
        let Some(ppn) = self.map.flash_home(lpn) else { return };
        let block = self.block_of(ppn);
        if for_read {
            self.blocks.prefetch_reads(block);
        } else {
            self.map.prefetch_valid(ppn);
            self.blocks.prefetch_valid(block);
        }
    }

    /// Asks the processor to fetch the map entries of a list of entries.
    #[inline]
    fn prefetch_homes(&self, mut entry: u32) {
        while entry != NONE {
            self.map.prefetch(self.entries[entry].lpn);
            entry = self.entries.next(entry);
        }
    }

    /// Asks the processor to fetch the map entries of a logical stripe.
    #[inline]
    pub fn prefetch_stripe(&self, stripe: u32) {
        let stripes = self.static_stripes.expect("a device with stripes");
        let data = stripes.data(stripe);
        self.map.prefetch(Lpn(data.start));
        self.map.prefetch(Lpn(data.end - 1));
        self.map.prefetch(stripes.parity(stripe, 0));
    }

    /// Free blocks, counted chip by chip.
    pub fn free_blocks(&self) -> u32 {
        self.blocks.free_total() * self.stripes.width()
    }

    /// Mapping units in free blocks.
    pub fn free_slots(&self) -> u64 {
        u64::from(self.blocks.free_total()) * u64::from(self.slots_per_block)
    }

    /// Mapping units not yet allocated in open blocks.
    pub fn open_slots(&self) -> u64 {
        u64::from(self.points.room_total()) * u64::from(self.slots_per_page)
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
                per_block[self.block_of(ppn).0 as usize] += 1;
            }
        }
        for (block, &count) in per_block.iter().enumerate() {
            let block = BlockId(block as u32);
            assert_eq!(self.blocks.valid(block), count, "valid pages of {block:?}");
            let first = block.0 * self.slots_per_block;
            let bits =
                (first..first + self.slots_per_block).filter(|&ppn| self.map.is_valid(Ppn(ppn))).count();
            assert_eq!(bits as u32, count, "validity bits of {block:?}");
            assert!(
                count == 0 || self.blocks.state(block) != BlockState::Free,
                "{block:?} is free but valid"
            );
        }
        for domain in 0..self.domains {
            let full = self.blocks.domain_range(domain).map(|block| BlockId(block as u32));
            let dead = full.filter(|&block| {
                self.blocks.state(block) == BlockState::Full && self.blocks.valid(block) == 0
            });
            assert_eq!(self.blocks.dead_in(domain) as usize, dead.count(), "full blocks without valid pages");
        }
        self.check_parity();
    }
}
