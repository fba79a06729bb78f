//! `strict-priority`: a higher class has all that it needs before a lower one gets more
//! than its minimum (the dissertation on PLMC, section 4.3.3, policy I).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Allocation, Build, Share, by_class};

/// Settings of `strict-priority`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StrictPriority {}

impl Build for StrictPriority {
    fn build(&self) -> Box<dyn Allocation> {
        Box::new(Strictly)
    }
}

#[derive(Clone)]
struct Strictly;

impl Allocation for Strictly {
    fn share_out(&self, left: u64, hosts: &mut [Share]) {
        by_class(left, hosts);
    }
}
