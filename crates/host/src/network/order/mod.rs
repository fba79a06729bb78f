//! The message order axis: which message a direction of a network carries next.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;

flashkeel_config::axis! {
    /// Which message goes next where several wait for a direction of a network.
    pub enum OrderConfig as "message order": Build {
        /// Oldest first.
        Fifo(Fifo) in fifo = "fifo",
        /// Small ones before large ones.
        SmallFirst(SmallFirst) in small_first = "small-first",
    }
}

impl Default for OrderConfig {
    fn default() -> Self {
        OrderConfig::Fifo(fifo::Fifo::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy.
    fn build(&self) -> Box<dyn Order>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Says who goes first; among equals the oldest does.
pub trait Order: DynClone + Send {
    /// Whether a message of so many bytes goes before those of which this is not so.
    fn is_preferred(&self, bytes: u64) -> bool;
}

dyn_clone::clone_trait_object!(Order);
