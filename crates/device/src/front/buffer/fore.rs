//! `fore`: the write that fills the buffer waits until it has been flushed,
//! and so does every write that comes meanwhile (SSDcheck, §III-B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Occupancy};

/// Settings of `fore`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fore {}

impl BufferPolicy for Fore {
    fn admits(&self, occupancy: Occupancy) -> bool {
        occupancy.flushing == 0 && occupancy.pending < occupancy.size
    }

    fn waits_for_own_flush(&self) -> bool {
        true
    }
}
