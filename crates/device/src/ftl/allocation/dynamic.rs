//! `dynamic`: any chip takes any page; all chips are one domain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Allocation, Spread};
use crate::address::Lpn;

/// Settings of `dynamic`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dynamic {}

impl Allocation for Dynamic {
    fn domains(&self, _chips: u32) -> u32 {
        1
    }

    fn domain_of(&self, _lpn: Lpn, _spread: Spread) -> u32 {
        0
    }
}
