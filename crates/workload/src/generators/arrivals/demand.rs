//! `demand`: as fast as a write demand asks, evenly within each of its intervals.

use flashkeel_engine::Stream;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock};
use crate::{Seeds, WorkloadError};
use crate::demand::{Demand, Traffic};
use crate::generators::refuse;

/// Requests whose volume is that of a write demand, which repeats for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByDemand {
    /// The demand.
    pub traffic: Traffic,
    /// Bytes that each request is of the demand.
    #[serde(default = "page")]
    pub request_size: Bytes,
}

/// READY: "page size is 8 KB".
fn page() -> Bytes {
    Bytes(8 << 10)
}

impl Arrive for ByDemand {
    fn clock(&self, seeds: Seeds) -> Result<Box<dyn Clock>, WorkloadError> {
        let demand = self.traffic.policy().load(seeds.own)?;
        if demand.bytes_per_day() <= 0.0 {
            return Err(refuse("arrivals.traffic", "the demand has no writes"));
        }
        if self.request_size.0 == 0 {
            return Err(refuse("arrivals.request_size", "a request is longer than 0B"));
        }
        Ok(Box::new(DemandClock::new(demand, self.request_size.0)))
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
    /// Requests of `size` bytes at the rate of `demand`, which has writes.
    pub fn new(demand: Demand, size: u64) -> Self {
        DemandClock { demand, size: size as f64, interval: 0, before: 0.0 }
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
