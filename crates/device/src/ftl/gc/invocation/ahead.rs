//! `ahead`: like `task`, but the thresholds go by what the host is expected to write: a
//! free block more for each chip than the host has to leave, and those that the next
//! burst brings (`crates/device/src/arrivals.rs`). So no more is kept free than is needed,
//! which saves moves and erases, and what is needed is there before the burst.
//! `gc.stop_above` only bounds that: at most so many, and a quarter of the blocks that
//! nothing else needs.

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
