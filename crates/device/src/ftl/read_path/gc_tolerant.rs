//! `gc-tolerant`: a page is rebuilt where that is faster than waiting for its
//! chip (ttFlash, "GC-tolerant read").

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChipState, ReadPath, Rebuild};

/// Settings of `gc-tolerant`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcTolerant {}

impl ReadPath for GcTolerant {
    fn avoids(&self, chip: ChipState) -> bool {
        chip.background > Span(0)
    }

    fn rebuilds(&self, chip: ChipState, rebuild: Rebuild) -> bool {
        // A read of the whole stripe takes the parity in place of the page.
        let is_free = rebuild.is_clear && rebuild.extra_reads == 1;
        is_free || rebuild.extra_time + rebuild.background < chip.background
    }
}
