//! Garbage collection.

pub mod erasing;
pub mod invocation;
pub mod movement;
mod pace;
mod room;
pub mod rotation;
mod task;
pub mod victim;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use erasing::ErasingConfig;
pub use invocation::InvocationConfig;
pub use movement::MovementConfig;
pub use rotation::RotationConfig;
pub use victim::VictimConfig;

use crate::address::BlockId;
use crate::ftl::Bits;
use movement::Manner;
use rotation::Order;
use victim::Victim;

/// When, how fast and whereby garbage is collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// Free blocks of a partition below which collection starts; at least what
    /// moving data needs.
    pub start_below: u32,
    /// Free blocks of a partition above which collection stops.
    pub stop_above: u32,
    /// Free blocks of a partition below which collection gives way neither to
    /// the host nor to its turn, where it does above.
    pub force_below: u32,
    /// Which block is emptied next; of blocks of a chip that hold nothing any more, whatever the
    /// policy, the one that has been full longest.
    pub victim: VictimConfig,
    /// When collection runs.
    pub invocation: InvocationConfig,
    /// How valid pages get to another block.
    pub movement: MovementConfig,
    /// Which chips may collect at the same time.
    pub rotation: RotationConfig,
    /// When an emptied block is erased.
    pub erasing: ErasingConfig,
    /// Blocks emptied at the same time in each allocation domain of a partition; one
    /// where `movement` is `none`, or where it is not `queued` and a domain is one chip; one
    /// a chip where `rotation` is `fewest-free`.
    pub concurrent_victims: u32,
    /// Flash pages held in the controller while they are moved; never fewer than four and
    /// one for each allocation domain.
    pub pages_in_flight: u32,
}

impl Default for GcConfig {
    /// AutoSSD, §4.2; the paper gives no figure for the last two.
    fn default() -> Self {
        GcConfig {
            start_below: 128,
            stop_above: 256,
            force_below: 0,
            victim: VictimConfig::default(),
            invocation: InvocationConfig::default(),
            movement: MovementConfig::default(),
            rotation: RotationConfig::default(),
            erasing: ErasingConfig::default(),
            concurrent_victims: 16,
            pages_in_flight: 64,
        }
    }
}

impl GcConfig {
    /// Checks what does not depend on the rest of the device.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn validate(&self) -> Result<(), String> {
        if self.start_below > self.stop_above {
            return Err(format!(
                "gc.start_below is {}, above gc.stop_above, which is {}",
                self.start_below, self.stop_above
            ));
        }
        if self.concurrent_victims == 0 || self.concurrent_victims > 4096 {
            return Err(format!("gc.concurrent_victims is {}; 1 to 4096", self.concurrent_victims));
        }
        if self.pages_in_flight == 0 || self.pages_in_flight > 1 << 16 {
            return Err(format!("gc.pages_in_flight is {}; 1 to 65536", self.pages_in_flight));
        }
        if self.force_below > self.start_below {
            return Err(format!(
                "gc.force_below is {}, above gc.start_below, which is {}; collection is forced when it has given \
                 way for too long",
                self.force_below, self.start_below
            ));
        }
        Ok(())
    }
}

/// Of the blocks that nothing else needs, above `gc.stop_above`, this part may be kept for
/// bursts: a quarter fewer to collect from makes about a third more moves. Ours.
pub(crate) const MOST_AHEAD_DIVISOR: u32 = 4;

/// Garbage collection of one partition in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GcLayout {
    /// Thresholds in free blocks of a domain.
    pub start_below: u32,
    pub stop_above: u32,
    pub force_below: u32,
    /// Most blocks (of all chips of a stripe) of a domain emptied at the same
    /// time.
    pub jobs: u32,
    /// Flash pages held in the controller.
    pub pages_in_flight: u32,
    pub manner: Manner,
    /// On which chip the next block is emptied.
    pub order: Order,
    /// Whether erases wait for pauses of the host.
    pub erases_in_pauses: bool,
    /// Free blocks of a domain up to which collection may work ahead.
    pub most_ahead: u32,
}

/// Collection within one allocation domain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Domain {
    /// Between the start and the stop threshold.
    pub active: bool,
    /// Where the next search for a victim begins, so that ties spread.
    pub cursor: usize,
    /// Victims since the host could last write, or more blocks became free than
    /// ever since then.
    pub fruitless: u32,
    /// Most blocks that have been free since the host could last write.
    pub most_free: u32,
    /// The victim for which there was no room when it was chosen: it stays the
    /// next. Another choice would favour blocks with few valid pages.
    pub refused: Option<BlockId>,
    /// No victim was found or none had room; not tried again before a block
    /// is erased or becomes full.
    pub starved: bool,
}

/// The garbage collection task of one partition: when it collects what.
#[derive(Clone)]
pub(crate) struct Gc {
    /// Thresholds of each domain.
    pub start_below: u32,
    pub stop_above: u32,
    pub force_below: u32,
    pub invocation: InvocationConfig,
    /// Where thresholds go by what the host is expected to write.
    pub stock: Option<pace::Stock>,
    pub manner: Manner,
    pub order: Order,
    pub erases_in_pauses: bool,
    /// The member of each plane group whose turn it is.
    pub turns: Vec<u32>,
    /// Whether collection has given way to the host somewhere.
    pub gave_way: bool,
    pub victim: Box<dyn Victim>,
    /// `greedy`, where another policy was asked for: takes over when a whole
    /// round of blocks has been emptied in vain, so that space is always gained.
    pub last_resort: Option<Box<dyn Victim>>,
    pub domains: Vec<Domain>,
    /// The domains that would begin to empty another block.
    pub searching: Bits,
    /// Most blocks of one domain emptied at the same time.
    max_jobs: u32,
}
