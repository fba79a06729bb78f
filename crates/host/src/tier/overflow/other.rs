//! `other`: a write above the budget goes to the other medium, so that the one keeps
//! its rating (Roy, dissertation, §3.5.3: large writes go to the SSD within its budget).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;

/// Settings of `other`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Other {}

impl Build for Other {
    fn goes_elsewhere(&self, is_free: bool) -> bool {
        is_free
    }
}
