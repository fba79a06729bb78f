//! `none`: writes are never held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Goal, Throttle, ThrottleConfig};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Option<Box<dyn Throttle>> {
        Option::None
    }

    fn aimed_at(&self, _goal: &Goal) -> ThrottleConfig {
        ThrottleConfig::None(self.clone())
    }
}
