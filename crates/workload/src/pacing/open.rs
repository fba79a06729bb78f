//! `open`: each request at its own time.

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Due, Pace, Pacer, Progress};

/// Open loop: each request at its arrival time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recorded {}

impl Pace for Recorded {
    fn is_timed(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }

    fn pacer(&self) -> Box<dyn Pacer> {
        Box::new(self.clone())
    }
}

impl Pacer for Recorded {
    #[inline]
    fn due(&mut self, arrival: Time, _progress: &Progress) -> Due {
        Due::At(arrival)
    }
}
