//! `trace`: the writes of a recorded trace.

use flashkeel_engine::{Operation, SECTOR_BYTES, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, Load};
use crate::{Pacing, SourceConfig, Trace, WorkloadConfig, WorkloadError};

/// A trace whose writes are summed up by the minute, each rounded outwards to
/// 4 KiB as a device does. The trace repeats with its
/// last request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The trace.
    pub trace: Trace,
}

const MINUTE: u64 = 60_000_000_000;
/// Longest trace in minutes: a year.
const MOST_MINUTES: u64 = 366 * 1_440;

impl Load for Recorded {
    fn load(&self, seed: u64) -> Result<Demand, WorkloadError> {
        let workload = WorkloadConfig {
            source: SourceConfig::Trace(self.trace.clone()),
            pacing: Pacing::default(),
            warm_up: Span::ZERO,
            requests: None,
            duration: None,
        };
        // Where the writes go does not count, so none is beyond the device.
        let mut source = workload.open(1 << 48, seed)?;
        let (mut written, mut batch, mut last) = (vec![0.0], Vec::new(), 0);
        loop {
            source.fill(&mut batch, 4096)?;
            let Some(arrival) = batch.last() else { break };
            last = arrival.time.0;
            let minutes = last / MINUTE;
            if minutes >= MOST_MINUTES {
                let file = self.trace.path.display().to_string();
                return Err(WorkloadError::file(&file, "longer than a year; is its time unit right?"));
            }
            written.resize(minutes as usize + 1, 0.0);
            for arrival in batch.iter().filter(|arrival| arrival.operation == Operation::Write) {
                let bytes = u64::from(arrival.sectors) * SECTOR_BYTES;
                written[(arrival.time.0 / MINUTE) as usize] += bytes as f64;
            }
        }
        // Whole minutes but for the last, which is cut at the last request.
        let interval = Span((last / written.len() as u64).max(1));
        Ok(Demand { interval, written, is_synthetic: false, notes: source.notes().to_vec() })
    }
}
