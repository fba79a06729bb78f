//! `cheaper`: fewer reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Update, Way};

/// Settings of `cheaper`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cheaper {}

impl Update for Cheaper {
    fn modifies(&self, modify: Way, reconstruct: Way) -> bool {
        modify.reads < reconstruct.reads
    }
}
