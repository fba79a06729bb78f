//! `at-once`: a block is erased as soon as it is empty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Erasing;

/// Settings of `at-once`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AtOnce {}

impl Erasing for AtOnce {
    fn waits_for_pauses(&self) -> bool {
        false
    }
}
