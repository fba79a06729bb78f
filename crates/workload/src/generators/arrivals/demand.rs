//! `demand`: as fast as a write demand asks, evenly within each of its intervals.

use flashkeel_engine::Stream;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock};
use crate::demand::{Demand, Traffic};
use crate::generators::refuse;
use crate::{Location, Seeds, WorkloadError};

/// Requests whose volume is that of a write demand, which repeats for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByDemand {
    /// The demand.
    pub traffic: Traffic,
    /// Bytes that each request is of the demand; if not given, as many as a request writes in
    /// the mean, so that what is written is the demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_size: Option<Bytes>,
}

impl Arrive for ByDemand {
    fn clock(&self, seeds: Seeds, write_bytes: f64) -> Result<Box<dyn Clock>, WorkloadError> {
        let demand = self.traffic.policy().load(seeds.own).map_err(placed)?;
        if demand.bytes_per_day() <= 0.0 {
            return Err(refuse("arrivals.traffic", "the demand has no writes"));
        }
        let size = match self.request_size {
            None if write_bytes == 0.0 => {
                let message = "how much a request is of the demand, as none of them writes";
                return Err(refuse("arrivals.request_size", message));
            }
            None => write_bytes,
            Some(Bytes(0)) => return Err(refuse("arrivals.request_size", "a request is longer than 0B")),
            Some(size) => size.0 as f64,
        };
        Ok(Box::new(DemandClock::new(demand, size)))
    }
}

/// An error of the traffic, whose keys are those of a demand by itself, or of a trace that is
/// replayed, as one of its keys here.
fn placed(error: WorkloadError) -> WorkloadError {
    let at = |prefix: &str, table: &str| {
        let key = error.subject.strip_prefix(prefix).filter(|_| error.place == Location::Key)?;
        Some(format!("workload.source.arrivals.traffic.{table}{key}"))
    };
    match at("traffic.", "").or_else(|| at("workload.source.", "trace.")) {
        Some(subject) => WorkloadError { subject, ..error },
        None => error,
    }
}

/// Gives requests of equal size at the rate of a demand.
pub struct DemandClock {
    demand: Demand,
    size: f64,
    /// The interval of the next request, counted on through repetitions, and
    /// the bytes of it that come before.
    interval: u64,
    before: f64,
}

impl DemandClock {
    /// Requests of `size` bytes each in the mean at the rate of `demand`, which has writes.
    pub fn new(demand: Demand, size: f64) -> Self {
        DemandClock { demand, size, interval: 0, before: 0.0 }
    }
}

impl Clock for DemandClock {
    fn next(&mut self, _stream: &mut Stream) -> u64 {
        let intervals = self.demand.written.len() as u64;
        let length = self.demand.interval.0;
        loop {
            // Behind the end of the clock nothing more comes.
            let Some(begins) = self.interval.checked_mul(length) else { return u64::MAX };
            let bytes = self.demand.written[(self.interval % intervals) as usize];
            if self.before < bytes {
                let within = self.before / bytes * length as f64;
                self.before += self.size;
                return begins.saturating_add((within as u64).min(length));
            }
            self.before -= bytes;
            self.interval += 1;
        }
    }
}
