//! `none`: nothing leaves but what has been written back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Eviction};
use crate::tier::table::List;

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Box<dyn Eviction> {
        Box::new(Nothing)
    }
}

#[derive(Clone)]
struct Nothing;

impl Eviction for Nothing {
    fn keeps(&self) -> bool {
        false
    }

    fn victim(&self, _clean: Option<u32>, _modified: Option<u32>) -> Option<List> {
        Option::None
    }

    fn ahead(&self, _frames: u64) -> u64 {
        0
    }
}
