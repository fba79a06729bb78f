//! A validated device in plain numbers.

use flashkeel_engine::units::Rate;

use flashkeel_engine::LOGICAL_PAGE_SECTORS;

use crate::address::Lpn;
use crate::flash::{Geometry, Suspension, Timing};
use crate::front::{BufferLayout, PowerConfig, ThrottleConfig, WindowConfig};
use crate::ftl::{PartitionLayout, Precondition, ReadPathConfig};
use crate::machine::ControllerConfig;
use crate::sched::SchedulerConfig;

/// A validated device in plain numbers, and the policies it is built with.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) geometry: Geometry,
    /// Planes of a chip, and whether they are programmed together.
    pub(crate) planes_per_chip: u32,
    pub(crate) multi_plane: bool,
    pub(crate) timing: Timing,
    pub(crate) suspension: Option<Suspension>,
    /// Cycles that a block endures, where wear is accounted.
    pub(crate) rated_cycles: Option<u32>,
    pub(crate) controller: ControllerConfig,
    pub(crate) host_link: Option<Rate>,
    /// What precedes the run, if anything does.
    pub(crate) precondition: Option<Precondition>,
    pub(crate) partitions: u16,
    /// Bits of the logical page number that select the partition.
    pub(crate) partition_bits: Vec<u32>,
    /// Logical pages of an NVM set, where partitions are sets: the pages of one follow each
    /// other; 0 otherwise.
    pub(crate) set_pages: u64,
    /// Whether windows are commanded.
    pub(crate) is_commanded: bool,
    /// The translation layer and the write buffer of each partition.
    pub(crate) partition: PartitionLayout,
    pub(crate) buffer: BufferLayout,
    /// Most flash reads that one request has in the device at a time.
    pub(crate) reads_per_request: u32,
    pub(crate) lpns: u64,
    pub(crate) policies: Policies,
}

/// The policies of what all partitions share.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub scheduler: SchedulerConfig,
    pub throttle: ThrottleConfig,
    pub window: WindowConfig,
    pub power: PowerConfig,
    pub read_path: ReadPathConfig,
}

impl Layout {
    /// Capacity that the host can address, in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.lpns * LOGICAL_PAGE_SECTORS
    }

    /// Reads of 4 KiB that the flash serves in a second at most, none from a buffer.
    pub fn reads_per_s(&self) -> u64 {
        let Geometry { channels, units_per_page, .. } = self.geometry;
        let shortest = (0..self.geometry.pages_per_block).map(|page| self.timing.read(page).0).min();
        let chips = u64::from(self.geometry.chips()) * u64::from(units_per_page);
        let by_chips = chips as f64 / shortest.unwrap_or(1).max(1) as f64;
        let by_channels = f64::from(channels) / self.timing.transfer(1).0.max(1) as f64;
        (by_chips.min(by_channels) * 1e9) as u64
    }

    /// Refuses windows that promise more reads than the flash of a set can serve in them.
    pub(crate) fn check_reads(&self) -> Result<(), String> {
        let policy = self.policies.window.policy();
        let (Some(reads), Some(window)) = (policy.promised_reads(), policy.longest()) else { return Ok(()) };
        let most = (self.reads_per_s() as f64 / f64::from(self.partitions) * window.as_secs_f64()) as u64;
        if reads > most {
            return Err(format!(
                "window.reads_typical is {reads}, but in window.time_maximum, {window}, the flash of a set reads \
                 {most} times 4 KiB at most"
            ));
        }
        Ok(())
    }

    /// The partition and the page within it of a logical page of the device.
    #[inline]
    pub(crate) fn locate(&self, lpn: u64) -> (usize, Lpn) {
        if let Some(set) = lpn.checked_div(self.set_pages) {
            return (set as usize, Lpn((lpn - set * self.set_pages) as u32));
        }
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
        let mapped = self.lpns + u64::from(self.partition.map_pages) * u64::from(self.partitions);
        let blocks = u64::from(self.geometry.chips() * self.geometry.blocks_per_chip);
        // See `Map` and `Blocks`.
        mapped * 4 + self.geometry.units() * 33 / 8 + blocks * 27
    }

    /// The flash array's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
}
