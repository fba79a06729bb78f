//! The axis of demands: how many reads each host is expected to need in a window.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Time};

use super::foresight::Foresight;

flashkeel_config::axis! {
    /// How many reads each host is expected to need in a deterministic window.
    pub enum DemandConfig as "demand": Build {
        /// By those it has made of late (coordinator directed).
        Smoothed(Smoothed) in smoothed = "smoothed",
        /// As many as it will make, which it knows beforehand (host directed): the ideal.
        Exact(Exact) in exact = "exact",
    }
}

impl Default for DemandConfig {
    fn default() -> Self {
        DemandConfig::Smoothed(smoothed::Smoothed::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, for so many hosts.
    fn build(&self, hosts: usize) -> Box<dyn Demand>;

    /// Whether it has to know arrivals before they come.
    fn foresees(&self) -> bool {
        false
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Tells what hosts need, in reads of 4 KiB.
pub trait Demand: DynClone + Send {
    /// What a host needs in a window of that length, of which one begins at `now`; `None`
    /// where nothing is known of it yet.
    fn need(&mut self, now: Time, host: usize, window: Span, foresight: &Foresight) -> Option<u64>;

    /// Whether a host needs no more than that, so that a minimum above it would be lost.
    fn is_exact(&self) -> bool {
        false
    }

    /// A host has asked for so many reads in a window; in a whole one it would have been so
    /// many.
    fn measured(&mut self, _host: usize, _reads: f64) {}

    /// Power is cut, and comes back at once: what was measured is forgotten.
    fn cut_power(&mut self) {}
}

dyn_clone::clone_trait_object!(Demand);
