//! `queued`: reads and programs through collection's own request queues, where
//! the scheduler weighs them against others (AutoSSD).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Manner, Movement};

/// Settings of `queued`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Queued {}

impl Movement for Queued {
    fn manner(&self) -> Manner {
        Manner::Queued
    }
}
