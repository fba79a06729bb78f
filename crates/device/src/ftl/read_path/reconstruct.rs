//! `reconstruct`: a page whose chip does background work is rebuilt from the
//! other pages of its stripe (AutoSSD's "rain", §5.2).

use flashkeel_engine::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChipState, ReadPath, Rebuild};

/// Settings of `reconstruct`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reconstruct {}

impl ReadPath for Reconstruct {
    fn avoids(&self, chip: ChipState) -> bool {
        chip.occupant.is_some_and(Cause::is_background)
    }

    fn rebuilds(&self, _chip: ChipState, rebuild: Rebuild) -> bool {
        rebuild.is_clear
    }
}
