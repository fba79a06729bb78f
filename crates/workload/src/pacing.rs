//! When the driver submits what a source gives it.

use flashkeel_config::axis;
use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What every way of pacing has in common.
pub trait Pace {
    /// Whether the arrivals' times matter.
    fn is_timed(&self) -> bool;

    /// Whether a request is submitted at its arrival's own time, whatever
    /// became of those before it.
    fn is_open(&self) -> bool;

    /// The policy at work, before the first request.
    fn pacer(&self) -> Box<dyn Pacer>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Says when requests are submitted.
pub trait Pacer {
    /// When a request that arrives at `arrival` is due, if it is before something
    /// completes.
    fn due(&mut self, arrival: Time, progress: &Progress) -> Option<Time>;
}

/// How far the requests before have come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The present time.
    pub now: Time,
    /// Requests submitted and not completed.
    pub in_flight: usize,
    /// The latest completion.
    pub completed: Time,
    /// When the request before arrived.
    pub arrived: Time,
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

    fn pacer(&self) -> Box<dyn Pacer> {
        Box::new(self.clone())
    }
}

impl Pacer for Recorded {
    #[inline]
    fn due(&mut self, arrival: Time, _progress: &Progress) -> Option<Time> {
        Some(arrival)
    }
}

impl Pace for Closed {
    fn is_timed(&self) -> bool {
        false
    }

    fn is_open(&self) -> bool {
        false
    }

    fn pacer(&self) -> Box<dyn Pacer> {
        let depth = self.depth as usize;
        Box::new(Filling { depth, low: self.low.map_or(depth - 1, |low| low as usize), is_filling: true })
    }

    fn validate(&self) -> Result<(), String> {
        if self.depth == 0 {
            return Err("depth: a queue depth is at least 1".into());
        }
        match self.low.filter(|&low| low >= self.depth) {
            Some(low) => Err(format!("low is {low}; it must lie below the depth, which is {}", self.depth)),
            None => Ok(()),
        }
    }
}

/// Fills up to the depth, and again from the low mark on.
struct Filling {
    depth: usize,
    low: usize,
    is_filling: bool,
}

impl Pacer for Filling {
    #[inline]
    fn due(&mut self, _arrival: Time, progress: &Progress) -> Option<Time> {
        if progress.in_flight >= self.depth {
            self.is_filling = false;
        } else if progress.in_flight <= self.low {
            self.is_filling = true;
        }
        self.is_filling.then_some(progress.now)
    }
}

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
    fn due(&mut self, arrival: Time, progress: &Progress) -> Option<Time> {
        let gap = arrival.since(progress.arrived);
        (progress.in_flight == 0).then(|| progress.completed + gap)
    }
}
