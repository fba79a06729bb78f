//! `none`: what is modified is written back only when it is evicted.

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, View, Writeback};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Box<dyn Writeback> {
        Box::new(Never)
    }
}

#[derive(Clone)]
struct Never;

impl Writeback for Never {
    fn wants_any(&self) -> bool {
        false
    }

    fn wants(&mut self, _now: Time, _view: View) -> u64 {
        0
    }
}
