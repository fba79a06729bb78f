//! `none`: an ideal device that never runs out of space and never collects
//! garbage as far as its users can tell (ttFlash's "NoGC").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Manner, Movement};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Movement for None {
    fn manner(&self) -> Manner {
        Manner::Untimed
    }
}
