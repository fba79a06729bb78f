//! `dynamic`: READY's throttling without its knowledge of recovery: every
//! cycle is taken to cost its full share of the rated ones.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::epochs::{Epochs, Plan};
use super::{Build, Goal, Throttle, ThrottleConfig};

/// Settings of `dynamic`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Dynamic(pub Plan);

impl Build for Dynamic {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        Some(Box::new(Epochs::new(&self.0, false)))
    }

    fn aimed_at(&self, goal: &Goal) -> ThrottleConfig {
        ThrottleConfig::Dynamic(Dynamic(self.0.aimed_at(goal)))
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
