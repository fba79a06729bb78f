//! `logical`: static stripes. As many consecutive flash pages of the logical
//! space as a stripe has data pages are protected by a parity page; each of
//! them lies on a channel of its own, at the same place in it (a plane group),
//! and parity rotates. Overwriting a page changes the parity with it (ttFlash,
//! "RAIN").
//!
//! A trimmed page reads as zeros, but stays in flash, and collection moves it, until
//! it is written again: the parity covers it. The paper has no trims; to free the page its
//! parity would have to be written anew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Redundancy, UpdateConfig};

/// Settings of `logical`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logical {
    /// Flash pages of a stripe, parity included: the width of a plane group.
    /// All channels of a partition if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
    /// What is read to compute the parity of a stripe of which a part is
    /// written.
    pub update: UpdateConfig,
}

impl Redundancy for Logical {
    fn logical_width(&self, channels: u32) -> Result<Option<u32>, String> {
        let width = self.pages.unwrap_or(channels);
        if width > channels {
            return Err(format!(
                "redundancy.pages is {width}: a plane group has at most one member on each channel, and there are \
                 {channels}"
            ));
        }
        if width < 2 || !channels.is_multiple_of(width) {
            return Err(format!(
                "redundancy.pages is {width}; a stripe has at least a page and its parity, and divides the \
                 {channels} channels"
            ));
        }
        Ok(Some(width))
    }

    fn update(&self) -> UpdateConfig {
        self.update.clone()
    }
}
