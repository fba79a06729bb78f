//! `all`: a write is acknowledged once every copy has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;

/// Settings of `all`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct All {}

impl Build for All {
    fn needed(&self, copies: u32) -> u32 {
        copies
    }
}
