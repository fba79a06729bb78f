//! `back`: the buffer is flushed in the background while it fills again
//! (SSDcheck, §III-B; AutoSSD's capacitor-backed controller memory).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Occupancy};

/// Settings of `back`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Back {}

impl BufferPolicy for Back {
    fn admits(&self, occupancy: Occupancy) -> bool {
        occupancy.pending < occupancy.size
    }
}
