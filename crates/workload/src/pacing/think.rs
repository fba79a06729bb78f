//! `think`: each request its gap after its predecessor.

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Due, Pace, Pacer, Progress};

/// Closed loop with recorded think times: a request is submitted when its
/// predecessor has completed and the gap between their arrival times has passed
/// since. One request is outstanding at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Think {}

impl Pace for Think {
    fn is_timed(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        false
    }

    fn pacer(&self) -> Box<dyn Pacer> {
        Box::new(self.clone())
    }
}

impl Pacer for Think {
    fn due(&mut self, arrival: Time, progress: &Progress) -> Due {
        let gap = arrival.since(progress.arrived);
        if progress.in_flight == 0 { Due::At(progress.completed + gap) } else { Due::Later }
    }
}
