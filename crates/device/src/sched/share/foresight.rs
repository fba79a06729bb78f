//! `foresight`: background tasks have their largest share while the host is expected to be
//! idle, and a part of what their error says while requests are expected. AutoSSD names it
//! as an extension (§6) and gives no figures; predictor and settings are ours.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Control;
use crate::limits::LONGEST;
use crate::sched::Signals;

/// Settings of `foresight`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Foresight {
    /// How long a pause of the host has to be expected to last on to count as idleness: an
    /// erase that has begun ends in it.
    pub idle_for: Span,
    /// Part of the share that a task has while requests are expected.
    pub busy: f64,
}

impl Default for Foresight {
    fn default() -> Self {
        Foresight { idle_for: Span::from_ms(5), busy: 0.5 }
    }
}

impl Control for Foresight {
    fn share(&self, share: f64, least: f64, most: f64, signals: &Signals) -> f64 {
        if signals.idle_expected { most } else { (self.busy * share).max(least) }
    }

    fn foresees(&self) -> Option<Span> {
        Some(self.idle_for)
    }

    fn validate(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.busy) {
            return Err(format!("busy is {}; a part lies between 0 and 1", self.busy));
        }
        if self.idle_for > LONGEST {
            return Err(format!("idle_for is {}; at most {LONGEST}", self.idle_for));
        }
        Ok(())
    }
}
