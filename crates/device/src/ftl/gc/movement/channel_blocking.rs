//! `channel-blocking`: every valid page is read and written back over the
//! channel, which is held for the whole block (ttFlash's base).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Inside, Manner, Movement};
use crate::sched::Activity;

/// Settings of `channel-blocking`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelBlocking {}

impl Movement for ChannelBlocking {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside {
            purpose: Activity::Gc.through_controller(),
            pages: u32::MAX,
            yields: false,
            checked_after: 0,
        })
    }
}
