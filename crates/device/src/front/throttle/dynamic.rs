//! `dynamic`: READY's throttling without its knowledge of recovery: every
//! cycle is taken to cost its full share of the rated ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::epochs::{Epochs, Plan};
use super::{Build, Throttle};

/// Settings of `dynamic`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Dynamic(pub Plan);

impl Build for Dynamic {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        Some(Box::new(Epochs::new(&self.0, false)))
    }

    fn needs_wear(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }
}
