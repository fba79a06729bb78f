//! Access patterns: where the requests of a generator go.

use flashkeel_config::axis;
use flashkeel_engine::Stream;

use crate::WorkloadError;

/// What every access pattern has in common.
pub trait Locate {
    /// Begins to draw from `places` places.
    ///
    /// # Errors
    /// If the settings make no sense.
    fn draw(&self, places: u64) -> Result<Box<dyn Draw>, WorkloadError>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Draws places, one after the other.
pub trait Draw {
    /// First place of the next request; it takes `length` places, all of which
    /// are inside.
    fn next(&mut self, stream: &mut Stream, length: u64) -> u64;
}

axis! {
    /// Where the requests of a generator go.
    pub enum Pattern as "access pattern": Locate {
        /// Everywhere alike.
        Uniform(Uniform) in uniform = "uniform",
        /// Few places much, most places little.
        Zipf(Zipf) in zipf = "zipf",
        /// One after the other.
        Sequential(Sequential) in sequential = "sequential",
        /// A small part often, the rest seldom.
        HotCold(HotCold) in hot_cold = "hot-cold",
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Pattern::Uniform(uniform::Uniform {})
    }
}
