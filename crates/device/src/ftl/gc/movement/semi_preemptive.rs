//! `semi-preemptive`: like `channel-blocking`, with a preemption point after
//! each page, at which the host goes first; below `gc.force_below` free blocks
//! there is none (the rival that ttFlash is compared with).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Inside, Manner, Movement};
use crate::sched::Activity;

/// Settings of `semi-preemptive`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SemiPreemptive {}

impl Movement for SemiPreemptive {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside {
            purpose: Activity::Gc.through_controller(),
            pages: 1,
            yields: true,
            checked_after: 0,
        })
    }
}
