//! The hedge axis: when a second copy is asked for what a first has not given yet.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::Span;

flashkeel_config::axis! {
    /// When a second copy of a mirror is asked for what the first has not given yet
    /// (Dean and Barroso, "The Tail at Scale", CACM 2013).
    pub enum HedgeConfig as "hedge": Build {
        /// Never.
        None(None) in none = "none",
        /// After a time that is set.
        Fixed(Fixed) in fixed = "fixed",
        /// After a percentile of the latencies of late that is moved so that the share of
        /// reads that are asked twice is at most what it is set to, and near it where
        /// latencies differ.
        Percentile(Percentile) in percentile = "percentile",
    }
}

impl Default for HedgeConfig {
    fn default() -> Self {
        HedgeConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy; `None` where nothing is asked twice.
    fn build(&self) -> Option<Box<dyn Hedge>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Says when a second copy is asked.
pub trait Hedge: DynClone + Send {
    /// A read begins: how long the first copy has to answer; `None` if no other is asked.
    fn delay(&mut self) -> Option<Span>;

    /// The first copy has taken longer: whether another is asked now.
    fn may_ask(&mut self) -> bool {
        true
    }

    /// A copy that was asked first has answered after so long.
    fn answered(&mut self, latency: Span);
}

dyn_clone::clone_trait_object!(Hedge);
