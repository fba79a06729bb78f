//! `stripe`: pages go to flash in groups, so that a group can form a stripe
//! over the chips (ttFlash's capacitor-backed buffer).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Occupancy};

/// Settings of `stripe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stripe {
    /// Flash pages in a group; a logical stripe that has fewer is one as a whole.
    pub pages: u32,
}

impl Default for Stripe {
    /// ttFlash: seven data pages and a parity page over eight channels.
    fn default() -> Self {
        Stripe { pages: 7 }
    }
}

impl BufferPolicy for Stripe {
    fn admits(&self, occupancy: Occupancy) -> bool {
        occupancy.pending < occupancy.size
    }

    fn pages_per_flush(&self) -> u32 {
        self.pages
    }

    fn validate(&self) -> Result<(), String> {
        match self.pages {
            0 => Err("pages is 0; a group has at least one flash page".into()),
            _ => Ok(()),
        }
    }
}
