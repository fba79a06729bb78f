//! `page-copyback`: valid pages are copied back within the chip, one flash page an
//! operation (of all planes at once, where the flash has them). So what may be
//! suspended, and how often, is counted for a page, and between pages whoever the
//! scheduler prefers goes first. As with `plane-blocking`, pages that are valid in
//! part pass through the controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Inside, Manner, Movement};
use crate::sched::Activity;

/// Settings of `page-copyback`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageCopyback {
    /// Whether pages that have been copied back are read once in the
    /// background, while the channel has no work of the host, so that their ECC
    /// is checked.
    pub check: bool,
}

impl Default for PageCopyback {
    /// As of `plane-blocking`.
    fn default() -> Self {
        PageCopyback { check: true }
    }
}

impl Movement for PageCopyback {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside {
            purpose: Activity::Gc.copyback(),
            pages: 1,
            yields: false,
            check: self.check,
        })
    }
}
