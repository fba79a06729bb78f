//! By how much completions are later than the model says: the server's own error.

use flashkeel_engine::Span;
use hdrhistogram::Histogram;

/// Lateness of completions in model time, to within a thousandth.
#[derive(Clone, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
}

/// What is reported of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Completions.
    pub count: u64,
    /// Percentiles in nanoseconds.
    pub p50_ns: u64,
    /// The 99th.
    pub p99_ns: u64,
    /// The 99.9th.
    pub p99_9_ns: u64,
    /// The 99.99th.
    pub p99_99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { histogram: Histogram::new(3).expect("three digits") }
    }
}

impl Lateness {
    /// A completion was handed over so long after its time.
    pub fn record(&mut self, late: Span) {
        self.histogram.saturating_record(late.0);
    }

    /// What there is.
    pub fn report(&self) -> Late {
        let at = |percentile| self.histogram.value_at_percentile(percentile);
        Late {
            count: self.histogram.len(),
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p99_9_ns: at(99.9),
            p99_99_ns: at(99.99),
            max_ns: self.histogram.max(),
        }
    }
}
