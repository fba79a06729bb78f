//! A latency distribution as results show it.

use flashkeel_engine::Span;
use serde::Serialize;

use crate::{
    PerPercentile, Percentile,
    latency::Cell,
    order::{interval, rank},
};

/// Latencies of one set of requests: count, mean, maximum and percentiles to
/// six nines, each with what it is worth.
///
/// Counts, bytes, mean and maximum are exact; other latencies are right to
/// [`HISTOGRAM_PRECISION`](crate::HISTOGRAM_PRECISION), rounded up, and never
/// above the maximum. Without any request the counts and rates are 0 and every
/// latency is none (`null` in JSON).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of requests.
    pub count: u64,
    /// Requests per second of measured time; 0 if no time passed.
    pub iops: f64,
    /// Bytes served: of each request those of its range as it was aligned to the device.
    pub bytes: u64,
    /// Mean latency.
    pub mean_ns: Option<f64>,
    /// Largest latency.
    pub max_ns: Option<u64>,
    /// The smallest latency with at least that share of the requests at or
    /// below it.
    pub percentile: PerPercentile<Option<u64>>,
    /// Number of requests with a latency above the percentile.
    pub beyond: PerPercentile<u64>,
    /// A 95 % confidence interval, [low, high], that assumes nothing of the
    /// shape of the distribution, but that requests are independent: where
    /// slow requests come in bursts the truth is wider. An end that the
    /// requests are too few to bound is the smallest or largest latency seen.
    pub ci95: PerPercentile<[Option<u64>; 2]>,
    /// Whether the requests were enough to bound both ends of `ci95`. For p99.9
    /// that takes 3688 requests.
    pub ci95_bounded: PerPercentile<bool>,
}

impl Distribution {
    /// That of requests of which latencies and bytes are known, over `measured`.
    pub fn of(requests: impl IntoIterator<Item = (Span, u64)>, measured: Span) -> Distribution {
        let mut cell = Cell::default();
        for (latency, bytes) in requests {
            cell.record(latency, bytes);
        }
        Distribution::new(&cell, measured)
    }

    pub(crate) fn new(cell: &Cell, measured: Span) -> Distribution {
        let count = cell.histogram.total();
        let seconds = measured.as_secs_f64();
        let intervals = PerPercentile::from_fn(|p| interval(count, p.parts_per_million()));

        let mut ranks = Vec::new();
        for (percentile, interval) in intervals.iter() {
            ranks.push(rank(count, percentile.parts_per_million()));
            ranks.extend([interval.low.unwrap_or(1), interval.high.unwrap_or(count)]);
        }
        let samples = samples_at(cell, &ranks);
        let of = |p: Percentile, which: usize| samples.get(p.index() * 3 + which).copied();

        Distribution {
            count,
            iops: if seconds > 0.0 { count as f64 / seconds } else { 0.0 },
            bytes: cell.bytes,
            mean_ns: (count > 0).then(|| cell.sum_ns as f64 / count as f64),
            max_ns: (count > 0).then_some(cell.max_ns),
            percentile: PerPercentile::from_fn(|p| of(p, 0).map(|sample| sample.ns)),
            beyond: PerPercentile::from_fn(|p| of(p, 0).map_or(0, |sample| sample.beyond)),
            ci95: PerPercentile::from_fn(|p| [of(p, 1).map(|s| s.ns), of(p, 2).map(|s| s.ns)]),
            ci95_bounded: PerPercentile::from_fn(|p| {
                let interval = intervals.get(p);
                interval.low.is_some() && interval.high.is_some()
            }),
        }
    }
}

/// A sample found by its rank.
#[derive(Clone, Copy)]
struct Sample {
    ns: u64,
    /// Number of samples above `ns`.
    beyond: u64,
}

/// The samples of the given one-based ranks, in the order of `ranks`; empty if
/// there are no samples.
fn samples_at(cell: &Cell, ranks: &[u64]) -> Vec<Sample> {
    let count = cell.histogram.total();
    if count == 0 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by_key(|&index| ranks[index]);
    let mut wanted = order.into_iter().peekable();

    let mut samples = vec![Sample { ns: 0, beyond: 0 }; ranks.len()];
    let mut seen = 0u64;
    for (largest_ns, count_here) in cell.histogram.iter() {
        seen = seen.saturating_add(count_here);
        while let Some(index) = wanted.next_if(|&index| ranks[index] <= seen) {
            let ns = largest_ns.min(cell.max_ns);
            samples[index] = Sample { ns, beyond: count - seen };
        }
    }
    samples
}
