//! The window axis: when background work may run.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Time, Window};

flashkeel_config::axis! {
    /// When garbage collection and other background work may run. It always
    /// may when the host would otherwise run out of free blocks.
    pub enum WindowConfig as "window": Build {
        /// At any time.
        None(None) in none = "none",
        /// In the second part of a fixed period.
        Periodic(Periodic) in periodic = "periodic",
        /// In the windows that whoever uses the device commands; at first, and
        /// in a run where nobody does, at any time.
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
    /// The policy; `None` where background work may run at any time.
    fn build(&self) -> Option<Box<dyn WindowPolicy>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A schedule of windows.
pub trait WindowPolicy: DynClone + Send {
    /// Whether background work may run from `now` on, and until when that is
    /// so if it ends by itself. Called at the start, at each time it has named,
    /// and after each command that it obeys.
    fn background(&mut self, now: Time) -> (bool, Option<Time>);

    /// Whether windows are commanded.
    fn obeys(&self) -> bool {
        false
    }

    /// A window is commanded, of a policy that obeys.
    fn command(&mut self, _window: Window) {}
}

dyn_clone::clone_trait_object!(WindowPolicy);
