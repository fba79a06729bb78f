//! `sequential`: one place after the other.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draw, Locate};
use crate::WorkloadError;

/// Each request follows the one before it; a request that does not fit before
/// the end begins again at the first place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sequential {}

impl Locate for Sequential {
    fn draw(&self, places: u64) -> Result<Box<dyn Draw>, WorkloadError> {
        Ok(Box::new(State { places, next: 0 }))
    }
}

struct State {
    places: u64,
    next: u64,
}

impl Draw for State {
    #[inline]
    fn next(&mut self, _: &mut Stream, length: u64) -> u64 {
        let place = if self.next + length <= self.places { self.next } else { 0 };
        self.next = place + length;
        place
    }
}
