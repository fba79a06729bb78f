//! The SLC axis: whether host writes go first to cells used with one bit each,
//! which are programmed fast, and are folded into dense ones later.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod state;

pub(in crate::ftl) use state::Slc;
pub(crate) use state::SlcLayout;

flashkeel_config::axis! {
    /// Whether host data is programmed fast first and folded later.
    pub enum SlcConfig as "slc cache": Policy {
        /// Every program is a dense one.
        None(None) in none = "none",
        /// A bounded amount is programmed fast and folded in the background.
        Fold(Fold) in fold = "fold",
    }
}

impl Default for SlcConfig {
    fn default() -> Self {
        SlcConfig::None(none::None::default())
    }
}

/// An SLC policy.
pub trait Policy {
    /// The cache's settings; `None` where there is none.
    fn settings(&self) -> Option<&Fold> {
        Option::None
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

use fold::Fold;
