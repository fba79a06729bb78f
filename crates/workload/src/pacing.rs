//! When the driver submits what a source gives it.

use flashkeel_config::axis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What every way of pacing has in common.
pub trait Pace {
    /// Whether the arrivals' times matter.
    fn is_timed(&self) -> bool;

    /// Whether a request is submitted at its arrival's own time, whatever
    /// became of those before it.
    fn is_open(&self) -> bool;
}

axis! {
    /// When a request is submitted: at its recorded time (`open`), when fewer
    /// than a number are outstanding (`closed`), or its recorded gap after its
    /// predecessor's completion (`think`).
    pub enum Pacing as "pacing": Pace {
        /// At its arrival time, whatever is outstanding.
        Open(Recorded) = "open",
        /// As soon as fewer than `depth` requests are outstanding, or in batches.
        Closed(Closed) = "closed",
        /// Its recorded gap after its predecessor's completion.
        Think(Think) = "think",
    }
}

/// Open loop: each request at its arrival time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recorded {}

/// Closed loop: a number of requests outstanding; times are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Closed {
    /// Requests outstanding at most, at least 1.
    pub depth: u32,
    /// Once `depth` are outstanding, no more are submitted until only so many
    /// are (fio's iodepth_low); 0 submits batches of `depth`. Left out: `depth`
    /// are always outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<u32>,
}

/// Closed loop with recorded think times: a request is submitted when its
/// predecessor has completed and the gap between their arrival times has passed
/// since. One request is outstanding at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Think {}

impl Default for Closed {
    fn default() -> Self {
        Closed { depth: 1, low: None }
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Pacing::Open(Recorded {})
    }
}

impl Pace for Recorded {
    fn is_timed(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

impl Pace for Closed {
    fn is_timed(&self) -> bool {
        false
    }

    fn is_open(&self) -> bool {
        false
    }
}

impl Pace for Think {
    fn is_timed(&self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        false
    }
}
