//! `none`: the device never sleeps.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Power};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self, _: Stream) -> Option<Box<dyn Power>> {
        Option::None
    }
}
