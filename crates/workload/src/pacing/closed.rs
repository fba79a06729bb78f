//! `closed`: a number of requests outstanding.

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Due, Pace, Pacer, Progress};

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

impl Default for Closed {
    fn default() -> Self {
        Closed { depth: 1, low: None }
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
    fn due(&mut self, _arrival: Time, progress: &Progress) -> Due {
        if progress.in_flight >= self.depth {
            self.is_filling = false;
        } else if progress.in_flight <= self.low {
            self.is_filling = true;
        }
        if self.is_filling { Due::AtOnce } else { Due::Later }
    }
}
