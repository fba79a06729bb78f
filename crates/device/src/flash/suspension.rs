//! Suspension: a program or an erase is broken off for reads, and taken up
//! again.

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::LONGEST;

/// Suspending programs, erases and copybacks for reads that arrive meanwhile.
/// Moves that hold the channel are not suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuspensionConfig {
    /// From the command to suspend until the chip can read.
    pub latency: Span,
    /// What taking the operation up again adds to it.
    pub resume: Span,
    /// How often one operation may be suspended, or overtaken while it waits
    /// for the chip, by all reads there at that time. 0: chips that cannot suspend,
    /// whatever the budget.
    pub limit: u32,
    /// How long after its first suspension an operation may be suspended and
    /// overtaken again, however often: a bound in time beside `limit`, for erases
    /// during which more reads come than that.
    pub budget: Span,
}

impl Default for SuspensionConfig {
    /// Of the order that studies of suspension assume (Wu and He, "Reducing SSD
    /// Read Latency via NAND Flash Program and Erase Suspension", FAST 2012);
    /// the limit is ours.
    fn default() -> Self {
        SuspensionConfig { latency: Span::from_us(20), resume: Span::from_us(20), limit: 8, budget: Span(0) }
    }
}

impl SuspensionConfig {
    /// Whether an operation that has been suspended or overtaken `times` times, the
    /// first time at `first`, may be once more.
    #[inline]
    pub fn allows(&self, times: u32, first: Time, now: Time) -> bool {
        times < self.limit || now.since(first) < self.budget
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn validate(&self) -> Result<(), String> {
        for (key, span) in [("latency", self.latency), ("resume", self.resume), ("budget", self.budget)] {
            if span > LONGEST {
                return Err(format!("suspension.{key} is {span}; at most {LONGEST}"));
            }
        }
        if self.limit > 1000 {
            return Err(format!("suspension.limit is {}; at most 1000", self.limit));
        }
        Ok(())
    }
}
