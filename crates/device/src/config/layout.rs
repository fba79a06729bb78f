//! A validated device in plain numbers.

use flashkeel_engine::units::Rate;

use crate::address::{LOGICAL_PAGE_SECTORS, Lpn};
use crate::flash::{Geometry, SuspensionConfig, Timing, WearConfig};
use crate::front::{BufferConfig, PowerConfig, ThrottleConfig, WindowConfig};
use crate::ftl::{
    AllocationConfig, GcConfig, PreconditionConfig, ReadPathConfig, RedundancyConfig, Reserves, ScrubConfig,
    SlcConfig, StaticStripes, WearLevellingConfig,
};
use crate::machine::ControllerConfig;
use crate::sched::SchedulerConfig;

/// What one partition consists of.
#[derive(Clone, Debug)]
pub(crate) struct PartitionLayout {
    pub chips: u32,
    /// Logical pages of the host.
    pub lpns: u32,
    pub map_pages: u32,
    pub cached_map_pages: u32,
    /// Flash pages of a stripe; 1 without redundancy.
    pub stripe_width: u32,
    /// Logical stripes, if any.
    pub static_stripes: Option<StaticStripes>,
    /// Allocation domains.
    pub domains: u32,
    /// Most blocks (of all chips of a stripe) emptied at the same time.
    pub gc_jobs: u32,
    /// Most blocks (of all chips of a stripe) scrubbed at the same time.
    pub scrub_jobs: u32,
    /// Thresholds in free blocks of a domain.
    pub gc_start_below: u32,
    pub gc_stop_above: u32,
    pub gc_force_below: u32,
    pub reserves: Reserves,
    /// Pages of the write buffer.
    pub buffer_pages: u32,
}

/// A validated device in plain numbers.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) geometry: Geometry,
    /// Planes of a chip, and whether they are programmed together.
    pub(crate) planes_per_chip: u32,
    pub(crate) multi_plane: bool,
    pub(crate) timing: Timing,
    pub(crate) wear: WearConfig,
    pub(crate) suspension: Option<SuspensionConfig>,
    pub(crate) controller: ControllerConfig,
    pub(crate) allocation: AllocationConfig,
    pub(crate) throttle: ThrottleConfig,
    pub(crate) window: WindowConfig,
    pub(crate) buffer: BufferConfig,
    pub(crate) slc_cache: SlcConfig,
    pub(crate) power: PowerConfig,
    pub(crate) redundancy: RedundancyConfig,
    pub(crate) read_path: ReadPathConfig,
    pub(crate) gc: GcConfig,
    pub(crate) scrub: ScrubConfig,
    pub(crate) wear_levelling: WearLevellingConfig,
    pub(crate) scheduler: SchedulerConfig,
    pub(crate) host_link: Option<Rate>,
    pub(crate) precondition: PreconditionConfig,
    /// Bits of the logical page number that select the partition.
    pub(crate) partition_bits: Vec<u32>,
    pub(crate) partition: PartitionLayout,
    /// Most flash reads that one request has in the device at a time.
    pub(crate) reads_per_request: u32,
    pub(crate) lpns: u64,
}

impl Layout {
    /// Capacity that the host can address, in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.lpns * LOGICAL_PAGE_SECTORS
    }

    /// The partition and the page within it of a logical page of the device.
    #[inline]
    pub(crate) fn locate(&self, lpn: u64) -> (usize, Lpn) {
        let (mut part, mut local) = (0, lpn);
        // From the highest bit down, so that removing one leaves the others
        // where they are.
        for (index, &bit) in self.partition_bits.iter().enumerate().rev() {
            part |= (local >> bit & 1) << index;
            local = (local >> (bit + 1) << bit) | (local & ((1 << bit) - 1));
        }
        (part as usize, Lpn(local as u32))
    }

    /// Bytes of memory that the device's tables will take: an estimate, from
    /// those that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        let mapped = self.lpns + (u64::from(self.partition.map_pages) << self.partition_bits.len());
        let blocks = u64::from(self.geometry.chips() * self.geometry.blocks_per_chip);
        // See `Map` and `Blocks`.
        mapped * 4 + self.geometry.slots() * 33 / 8 + blocks * 27
    }

    /// The flash array's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
}
