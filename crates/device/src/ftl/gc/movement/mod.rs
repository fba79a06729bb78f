//! The movement axis: how valid pages of a block that garbage collection
//! empties get to another block.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use crate::sched::Purpose;

flashkeel_config::axis! {
    /// How valid pages of a block being collected get to another block.
    pub enum MovementConfig as "movement": Movement {
        /// Page by page through the request queues, to any chip of the domain.
        Queued(Queued) in queued = "queued",
        /// Block by block, holding chip and channel until the block is empty.
        ChannelBlocking(ChannelBlocking) in channel_blocking = "channel-blocking",
        /// Like `channel-blocking`, but giving way to the host between pages as
        /// long as enough blocks are free.
        SemiPreemptive(SemiPreemptive) in semi_preemptive = "semi-preemptive",
        /// Block by block by copyback, which holds the chip and leaves the
        /// channel free.
        PlaneBlocking(PlaneBlocking) in plane_blocking = "plane-blocking",
        /// Page by page by copyback: a move may be suspended as often as a program
        /// may, and between two the host goes first.
        PageCopyback(PageCopyback) in page_copyback = "page-copyback",
        /// Not at all: an ideal reference in which space appears by magic.
        /// Collection takes no time, wears nothing and is not counted.
        None(None) in none = "none",
    }
}

impl Default for MovementConfig {
    fn default() -> Self {
        MovementConfig::Queued(queued::Queued::default())
    }
}

/// How pages are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// By reads and programs of their own.
    Queued,
    /// By operations that each move pages within the chip, as long as it has room
    /// for them; else by reads and programs.
    Inside(Inside),
    /// At once, without any flash operation.
    Untimed,
}

/// A move within a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The operation.
    pub purpose: Purpose,
    /// Most flash pages programmed by one of them.
    pub pages: u32,
    /// Whether the next one waits while the channel has work of the host.
    pub yields: bool,
    /// After how many moves in a row without passing the controller pages are read, to
    /// check them; 0 if never.
    pub checked_after: u32,
}

impl Manner {
    /// After how many moves in a row without passing the controller pages are read, to
    /// check them; 0 if never.
    #[inline]
    pub fn checked_after(self) -> u32 {
        if let Manner::Inside(inside) = self { inside.checked_after } else { 0 }
    }
}

/// A movement policy.
pub trait Movement {
    /// How pages are moved.
    fn manner(&self) -> Manner;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
