//! The power axis: whether an idle device goes to sleep.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Stream};

flashkeel_config::axis! {
    /// What a device does that nobody asks anything of.
    pub enum PowerConfig as "power": Build {
        /// Stays awake.
        None(None) in none = "none",
        /// Goes to sleep; the next request has to wake it.
        IdleSleep(IdleSleep) in idle_sleep = "idle-sleep",
    }
}

impl Default for PowerConfig {
    fn default() -> Self {
        PowerConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy; `None` where the device never sleeps.
    fn build(&self, random: Stream) -> Option<Box<dyn Power>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A power policy.
pub trait Power: DynClone + Send {
    /// How long the device takes to wake after it has had no request for
    /// `idle`. Called for every request that finds no other.
    fn wake(&mut self, idle: Span) -> Span;
}

dyn_clone::clone_trait_object!(Power);
