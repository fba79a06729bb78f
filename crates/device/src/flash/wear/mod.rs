//! The wear axis: what a cycle of programming and erasing costs a block.
//!
//! One file per law. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::Span;

flashkeel_config::axis! {
    /// How cycles of programming and erasing wear out a block.
    pub enum WearConfig as "wear law": Build {
        /// Not accounted: erases are counted, and that is all.
        None(None) in none = "none",
        /// Every cycle counts in full.
        Rated(Rated) in rated = "rated",
        /// Idle time between two cycles makes the later one count less.
        SelfRecovery(SelfRecovery) in self_recovery = "self-recovery",
    }
}

impl Default for WearConfig {
    fn default() -> Self {
        WearConfig::None(none::None::default())
    }
}

/// Makes a law from its settings.
pub trait Build {
    /// The law; `None` where wear is not accounted.
    fn build(&self) -> Option<Box<dyn Law>>;

    /// Cycles a block endures without recovery; `None` where wear is not
    /// accounted.
    fn rated_cycles(&self) -> Option<u32>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        endures(self.rated_cycles())
    }
}

/// Refuses to wear out without a cycle.
fn endures(rated_cycles: Option<u32>) -> Result<(), String> {
    match rated_cycles {
        Some(0) => Err("rated_cycles is 0; a block endures at least one cycle".into()),
        _ => Ok(()),
    }
}

/// A law of wear.
pub trait Law: DynClone + Send {
    /// What a cycle costs, as a share of a rated one, of a block that has been
    /// idle for `idle` since its last cycle. Exactly 1 without idle time, and
    /// less the longer it is.
    fn cost(&self, idle: Span) -> f64;
}

dyn_clone::clone_trait_object!(Law);
