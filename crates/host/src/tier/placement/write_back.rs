//! `write-back`: every write goes to the NVM as long as there is room; the
//! baseline of SSDcheck's Hybrid PAS (§V).

use flashkeel_engine::{Predictor, Request, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Placement};

/// Settings of `write-back`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteBack {}

impl Build for WriteBack {
    fn build(&self, _predictor: Option<Box<dyn Predictor>>, _random: Stream) -> Box<dyn Placement> {
        Box::new(All)
    }
}

#[derive(Clone)]
struct All;

impl Placement for All {
    fn takes(&mut self, _now: Time, _write: &Request) -> bool {
        true
    }
}
