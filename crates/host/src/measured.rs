//! What the driver wants from a leaf besides serving requests.

use flashkeel_device::{Purpose, Ssd};
use flashkeel_engine::Leaf;

/// A leaf with instruments.
pub trait Measured: Leaf {
    /// Names of the gauges, in order.
    fn gauge_names(&self) -> Vec<String>;

    /// Reads the gauges into `values`.
    fn gauges(&self, values: &mut Vec<u64>);

    /// The warm-up is over: count anew.
    fn start_measuring(&mut self);

    /// The final counters, in a fixed order, for the digest.
    fn final_counters(&self) -> Vec<u64>;
}

impl Measured for Ssd {
    fn gauge_names(&self) -> Vec<String> {
        Ssd::gauge_names()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        Ssd::gauges(self, values);
    }

    fn start_measuring(&mut self) {
        self.reset_counters();
    }

    fn final_counters(&self) -> Vec<u64> {
        let counters = self.counters();
        // A purpose that never came up leaves digests as they were before it existed.
        let counts = Purpose::ALL.iter().map(|&purpose| counters.operations(purpose));
        let mut values: Vec<u64> = counts.filter(|&count| count > 0).collect();
        values.extend([counters.host_pages_written, counters.host_pages_read, counters.moved_pages]);
        values
    }
}
