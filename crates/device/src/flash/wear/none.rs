//! `none`: erases are counted, and that is all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Law};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Option<Box<dyn Law>> {
        Option::None
    }

    fn rated_cycles(&self) -> Option<u32> {
        Option::None
    }
}
