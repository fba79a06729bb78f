//! `any`: a write is acknowledged once the first copy has it. The others follow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;

/// Settings of `any`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Any {}

impl Build for Any {
    fn needed(&self, _copies: u32) -> u32 {
        1
    }
}
