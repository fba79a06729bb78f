//! `read-only`: when the first block is worn out that no other can replace, the
//! device takes no more writes, trims and write zeroes, for good. What it has taken
//! in before it ends as usual. (As drives do that run out of spares: NVMe's critical
//! warning "media has been placed in read only mode".)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Retirement;

/// Settings of `read-only`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadOnly {}

impl Retirement for ReadOnly {
    fn shrinks(&self) -> bool {
        false
    }
}
