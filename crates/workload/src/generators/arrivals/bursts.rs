//! `bursts`: requests arrive in bursts with silence between them.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock, Elapsed, gap_ns};
use crate::generators::refuse;
use crate::{Seeds, WorkloadError};

/// A Poisson process during `on`, nothing during `off`, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bursts {
    /// Mean rate within a burst in requests per second.
    pub iops: f64,
    /// Length of a burst.
    pub on: Span,
    /// Silence after it.
    pub off: Span,
}

impl Default for Bursts {
    fn default() -> Self {
        Bursts { iops: 10_000.0, on: Span::from_ms(100), off: Span::from_ms(900) }
    }
}

impl Arrive for Bursts {
    fn clock(&self, _: Seeds, _: f64) -> Result<Box<dyn Clock>, WorkloadError> {
        if self.on == Span::ZERO {
            return Err(refuse("arrivals.on", "a burst lasts longer than 0ns"));
        }
        Ok(Box::new(State {
            gap_ns: gap_ns(self.iops)?,
            busy: Elapsed::default(),
            on_ns: self.on.0,
            off_ns: self.off.0,
        }))
    }
}

struct State {
    gap_ns: f64,
    /// Time with the silences cut out.
    busy: Elapsed,
    on_ns: u64,
    off_ns: u64,
}

impl Clock for State {
    #[inline]
    fn next(&mut self, stream: &mut Stream) -> u64 {
        self.busy.add(stream.exponential(self.gap_ns));
        let silences = self.busy.ns / self.on_ns;
        self.busy.ns.saturating_add(silences.saturating_mul(self.off_ns))
    }
}
