//! `none`: no write-back buffer. Pages are aggregated to flash pages, but a
//! write is acknowledged only when it is in flash. One that does not fill its flash
//! page waits for others, for no longer than the timeout; then the page is padded.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Occupancy};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl BufferPolicy for None {
    fn admits(&self, occupancy: Occupancy) -> bool {
        occupancy.pending < occupancy.size
    }

    fn acknowledges_in_flash(&self) -> bool {
        true
    }

    /// Short beside a program, as the write waits for it. (Ours.)
    fn timeout(&self) -> Span {
        Span(100_000)
    }
}
