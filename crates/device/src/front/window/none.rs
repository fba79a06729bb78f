//! `none`: background work may run at any time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, WindowPolicy};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self, _set: u32, _sets: u32) -> Option<Box<dyn WindowPolicy>> {
        Option::None
    }
}
