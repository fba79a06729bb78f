//! `same`: a write above the budget goes where it would go anyway (Roy, dissertation,
//! §3.5.3: large writes go to the SSD).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Build;

/// Settings of `same`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Same {}

impl Build for Same {
    fn goes_elsewhere(&self, _is_free: bool) -> bool {
        false
    }
}
