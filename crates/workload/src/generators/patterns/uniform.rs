//! `uniform`: every place alike.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draw, Locate};
use crate::WorkloadError;

/// Every place at which a request fits is equally likely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Uniform {}

impl Locate for Uniform {
    fn draw(&self, places: u64) -> Result<Box<dyn Draw>, WorkloadError> {
        Ok(Box::new(State { places }))
    }
}

struct State {
    places: u64,
}

impl Draw for State {
    #[inline]
    fn next(&mut self, stream: &mut Stream, length: u64) -> u64 {
        stream.below(self.places - length + 1)
    }
}
