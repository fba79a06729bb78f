//! `plane-blocking`: valid pages are copied back within the chip; other chips
//! have the channel meanwhile (ttFlash, "Plane-blocking GC"). What is copied
//! back is not checked by the controller's ECC. Pages that are valid in part
//! pass through the controller, and so do those behind them that come to lie in two
//! pages each; their transfers are counted in the chip's time, and not as load of
//! the channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Inside, Manner, Movement};
use crate::sched::Activity;

/// Settings of `plane-blocking`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaneBlocking {
    /// Whether pages that have been copied back are read once in the
    /// background, while the channel has no work of the host, so that their ECC
    /// is checked.
    pub check: bool,
}

impl Default for PlaneBlocking {
    /// ttFlash suggests the check.
    fn default() -> Self {
        PlaneBlocking { check: true }
    }
}

impl Movement for PlaneBlocking {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside {
            purpose: Activity::Gc.copyback(),
            pages: u32::MAX,
            yields: false,
            checked_after: u32::from(self.check),
        })
    }
}
