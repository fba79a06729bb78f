//! `none`: chips collect regardless of each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, Rotation};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Rotation for None {
    fn order(&self) -> Order {
        Order::Any
    }
}
