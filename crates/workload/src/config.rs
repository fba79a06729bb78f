//! The `[workload]` table of an experiment.

use flashkeel_config::axis;
use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::generators::Synthetic;
use crate::trace::Trace;
use crate::{Pacing, Source, WorkloadError};

/// Devices map, read and write units of this size.
const LOGICAL_BLOCK_BYTES: u64 = 4096;

/// What a source is opened for.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Capacity of the device in sectors; no arrival lies beyond it.
    pub device_sectors: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Stop after this many arrivals.
    pub requests: Option<u64>,
    /// Stop before the first arrival at or after this time.
    pub duration: Option<Span>,
    /// Whether the arrivals' times matter.
    pub is_timed: bool,
    /// Unit of the device: every range is to begin and end at its multiples.
    pub block: Bytes,
}

/// What every kind of source has in common.
pub trait Open {
    /// Opens the source.
    ///
    /// # Errors
    /// If its settings contradict each other or its input cannot be read.
    fn open(&self, context: &Context) -> Result<Box<dyn Source>, WorkloadError>;

    /// Whether the source ends by itself.
    fn is_finite(&self) -> bool;
}

axis! {
    /// Where the requests come from.
    pub enum SourceConfig as "workload source": Open {
        /// A recorded trace.
        Trace(Trace) = "trace",
        /// A generator.
        Synthetic(Synthetic) = "synthetic",
    }
}

/// A workload: a source, how the driver paces it, and where it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConfig {
    /// Where the requests come from.
    pub source: SourceConfig,
    /// When the driver submits them.
    #[serde(default)]
    pub pacing: Pacing,
    /// Time from the start of the workload that is left out of the statistics.
    #[serde(default)]
    pub warm_up: Span,
    /// Number of requests after which the workload ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Time after which no more requests are submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
}

impl WorkloadConfig {
    /// Opens the source for a device of `device_sectors` sectors.
    ///
    /// With open pacing the source itself ends at `duration`; otherwise the
    /// driver decides times and must end there.
    ///
    /// # Errors
    /// If settings contradict each other or the input cannot be read.
    pub fn open(&self, device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
        if let Pacing::Closed(closed) = &self.pacing
            && closed.depth == 0
        {
            return Err(WorkloadError::key("workload.pacing.depth", "a queue depth is at least 1"));
        }
        if self.requests == Some(0) {
            return Err(WorkloadError::key("workload.requests", "a workload has at least 1 request"));
        }
        if self.duration == Some(Span::ZERO) {
            return Err(WorkloadError::key("workload.duration", "a workload lasts longer than 0ns"));
        }
        if self.duration.is_some_and(|duration| self.warm_up >= duration) {
            return Err(WorkloadError::key(
                "workload.warm_up",
                format!("{} leaves nothing to measure of the workload's duration", self.warm_up),
            ));
        }
        if device_sectors == 0 {
            return Err(WorkloadError::key("workload", "the device has no capacity"));
        }
        let source = self.source.policy();
        if self.requests.is_none() && self.duration.is_none() && !source.is_finite() {
            return Err(WorkloadError::key("workload", "a generator has no end; set requests or duration"));
        }
        source.open(&Context {
            device_sectors,
            seed,
            requests: self.requests,
            duration: self.duration.filter(|_| self.pacing.policy().is_open()),
            is_timed: self.pacing.policy().is_timed(),
            block: Bytes(LOGICAL_BLOCK_BYTES),
        })
    }
}
