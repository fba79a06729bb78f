//! `ready`: the same delay on every page write, as low as the required lifetime
//! allows when the wear that idle blocks recover is counted (S. Lee, T. Kim,
//! K. Kim and J. Kim, "Lifetime Management of Flash-Based SSDs Using
//! Recovery-Aware Dynamic Throttling", FAST 2012).

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::epochs::{Epochs, Plan};
use super::{Build, Goal, Throttle, ThrottleConfig};

/// Settings of `ready`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ready(pub Plan);

impl Build for Ready {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        Some(Box::new(Epochs::new(&self.0, true)))
    }

    fn aimed_at(&self, goal: &Goal) -> ThrottleConfig {
        ThrottleConfig::Ready(Ready(self.0.aimed_at(goal)))
    }

    fn longest_epoch(&self) -> Option<Span> {
        self.0.epochs.iter().copied().max()
    }

    fn needs_wear(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }
}
