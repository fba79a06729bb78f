//! `hot-cold`: a small part often, the rest seldom.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draw, Locate};
use crate::WorkloadError;
use crate::generators::{fraction, refuse};

/// The first part of the space gets a share of the requests, the rest of the
/// space the others; each part uniformly. A request that begins near the end of
/// its part may reach into the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HotCold {
    /// Size of the hot part as a share of the space, between 0 and 1.
    pub hot_space: f64,
    /// Share of the requests that go to the hot part, 0 to 1.
    pub hot_accesses: f64,
}

impl Default for HotCold {
    fn default() -> Self {
        HotCold { hot_space: 0.2, hot_accesses: 0.8 }
    }
}

impl Locate for HotCold {
    fn draw(&self, places: u64) -> Result<Box<dyn Draw>, WorkloadError> {
        let space = fraction("pattern.hot_space", self.hot_space)?;
        let probability = fraction("pattern.hot_accesses", self.hot_accesses)?;
        let hot = (places as f64 * space).round() as u64;
        if hot == 0 || hot >= places {
            return Err(refuse(
                "pattern.hot_space",
                format!("{space} of {places} places leaves no hot or no cold place"),
            ));
        }
        Ok(Box::new(State { places, hot, probability }))
    }
}

struct State {
    places: u64,
    hot: u64,
    probability: f64,
}

impl Draw for State {
    #[inline]
    fn next(&mut self, stream: &mut Stream, length: u64) -> u64 {
        // Places from which it does not reach beyond the end.
        let fit = self.places - length + 1;
        if stream.chance(self.probability) {
            return stream.below(self.hot.min(fit));
        }
        let cold = self.hot.min(fit - 1);
        cold + stream.below(fit - cold)
    }
}
