//! Arrival processes: when the requests of a generator arrive.

use flashkeel_config::axis;
use flashkeel_engine::Stream;

use super::refuse;
use crate::{Seeds, WorkloadError};

/// What every arrival process has in common.
pub trait Arrive {
    /// Begins at time 0. Where its course as a whole is left to chance, `seeds` decide it;
    /// a request writes `write_bytes` in the mean, 0 if none does.
    ///
    /// # Errors
    /// If the settings make no sense.
    fn clock(&self, seeds: Seeds, write_bytes: f64) -> Result<Box<dyn Clock>, WorkloadError>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Gives arrival times, one after the other.
pub trait Clock {
    /// Time of the next arrival in nanoseconds; never decreases.
    fn next(&mut self, stream: &mut Stream) -> u64;
}

axis! {
    /// When the requests of a generator arrive.
    pub enum ArrivalProcess as "arrival process": Arrive {
        /// Independently of each other, at a mean rate.
        Poisson(Poisson) in poisson = "poisson",
        /// At equal gaps.
        Constant(Constant) in constant = "constant",
        /// In bursts with silence between them.
        Bursts(Bursts) in bursts = "bursts",
        /// At a rate that rises and falls by chance.
        Varying(Varying) in varying = "varying",
        /// As fast as a write demand asks.
        ByDemand(ByDemand) in demand = "demand",
    }
}

/// Mean gap in nanoseconds at a rate in requests per second.
fn gap_ns(iops: f64) -> Result<f64, WorkloadError> {
    if iops > 0.0 && iops <= 1e9 {
        Ok(1e9 / iops)
    } else {
        Err(refuse("arrivals.iops", format!("{iops} is not above 0 and at most 1000000000")))
    }
}

/// Sums gaps with fractions of nanoseconds without losing digits over time.
#[derive(Default)]
pub(crate) struct Elapsed {
    ns: u64,
    fraction: f64,
}

impl Elapsed {
    /// Whole nanoseconds so far.
    #[inline]
    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    #[inline]
    pub(crate) fn add(&mut self, gap_ns: f64) {
        self.fraction += gap_ns;
        let whole = self.fraction as u64;
        self.fraction -= whole as f64;
        self.ns = self.ns.saturating_add(whole);
    }
}
