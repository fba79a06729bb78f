//! `foreground`: a flush that finds free blocks short collects garbage first,
//! as simple drives do (SSDcheck, §III-B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// Settings of `foreground`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Foreground {}

impl Invocation for Foreground {
    fn starts_by_itself(&self) -> bool {
        false
    }

    fn holds_host(&self) -> bool {
        true
    }
}
