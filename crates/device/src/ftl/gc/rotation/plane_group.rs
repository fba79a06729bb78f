//! `plane-group`: at most one chip of each plane group collects, so that one
//! parity always stands in for it; the next chip's turn comes with the next
//! block. Below `gc.force_below` free blocks a chip collects out of turn
//! (ttFlash, "Rotating GC").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, Rotation};

/// Settings of `plane-group`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaneGroup {}

impl Rotation for PlaneGroup {
    fn order(&self) -> Order {
        Order::InTurn
    }
}
