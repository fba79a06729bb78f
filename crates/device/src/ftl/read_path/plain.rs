//! `plain`: a page is read from its own chip.

use flashkeel_engine::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReadPath;

/// Settings of `plain`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plain {}

impl ReadPath for Plain {
    fn needs_redundancy(&self) -> bool {
        false
    }

    fn rebuilds(&self, _occupant: Option<Cause>) -> bool {
        false
    }
}
