//! The admission axis: which clean copies the upper device takes, of those that it
//! is offered: what a read has found below, and what a tier above gives up.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;

use super::table::Uses;

flashkeel_config::axis! {
    /// Which clean copies the upper device takes of those that it is offered.
    pub enum AdmissionConfig as "admission": Build {
        /// None.
        None(None) in none = "none",
        /// All.
        All(All) in all = "all",
        /// Those that have been used more often than what is there (Roy's relevant
        /// data), and all while there is room.
        Relevant(Relevant) in relevant = "relevant",
    }
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        AdmissionConfig::None(none::None::default())
    }
}

/// A clean copy, and the upper that it may go to.
#[derive(Clone, Copy)]
pub struct Offer<'a> {
    /// How often it was used where it comes from.
    pub uses: u8,
    /// Whether there is a frame that nobody uses.
    pub has_room: bool,
    /// How often the clean copies in the upper have been used.
    pub clean: &'a Uses,
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy.
    fn build(&self) -> Box<dyn Admission>;

    /// Whether it ever takes any.
    fn takes_any(&self) -> bool {
        true
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Decides which clean copies are taken.
pub trait Admission: DynClone + Send {
    /// Whether the upper takes the copy.
    fn takes(&mut self, offer: Offer<'_>) -> bool;
}

dyn_clone::clone_trait_object!(Admission);
