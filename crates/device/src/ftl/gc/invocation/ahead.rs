//! `ahead`: like `task`, but the thresholds go by what the host is expected to write: a
//! free block more for each chip than the host has to leave, and those that the next
//! burst brings (`crates/device/src/arrivals.rs`). So no more is kept free than is needed,
//! which saves moves and erases, and what is needed is there before the burst.
//! `gc.start_below` and `gc.stop_above` hold for preconditioning, and for the first 4.3 s,
//! when there is nothing to expect anything from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// Settings of `ahead`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ahead {}

impl Invocation for Ahead {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn holds_host(&self) -> bool {
        false
    }

    fn looks_ahead(&self) -> bool {
        true
    }
}
