//! The window axis: when background work may run.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Time};

pub use commanded::{Commands, Phase};

flashkeel_config::axis! {
    /// When garbage collection and other background work may run. It always
    /// may when the host would otherwise run out of free blocks.
    pub enum WindowConfig as "window": Build {
        /// At any time.
        None(None) in none = "none",
        /// In the second part of a fixed period; NVM sets take turns.
        Periodic(Periodic) in periodic = "periodic",
        /// In the windows that whoever uses the device commands, of each NVM set by
        /// itself; at first, and in a run where nobody does, at any time.
        Commanded(Commanded) in commanded = "commanded",
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        WindowConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy of set number `set` of so many; `None` where background work may run
    /// at any time.
    fn build(&self, set: u32, sets: u32) -> Option<Box<dyn WindowPolicy>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    /// The shortest window with background work, if the settings give one, and the key
    /// that does.
    fn shortest_background(&self) -> Option<(&'static str, Span)> {
        None
    }

    /// Whether windows are commanded.
    fn obeys(&self) -> bool {
        false
    }

    /// Reads of 4 KiB that a deterministic window promises to serve.
    fn promised_reads(&self) -> Option<u64> {
        None
    }

    /// How long a deterministic window lasts at most.
    fn longest(&self) -> Option<Span> {
        None
    }

    /// Flash pages that a deterministic window promises to take.
    fn promised_pages(&self) -> Option<u64> {
        None
    }
}

/// A schedule of the windows of one set.
pub trait WindowPolicy: DynClone + Send {
    /// Whether background work may run from `now` on, and until when that is
    /// so if it ends by itself. Called at the start, and at each time it has named.
    fn background(&mut self, now: Time) -> (bool, Option<Time>);

    /// The windows that are commanded, if they are.
    fn commands(&self) -> Option<&Commands> {
        None
    }

    /// The same, to change.
    fn commands_mut(&mut self) -> Option<&mut Commands> {
        None
    }
}

dyn_clone::clone_trait_object!(WindowPolicy);
