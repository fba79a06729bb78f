//! `lru`: what has not been used for longest leaves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Eviction};
use crate::tier::table::List;

/// Settings of `lru`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lru {
    /// Whether a modified copy, which has to be written back, leaves only where there
    /// is no clean one.
    pub clean_first: bool,
    /// Share of the upper that is kept free by evicting ahead, so that a write finds
    /// room.
    pub ahead: f64,
}

impl Default for Lru {
    /// Ours.
    fn default() -> Self {
        Lru { clean_first: false, ahead: 1.0 / 64.0 }
    }
}

impl Build for Lru {
    fn build(&self) -> Box<dyn Eviction> {
        Box::new(self.clone())
    }

    fn validate(&self) -> Result<(), String> {
        if !(0.0..=0.5).contains(&self.ahead) {
            return Err(format!("ahead is {}; it must lie between 0 and 0.5", self.ahead));
        }
        Ok(())
    }
}

impl Eviction for Lru {
    fn keeps(&self) -> bool {
        true
    }

    fn victim(&self, clean: Option<u32>, modified: Option<u32>) -> Option<List> {
        match (clean, modified) {
            (None, None) => None,
            (Some(clean), Some(modified)) if !self.clean_first && modified < clean => Some(List::Modified),
            (Some(_), _) => Some(List::Clean),
            (None, Some(_)) => Some(List::Modified),
        }
    }

    fn ahead(&self, frames: u64) -> u64 {
        ((frames as f64 * self.ahead) as u64).clamp(1, frames)
    }
}
