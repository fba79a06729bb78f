//! `none`: no windows are commanded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Turns};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Option<Box<dyn Turns>> {
        Option::None
    }
}
