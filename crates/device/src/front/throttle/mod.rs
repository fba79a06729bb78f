//! The throttle axis: how long a write is held at the device's front door.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Time};

flashkeel_config::axis! {
    /// How long a write is held before it is worked on.
    pub enum ThrottleConfig as "throttle": Build {
        /// Not at all.
        None(None) in none = "none",
        /// As long as a fixed throughput is exceeded.
        StaticCap(StaticCap) in static_cap = "static-cap",
    }
}

impl Default for ThrottleConfig {
    fn default() -> Self {
        ThrottleConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, at rest; `None` where it never holds anything.
    fn build(&self) -> Option<Box<dyn Throttle>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A throttle.
pub trait Throttle: DynClone + Send {
    /// How long a write of `bytes` that arrives at `now` is held. Called once
    /// per write, in order of arrival.
    fn delay(&mut self, now: Time, bytes: u64) -> Span;
}

dyn_clone::clone_trait_object!(Throttle);
