//! The erasing axis: when a block that garbage collection has emptied is erased.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// When a block that garbage collection has emptied is erased.
    pub enum ErasingConfig as "erasing": Erasing {
        /// As soon as it is empty.
        AtOnce(AtOnce) in at_once = "at-once",
        /// When the host has nothing for the chip's channel, as long as at least
        /// `gc.force_below` blocks are free.
        InPauses(InPauses) in in_pauses = "in-pauses",
    }
}

impl Default for ErasingConfig {
    fn default() -> Self {
        ErasingConfig::AtOnce(at_once::AtOnce::default())
    }
}

/// An erasing policy.
pub trait Erasing {
    /// Whether an erase waits until the host has no work on the channel of its
    /// chip; not where free blocks are below `gc.force_below`, and space comes first.
    fn waits_for_pauses(&self) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
