//! `in-pauses`: an erase, the longest that a chip does, waits until the host has no
//! work on the chip's channel. Empty blocks are kept for that time, and the
//! bound is `gc.force_below`: with fewer blocks free, space comes first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Erasing;

/// Settings of `in-pauses`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InPauses {}

impl Erasing for InPauses {
    fn waits_for_pauses(&self) -> bool {
        true
    }
}
