//! The translation layer of one partition in plain numbers.

use super::checkpoint::CheckpointLayout;
use super::gc::{GcLayout, InvocationConfig, VictimConfig};
use super::scrub::ScrubLayout;
use super::slc::SlcLayout;
use super::wear_levelling::WearLevellingLayout;
use super::{AllocationConfig, Reserves, SparesLayout, StaticStripes, UpdateConfig};
use crate::flash::{Geometry, WearConfig};

/// The translation layer of one partition in plain numbers, and the policies it
/// is built with.
#[derive(Clone, Debug)]
pub(crate) struct PartitionLayout {
    /// The whole device's flash array.
    pub geometry: Geometry,
    pub chips: u32,
    /// Logical pages of the host.
    pub lpns: u32,
    pub map_pages: u32,
    pub cached_map_pages: u32,
    /// Flash pages of a stripe; 1 without redundancy.
    pub stripe_width: u32,
    /// Logical stripes, if any.
    pub static_stripes: Option<StaticStripes>,
    /// Whether a power cut empties the write buffer.
    pub has_volatile_buffer: bool,
    /// Allocation domains.
    pub domains: u32,
    pub reserves: Reserves,
    pub gc: GcLayout,
    pub scrub: ScrubLayout,
    pub wear_levelling: WearLevellingLayout,
    /// Checkpoints of the map, if there are any.
    pub checkpoint: Option<CheckpointLayout>,
    pub slc: SlcLayout,
    /// Blocks that may retire, where any do.
    pub spares: Option<SparesLayout>,
    pub policies: Policies,
}

impl PartitionLayout {
    /// Mapping units that a block can hold and still free space as a victim: all but
    /// a flash page of them.
    pub fn useful_units(&self) -> u32 {
        let rows = self.geometry.units_per_block();
        let units = if self.stripe_width > 1 { rows * (self.stripe_width - 1) } else { rows };
        units.saturating_sub(self.geometry.units_per_page).max(1)
    }

    /// Whether map pages have a place in flash.
    pub fn map_in_flash(&self) -> bool {
        self.cached_map_pages < self.map_pages || self.checkpoint.is_some()
    }
}

/// The policies of a translation layer.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub allocation: AllocationConfig,
    pub wear: WearConfig,
    pub victim: VictimConfig,
    pub invocation: InvocationConfig,
    /// How the parity of logical stripes is updated.
    pub update: UpdateConfig,
}
