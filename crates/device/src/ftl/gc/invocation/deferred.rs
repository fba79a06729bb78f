//! `deferred`: garbage collection runs beside the host, but begins with a block
//! only while the channel, or under `dynamic` allocation all of them, has no work of the
//! host; below `gc.force_below` free blocks it begins regardless (ttFlash's released simulator).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// Settings of `deferred`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deferred {}

impl Invocation for Deferred {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn holds_host(&self) -> bool {
        false
    }

    fn defers(&self) -> bool {
        true
    }
}
