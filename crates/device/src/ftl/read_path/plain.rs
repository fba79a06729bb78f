//! `plain`: a page is read from its own chip.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChipState, ReadPath, Rebuild};

/// Settings of `plain`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plain {}

impl ReadPath for Plain {
    fn needs_redundancy(&self) -> bool {
        false
    }

    fn avoids(&self, _chip: ChipState) -> bool {
        false
    }

    fn rebuilds(&self, _chip: ChipState, _rebuild: Rebuild) -> bool {
        false
    }
}
