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
    /// How often in a row pages may be copied back before that: 1 to 255. A page gathers
    /// errors with each copy, and flash endures several before they are too many for its
    /// ECC (Hong, Shin and Kim, "Improving Performance of Flash Storage Using Restricted
    /// Copyback", Journal of KIISE 46(8), 2019). Each page is counted by itself, and not while
    /// it passes the controller, as one does that is valid in part.
    pub checked_after: u32,
}

impl Default for PageCopyback {
    /// As of `plane-blocking`: after each copy.
    fn default() -> Self {
        PageCopyback { check: true, checked_after: 1 }
    }
}

impl Movement for PageCopyback {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside {
            purpose: Activity::Gc.copyback(),
            pages: 1,
            yields: false,
            checked_after: if self.check { self.checked_after } else { 0 },
        })
    }

    fn validate(&self) -> Result<(), String> {
        match self.checked_after {
            1..=255 => Ok(()),
            times => Err(format!("checked_after is {times}; 1 to 255")),
        }
    }
}
