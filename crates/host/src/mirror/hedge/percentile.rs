//! `percentile`: the second copy is asked when the first has taken longer than
//! nearly all of late, so that the extra load stays the same at every load.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Hedge};
use crate::mirror::recent::Recent;

/// Settings of `percentile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Percentile {
    /// Share of reads that may be asked twice, above 0 and below 1: the delay is the
    /// percentile of the latencies of late that so many exceed.
    pub extra: f64,
}

impl Default for Percentile {
    /// The 95th percentile, as in "The Tail at Scale".
    fn default() -> Self {
        Percentile { extra: 0.05 }
    }
}

impl Build for Percentile {
    fn build(&self) -> Option<Box<dyn Hedge>> {
        Some(Box::new(Delay { recent: Recent::new(1.0 - self.extra) }))
    }

    fn validate(&self) -> Result<(), String> {
        if self.extra > 0.0 && self.extra < 1.0 {
            return Ok(());
        }
        Err(format!("extra is {}; a share above 0 and below 1", self.extra))
    }
}

#[derive(Clone)]
struct Delay {
    recent: Recent,
}

impl Hedge for Delay {
    fn delay(&mut self) -> Option<Span> {
        self.recent.quantile()
    }

    fn answered(&mut self, latency: Span) {
        self.recent.note(latency);
    }
}
