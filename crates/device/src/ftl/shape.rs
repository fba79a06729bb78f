//! What never changes of a partition: how it is laid out, and how its numbers
//! follow from each other.

use super::allocation::{AllocationConfig, Spread};
use super::divisor::Divisor;
use super::{PartitionLayout, StaticStripes, Stripes};
use crate::address::{BlockId, ChipId, Lpn, Ppn};

/// The constants of one partition. Its tables have a copy of their own, so that
/// either can be had without the other.
#[derive(Clone)]
pub(crate) struct Shape {
    /// Partition number.
    pub index: u16,
    /// How blocks and pages lie on the device's chips.
    pub stripes: Stripes,
    /// Logical stripes, if any.
    pub static_stripes: Option<StaticStripes>,
    /// Whether the copy of a page in flash stays valid behind a buffered one.
    pub keeps_behind: bool,
    pub units_per_page: u32,
    pub pages_per_block: u32,
    pub units_per_block: u32,
    /// Divides by `units_per_block`.
    by_block: Divisor,
    /// Logical pages of the host; map pages are numbered after them.
    pub lpns: u32,
    /// Logical pages in all: of the host, of the map and of parity.
    pub all_lpns: u32,
    pub ppns: u32,
    /// Allocation domains.
    pub domains: u32,
    allocation: AllocationConfig,
    /// What pages are spread over.
    spread: Spread,
    /// Whether map pages have a place in flash.
    pub map_in_flash: bool,
}

impl Shape {
    /// Of partition number `index` of a validated device.
    pub fn new(layout: &PartitionLayout, index: u16) -> Self {
        let &PartitionLayout { ref geometry, domains, static_stripes, .. } = layout;
        let units_per_page = geometry.units_per_page;
        let stripes = Stripes::new(u32::from(index) * layout.chips, layout.chips, layout.stripe_width);
        let pages_per_block = geometry.pages_per_block * stripes.width();
        let is_by_chip = stripes.width() == 1 && layout.chips.is_multiple_of(geometry.chips_per_channel);
        let per_channel = if is_by_chip { geometry.chips_per_channel } else { 1 };
        Shape {
            index,
            stripes,
            static_stripes,
            keeps_behind: static_stripes.is_some() || layout.has_volatile_buffer,
            units_per_page,
            pages_per_block,
            units_per_block: pages_per_block * units_per_page,
            by_block: Divisor::new(pages_per_block * units_per_page),
            lpns: layout.lpns,
            all_lpns: layout.lpns
                + layout.map_pages
                + static_stripes.map_or(0, |stripes| stripes.parity_lpns()),
            ppns: layout.chips * geometry.blocks_per_chip * geometry.units_per_block(),
            domains,
            allocation: layout.policies.allocation.clone(),
            spread: Spread { units_per_page, domains, per_channel },
            map_in_flash: layout.map_in_flash(),
        }
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

    /// The number of a chip within the partition.
    #[inline]
    pub fn chip_in_partition(&self, chip: ChipId) -> usize {
        (chip.0 - self.stripes.member(0, 0).0) as usize
    }

    /// The block of a physical page.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_block.divide(ppn.0))
    }

    /// The block of a flash page.
    #[inline]
    pub fn block_of_page(&self, page: u32) -> BlockId {
        BlockId(page / self.pages_per_block)
    }

    /// The flash page with so many others of its block before it.
    #[inline]
    pub fn page_of(&self, block: BlockId, page_in_block: u32) -> u32 {
        block.0 * self.pages_per_block + page_in_block
    }

    /// The first physical page of a flash page.
    #[inline]
    pub fn first_unit(&self, page: u32) -> Ppn {
        Ppn(page * self.units_per_page)
    }

    /// The physical pages of a block.
    pub fn units_of_block(&self, block: BlockId) -> impl Iterator<Item = Ppn> + use<> {
        let first = block.0 * self.units_per_block;
        (first..first + self.units_per_block).map(Ppn)
    }

    /// Mapping units of a block that can hold data.
    pub fn data_units_per_block(&self) -> u32 {
        match self.stripes.width() {
            1 => self.units_per_block,
            width => self.units_per_block / width * (width - 1),
        }
    }

    /// The LPN under which a map page is itself mapped.
    #[inline]
    pub fn map_lpn(&self, page: u32) -> Lpn {
        Lpn(self.lpns + page)
    }

    /// Flash pages that moving `units` mapping units takes, parity included.
    pub fn pages_for(&self, units: u32) -> u32 {
        self.stripes.with_parity(units.div_ceil(self.units_per_page))
    }
}
