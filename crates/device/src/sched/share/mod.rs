//! The share-control axis: what share a background task has, given the one that eq. 1 of
//! AutoSSD says.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use super::Signals;

flashkeel_config::axis! {
    /// What share a background task has, beside what its error says.
    pub enum ControlConfig as "share control": Control {
        /// The share that follows the task's error, and nothing else.
        Feedback(Feedback) in feedback = "feedback",
        /// More while the host is expected to be idle, less while requests are expected.
        Foresight(Foresight) in foresight = "foresight",
    }
}

impl Default for ControlConfig {
    fn default() -> Self {
        ControlConfig::Feedback(feedback::Feedback::default())
    }
}

/// A way to control shares.
pub trait Control {
    /// The share in force of a task at work whose error gives it `share`, between the task's
    /// `least` and `most`.
    fn share(&self, share: f64, least: f64, most: f64, signals: &Signals) -> f64;

    /// For how long at least the host has to be expected to be idle for
    /// [`Signals::idle_expected`]; `None` where that does not matter.
    fn foresees(&self) -> Option<flashkeel_engine::Span> {
        None
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
