//! The axis of windows in turn: which copy of a mirror does its background work when.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Time};

flashkeel_config::axis! {
    /// Which copy of a mirror does its background work when; the others are in
    /// deterministic windows meanwhile.
    pub enum WindowsConfig as "windows in turn": Build {
        /// Each as its device does by itself.
        None(None) in none = "none",
        /// One after the other, as long as each needs.
        Alternate(Alternate) in alternate = "alternate",
    }
}

impl Default for WindowsConfig {
    fn default() -> Self {
        WindowsConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy; `None` where no windows are commanded.
    fn build(&self) -> Option<Box<dyn Turns>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Says whose turn it is.
pub trait Turns: DynClone + Send {
    /// How long a copy has for background work before it is asked to end that. One that
    /// cannot end it yet is asked again.
    fn rest(&self) -> Span;

    /// Which of the copies, all in deterministic windows, rests next.
    fn next(&self, copies: &[Standing]) -> usize;
}

dyn_clone::clone_trait_object!(Turns);

/// A copy in a deterministic window.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Which copy.
    pub copy: usize,
    /// Since when its window lasts.
    pub since: Time,
    /// Pages of 4 KiB that may still be written in it; `None` for any number.
    pub writes_left: Option<u64>,
}
