//! `physical`: append-only stripes. Pages programmed one after another on
//! different chips are followed by their parity; blocks of all chips of a
//! stripe are opened, emptied and erased together, so that a stripe's
//! overwritten members live until it is collected (the parity of AutoSSD's
//! "rain", after ttFlash).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Redundancy;

/// Settings of `physical`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Physical {
    /// Flash pages of a stripe, parity included, a power of two that divides the chips
    /// of a partition; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
}

impl Redundancy for Physical {
    fn width(&self, chips: u32) -> Result<u32, String> {
        let width = self.pages.unwrap_or(chips);
        if width < 2 || !width.is_power_of_two() || !chips.is_multiple_of(width) {
            return Err(format!(
                "redundancy.pages is {width}; a stripe has a power of two of pages, at least 2, that divides the \
                 {chips} chips"
            ));
        }
        Ok(width)
    }
}
