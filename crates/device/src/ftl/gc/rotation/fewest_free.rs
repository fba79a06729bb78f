//! `fewest-free`: each chip empties one block at a time, and the chip with the fewest
//! free blocks begins. So chips collect side by side, and each keeps room for what is
//! moved within it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, Rotation};

/// Settings of `fewest-free`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FewestFree {}

impl Rotation for FewestFree {
    fn order(&self) -> Order {
        Order::FewestFree
    }
}
