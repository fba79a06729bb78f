//! `none`: no write goes to the upper.

use flashkeel_engine::{Predictor, Request, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Placement};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self, _predictor: Option<Box<dyn Predictor>>, _random: Stream) -> Box<dyn Placement> {
        Box::new(Nothing)
    }

    fn takes_any(&self) -> bool {
        false
    }
}

#[derive(Clone)]
struct Nothing;

impl Placement for Nothing {
    fn takes(&mut self, _now: Time, _write: &Request) -> bool {
        false
    }
}
