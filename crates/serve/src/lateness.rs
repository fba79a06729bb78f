//! By how much completions are later than the model says: the server's own error.

use flashkeel_engine::Span;
use hdrhistogram::Histogram;

use crate::seen::BOUNDS_NS;

/// Longer times count as this, an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Lateness of completions in model time, to within a thousandth.
#[derive(Clone, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
    counts: [u64; BOUNDS_NS.len() + 1],
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
    /// How many were so late at most, by [`BOUNDS_NS`]: what is between two reports is their
    /// difference.
    pub counts: [u64; BOUNDS_NS.len() + 1],
}

impl Default for Lateness {
    fn default() -> Self {
        // Up to an hour: beyond its bounds a value would be taken for the largest.
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("three digits");
        Lateness { histogram, counts: Default::default() }
    }
}

impl Lateness {
    /// A completion was handed over so long after its time.
    pub fn record(&mut self, late: Span) {
        self.histogram.saturating_record(late.0);
        self.counts[BOUNDS_NS.partition_point(|&bound| bound < late.0)] += 1;
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
            counts: self.counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once all that was later than 2 us was taken for 2 us.
    #[test]
    fn what_is_very_late_is_said_to_be() {
        let mut lateness = Lateness::default();
        (0..99).for_each(|_| lateness.record(Span(0)));
        lateness.record(Span(20_000_000_000));
        let late = lateness.report();
        assert_eq!((late.count, late.p50_ns), (100, 0));
        let class = BOUNDS_NS.iter().position(|&bound| bound >= 20_000_000_000).unwrap_or(BOUNDS_NS.len());
        assert_eq!((late.counts[0], late.counts[class]), (99, 1));
        assert!(late.max_ns.abs_diff(20_000_000_000) < 20_000_000, "{late:?}");
    }
}
