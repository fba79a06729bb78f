//! The eviction axis: what leaves the upper device when it is full.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;

use super::table::List;

flashkeel_config::axis! {
    /// What leaves the upper device for others.
    pub enum EvictionConfig as "eviction": Build {
        /// Nothing: it holds only what was written, and only until that has been
        /// written back.
        None(None) in none = "none",
        /// What has not been used for longest.
        Lru(Lru) in lru = "lru",
    }
}

impl Default for EvictionConfig {
    fn default() -> Self {
        EvictionConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy.
    fn build(&self) -> Box<dyn Eviction>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Decides what leaves.
pub trait Eviction: DynClone + Send {
    /// Whether what has been written back stays, as a clean copy, and what is used
    /// again stays longer.
    fn keeps(&self) -> bool;

    /// The list whose oldest frame leaves, of those that have one, given by when it
    /// was used.
    fn victim(&self, clean: Option<u32>, modified: Option<u32>) -> Option<List>;

    /// How many of so many frames are kept free.
    fn ahead(&self, frames: u64) -> u64;
}

dyn_clone::clone_trait_object!(Eviction);
