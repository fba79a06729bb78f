//! `both`: in the gaps between requests, and as soon as too much of the upper is
//! modified, whatever is being read (Roy, dissertation, §3.6.2).

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditional::{Conditional, Threshold};
use super::opportunistic::{Gaps, Opportunistic};
use super::{Build, Happened, View, Writeback};

/// Settings of `both`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Both {
    /// In gaps, as `opportunistic`.
    pub gaps: Opportunistic,
    /// Above a threshold, as `conditional`.
    pub threshold: Conditional,
}

impl Build for Both {
    fn build(&self) -> Box<dyn Writeback> {
        Box::new(Either { gaps: Gaps::new(&self.gaps), threshold: Threshold::new(&self.threshold) })
    }

    fn validate(&self) -> Result<(), String> {
        self.gaps.validate().map_err(|message| format!("gaps.{message}"))?;
        self.threshold.validate().map_err(|message| format!("threshold.{message}"))
    }
}

#[derive(Clone)]
struct Either {
    gaps: Gaps,
    threshold: Threshold,
}

impl Writeback for Either {
    fn hear(&mut self, now: Time, happened: Happened) {
        self.gaps.hear(now, happened);
        self.threshold.hear(now, happened);
    }

    fn wants(&mut self, now: Time, view: View) -> u64 {
        self.threshold.wants(now, view).max(self.gaps.wants(now, view))
    }

    fn next_event(&self) -> Option<Time> {
        self.gaps.next_event()
    }
}
