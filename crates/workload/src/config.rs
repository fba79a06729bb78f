//! The `[workload]` table of an experiment.

use std::ops::ControlFlow;

use flashkeel_config::axis;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::generators::Synthetic;
use crate::profiles::Profile;
use crate::trace::Trace;
use crate::{Pacing, Source, Stopped, Watch, WorkloadError};

/// What a workload's chance is drawn by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// The run's, for what its workloads have in common.
    pub run: u64,
    /// The workload's own.
    pub own: u64,
}

impl Seeds {
    /// Those of a run's only workload.
    pub fn alone(seed: u64) -> Seeds {
        Seeds { run: seed, own: seed }
    }
}

/// What a source is opened for.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Capacity of the device in sectors; no arrival lies beyond it.
    pub device_sectors: u64,
    /// What chance is drawn by.
    pub seeds: Seeds,
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
    /// Opens the source. `watch` is told how much has been read of an input
    /// that has to be read beforehand.
    ///
    /// # Errors
    /// If its settings contradict each other, its input cannot be read, or
    /// `watch` breaks off.
    fn open(&self, context: &Context, watch: &mut Watch<'_>) -> Result<Box<dyn Source>, Stopped>;

    /// Finds what can be found wrong without taking anything that could not be
    /// read again: of a pipe only the settings.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn check(&self, context: &Context, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        self.open(context, watch).map(drop)
    }

    /// Whether the source ends by itself.
    fn is_finite(&self) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

axis! {
    /// Where the requests come from.
    pub enum SourceConfig as "workload source": Open {
        /// A recorded trace.
        Trace(Trace) = "trace",
        /// A generator.
        Synthetic(Synthetic) = "synthetic",
        /// A workload made from what is published of a trace.
        Profile(Profile) = "profile",
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
    /// A number that goes with every request to whatever serves it, for a policy that
    /// uses one: a class of service, a stream of placement. 0 is none.
    #[serde(default)]
    pub hint: u16,
    /// Whether writes force unit access: each is acknowledged only once it is durable.
    #[serde(default)]
    pub fua: bool,
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
        let block = Bytes(LOGICAL_PAGE_BYTES);
        self.open_watched(device_sectors, block, Seeds::alone(seed), &mut |_| ControlFlow::Continue(()))
            .map_err(|stopped| match stopped {
                Stopped::Wrong(error) => error,
                Stopped::Interrupted | Stopped::Unwritten(_) => {
                    unreachable!("nobody interrupts, and nothing is written")
                }
            })
    }

    /// Opens the source as [`open`](Self::open) does, for a device of such logical
    /// blocks; `watch` is told how much has been read of a trace that is read once
    /// beforehand.
    ///
    /// # Errors
    /// If settings contradict each other, the input cannot be read, or `watch`
    /// breaks off.
    pub fn open_watched(
        &self,
        device_sectors: u64,
        block: Bytes,
        seeds: Seeds,
        watch: &mut Watch<'_>,
    ) -> Result<Box<dyn Source>, Stopped> {
        self.validate(device_sectors)?;
        self.source.policy().open(&self.context(device_sectors, block, seeds), watch)
    }

    /// Finds what is wrong before a run; of a trace that comes through a pipe
    /// nothing is taken. `watch` as for [`open_watched`](Self::open_watched).
    ///
    /// # Errors
    /// As for [`open_watched`](Self::open_watched).
    pub fn check(
        &self,
        device_sectors: u64,
        block: Bytes,
        seeds: Seeds,
        watch: &mut Watch<'_>,
    ) -> Result<(), Stopped> {
        self.validate(device_sectors)?;
        self.source.policy().check(&self.context(device_sectors, block, seeds), watch)
    }

    /// Whether it is a drive that says how many requests there are: it ends after a time, and
    /// its pacing leaves to what has completed when they come.
    pub fn is_ended_by_a_drive(&self) -> bool {
        self.requests.is_none() && self.duration.is_some() && !self.pacing.policy().is_open()
    }

    /// Whether it is a trace that can be read only once, as from a pipe.
    pub fn is_read_once(&self) -> bool {
        matches!(&self.source, SourceConfig::Trace(trace) if crate::input::is_read_once(&trace.path))
    }

    fn context(&self, device_sectors: u64, block: Bytes, seeds: Seeds) -> Context {
        Context {
            device_sectors,
            seeds,
            requests: self.requests,
            duration: self.duration.filter(|_| self.pacing.policy().is_open()),
            is_timed: self.pacing.policy().is_timed(),
            block,
        }
    }

    fn validate(&self, device_sectors: u64) -> Result<(), WorkloadError> {
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
        if self.requests.is_none() && self.duration.is_none() && !self.source.policy().is_finite() {
            return Err(WorkloadError::key("workload", "a generator has no end; set requests or duration"));
        }
        Ok(())
    }
}
