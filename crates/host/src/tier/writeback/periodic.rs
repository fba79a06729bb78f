//! `periodic`: a batch each period.

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span, Time, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, View, Writeback};

/// Settings of `periodic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Periodic {
    /// Time between two batches.
    pub period: Span,
    /// Data of a batch, oldest first. A batch begins only when the one before
    /// it has ended.
    pub batch: Bytes,
}

impl Default for Periodic {
    /// Ours; SSDcheck says no more than that it is done periodically.
    fn default() -> Self {
        Periodic { period: Span::from_ms(10), batch: Bytes(256 << 10) }
    }
}

impl Build for Periodic {
    fn build(&self) -> Box<dyn Writeback> {
        let batch = self.batch.0 / LOGICAL_PAGE_BYTES;
        Box::new(Clock { period: self.period, batch, next: Time::ZERO })
    }

    fn validate(&self) -> Result<(), String> {
        if self.period == Span::ZERO {
            return Err("period is 0ns; it must be longer".into());
        }
        if self.batch.0 < LOGICAL_PAGE_BYTES {
            return Err(format!("batch is {}; at least a page of 4KiB", self.batch));
        }
        if !self.batch.0.is_multiple_of(LOGICAL_PAGE_BYTES) {
            return Err(format!("batch is {}; it must be a multiple of a page of 4KiB", self.batch));
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Clock {
    period: Span,
    batch: u64,
    next: Time,
}

impl Writeback for Clock {
    fn wants(&mut self, now: Time, view: View) -> u64 {
        if self.next > now {
            return 0;
        }
        // Where nothing was modified, times for it have passed.
        self.next = Time((now.0 / self.period.0 + 1) * self.period.0);
        if view.is_timer && view.on_their_way == 0 { self.batch } else { 0 }
    }

    fn next_event(&self) -> Option<Time> {
        Some(self.next)
    }
}
