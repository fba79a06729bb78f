//! `task`: garbage collection runs beside the host as a task of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// Settings of `task`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Task {}

impl Invocation for Task {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn holds_host(&self) -> bool {
        false
    }
}
