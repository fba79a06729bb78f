//! `fifo`: the oldest message first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Order};

/// Settings of `fifo`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {}

impl Build for Fifo {
    fn build(&self) -> Box<dyn Order> {
        Box::new(Alike)
    }
}

#[derive(Clone)]
struct Alike;

impl Order for Alike {
    fn is_preferred(&self, _bytes: u64) -> bool {
        false
    }
}
