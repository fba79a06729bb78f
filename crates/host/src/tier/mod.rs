//! The tier axis: which writes go to an NVM in front of the SSD.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod frames;
mod stage;

use dyn_clone::DynClone;
use flashkeel_device::LOGICAL_PAGE_BYTES;
use flashkeel_engine::{Completion, Predictor, Request, Span, Stream, Time, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use stage::{Tier, TierReport};

flashkeel_config::axis! {
    /// Which writes go to the NVM in front of each SSD.
    pub enum TierConfig as "tier": Build {
        /// There is no NVM.
        None(None) in none = "none",
        /// All of them, as long as there is room.
        WriteBack(WriteBack) in write_back = "write-back",
        /// Those that the SSD is predicted to be slow for, and a share of the
        /// others (SSDcheck's Hybrid PAS, §IV).
        HybridPas(HybridPas) in hybrid_pas = "hybrid-pas",
    }
}

impl Default for TierConfig {
    fn default() -> Self {
        TierConfig::None(none::None::default())
    }
}

/// How the background moves data from the NVM to the SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainConfig {
    /// Time between two batches.
    pub period: Span,
    /// Data of a batch, oldest first. A batch begins only when the one before
    /// it has ended.
    pub batch: Bytes,
}

impl Default for DrainConfig {
    /// Ours; SSDcheck says no more than that it is done periodically.
    fn default() -> Self {
        DrainConfig { period: Span::from_ms(10), batch: Bytes(256 << 10) }
    }
}

impl DrainConfig {
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.period == Span::ZERO {
            return Err("drain.period is 0ns; it must be longer".into());
        }
        if self.batch.0 < LOGICAL_PAGE_BYTES {
            return Err(format!("drain.batch is {}; at least a page of 4KiB", self.batch));
        }
        Ok(())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy; `None` where there is no NVM. `predictor` is there if the
    /// policy needs one.
    fn build(&self, predictor: Option<Box<dyn Predictor>>, random: Stream) -> Option<Box<dyn Placement>>;

    /// Whether it needs an NVM.
    fn needs_nvm(&self) -> bool {
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
    /// Whether a write goes to the NVM, which has room for it.
    fn takes(&mut self, now: Time, write: &Request) -> bool;

    /// The SSD gets a request.
    fn submitted(&mut self, _now: Time, _request: &Request) {}

    /// The SSD has completed one.
    fn completed(&mut self, _now: Time, _completion: &Completion) {}

    /// The power is cut: what the SSD got has been ended.
    fn cut_power(&mut self, _now: Time) {}
}

dyn_clone::clone_trait_object!(Placement);
