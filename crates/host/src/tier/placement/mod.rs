//! The placement axis: which writes go to the upper device of a tier.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Completion, Predictor, Request, Stream, Time};

flashkeel_config::axis! {
    /// Which writes go to the upper device, which has room for them.
    pub enum PlacementConfig as "placement": Build {
        /// None of them: the upper keeps copies of what is read, if anything.
        None(None) in none = "none",
        /// All of them.
        WriteBack(WriteBack) in write_back = "write-back",
        /// Those that are smaller than writes are on average, or no larger than a given
        /// size, and those of pages that the upper holds (Roy's NLCWIP and PLMlight).
        SmallLarge(SmallLarge) in small_large = "small-large",
        /// Those that the lower is predicted to be slow for, and a share of the
        /// others (SSDcheck's Hybrid PAS, §IV).
        HybridPas(HybridPas) in hybrid_pas = "hybrid-pas",
    }
}

impl Default for PlacementConfig {
    fn default() -> Self {
        PlacementConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy. `predictor` is there if it needs one.
    fn build(&self, predictor: Option<Box<dyn Predictor>>, random: Stream) -> Box<dyn Placement>;

    /// Whether any write ever goes to the upper.
    fn takes_any(&self) -> bool {
        true
    }

    /// Whether it asks a predictor.
    fn needs_predictor(&self) -> bool {
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

/// Decides where writes go.
pub trait Placement: DynClone + Send {
    /// A write has come, whether there is room for it or not.
    fn came(&mut self, _write: &Request) {}

    /// Whether a write belongs to the upper, where room is made for it then.
    fn takes(&mut self, now: Time, write: &Request) -> bool;

    /// Whether pages that the upper holds are written there, whatever becomes of the
    /// rest of their request.
    fn takes_hits(&self) -> bool {
        false
    }

    /// The lower gets a request.
    fn submitted(&mut self, _now: Time, _request: &Request) {}

    /// The lower has completed one.
    fn completed(&mut self, _now: Time, _completion: &Completion) {}

    /// The power is cut: what the lower got has been ended.
    fn cut_power(&mut self, _now: Time) {}
}

dyn_clone::clone_trait_object!(Placement);
