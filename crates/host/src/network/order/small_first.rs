//! `small-first`: small messages before large ones. Requests to read are small, and
//! what they ask for is not: they hurry to the target, and their data wait on the
//! way back (the dissertation on PLMlight, §6.0.2).

use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Order};

/// Settings of `small-first`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SmallFirst {
    /// The largest of the small messages.
    pub up_to: Bytes,
}

impl Default for SmallFirst {
    /// Ours: one packet of an Ethernet with 1500 bytes.
    fn default() -> Self {
        SmallFirst { up_to: Bytes(1500) }
    }
}

impl Build for SmallFirst {
    fn build(&self) -> Box<dyn Order> {
        Box::new(Small { up_to: self.up_to.0 })
    }
}

#[derive(Clone)]
struct Small {
    up_to: u64,
}

impl Order for Small {
    fn is_preferred(&self, bytes: u64) -> bool {
        bytes <= self.up_to
    }
}
