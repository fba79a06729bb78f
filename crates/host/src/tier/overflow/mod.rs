//! The overflow axis: where a write goes that is above the budget of the medium that
//! it would go to.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// Where a write goes that is above the budget of its medium.
    pub enum OverflowConfig as "overflow": Build {
        /// To the other medium, if that has room and budget.
        Other(Other) in other = "other",
        /// Where it would go anyway; it is counted.
        Same(Same) in same = "same",
    }
}

impl Default for OverflowConfig {
    fn default() -> Self {
        OverflowConfig::Other(other::Other::default())
    }
}

/// Decides where such a write goes.
pub trait Build {
    /// Whether it goes to the other medium, which has room, and budget left if `is_free`.
    fn goes_elsewhere(&self, is_free: bool) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
