//! `gc-tolerant`: no read from a chip that collects garbage (on which a block is being
//! emptied: scrubbing and wear levelling count, checks and checkpoints do not), as long as
//! one member of the stripe at most does: either way leaves one of them out (ttFlash,
//! "GC-tolerant flush").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Update, Way};

/// Settings of `gc-tolerant`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcTolerant {}

impl Update for GcTolerant {
    fn modifies(&self, modify: Way, reconstruct: Way) -> bool {
        (modify.is_blocked, modify.reads) < (reconstruct.is_blocked, reconstruct.reads)
    }
}
