//! `striped`: consecutive flash pages of the logical space lie on consecutive
//! chips, so that an address alone tells its chip (ttFlash's static mapping).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Allocation;
use crate::address::Lpn;

/// Settings of `striped`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Striped {}

impl Allocation for Striped {
    fn domains(&self, chips: u32) -> u32 {
        chips
    }

    fn domain_of(&self, lpn: Lpn, slots_per_page: u32, domains: u32) -> u32 {
        lpn.0 / slots_per_page % domains
    }
}
