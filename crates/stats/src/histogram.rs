//! Counts of latencies.

use crate::buckets::{bucket_of, ends_of};

/// A thousand buckets to each doubling.
const BITS: u32 = 10;

/// Largest relative error of a latency read from a histogram. Counts, means
/// and maxima are exact.
pub const HISTOGRAM_PRECISION: f64 = 0.001;

/// How many requests took how long. (These are the buckets of an HDR histogram of three
/// significant digits.)
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// By bucket, up to the longest latency so far.
    counts: Vec<u64>,
}

impl Histogram {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket_of::<BITS>(ns);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.add(bucket, 1),
        }
    }

    /// Records so many of one latency.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        self.add(bucket_of::<BITS>(ns), count);
    }

    #[cold]
    fn add(&mut self, bucket: usize, count: u64) {
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(count);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.filled() {
            self.add(bucket, count);
        }
    }

    /// Requests in all.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The largest latency of each bucket that holds any, and how many; ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.filled().map(|(bucket, count)| (ends_of::<BITS>(bucket).1, count))
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }
}
