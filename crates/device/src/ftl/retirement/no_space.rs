//! `no-space`: when a block is worn out that no other can replace, the device has
//! room for fewer pages by what the block held, as a thin one that promises more
//! than it has. A write to a page that holds nothing then ends as no-space once as
//! many pages are held as there is room for; pages that hold something are written
//! as ever, and a trim makes room. Where the room is in use the block is used on,
//! until enough has been trimmed. (Ours.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Retirement;

/// Settings of `no-space`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoSpace {}

impl Retirement for NoSpace {
    fn shrinks(&self) -> bool {
        true
    }
}
