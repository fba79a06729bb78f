//! What a normal request takes, and from where on one is slow.

use flashkeel_engine::{Operation, Span};

use super::runner::{ProbeError, Runner};
use super::statistics::{median, quantile};
use crate::{Latencies, Thresholds};

/// Requests measured for each figure.
const SAMPLES: usize = 2_000;
/// How often reads are measured until they take what they took before.
const ROUNDS: usize = 5;
/// Of a slow drive no fewer, and no more once they have taken so long.
const FEWEST: usize = 64;
const FEWEST_LARGE: usize = 16;
const LONGEST: Span = Span::from_secs(4);
const LONGEST_LARGE: Span = Span::from_secs(2);
/// A read this many times as long as the median is not the NAND alone. On SSD
/// A the paper's threshold of 250 us is about that (§V-B).
pub(crate) const READ_COVER: f64 = 3.0;
/// Pages of a large request, and how much more than in the median its further
/// pages may take: they wait for each other on chips and channels.
const LARGE: u64 = 16;
const FURTHER: f64 = 1.25;
/// Thresholds are rounded up to this, and those of drives as quick as memory to less.
const STEP_NS: u64 = 10_000;

/// A threshold rounded up, by a tenth of it at most.
pub(crate) fn rounded_up(ns: u64) -> u64 {
    let step_ns = 10_u64.pow(ns.max(10).ilog10() - 1).min(STEP_NS);
    ns.max(1).next_multiple_of(step_ns)
}

/// Where a threshold may lie, in multiples of what a normal read takes, and how far from it
/// there should be none.
const RANGE: (f64, f64) = (2.0, 4.5);
const CLEAR: f64 = 0.12;
/// Reads that are this part of all are a mode.
const MODE: f64 = 0.25;

/// The middle of the narrowest mode or of all: what a read takes that nothing interferes with,
/// whichever part of them something does interfere with. Sorts them.
fn fast_mode(latencies: &mut [u64]) -> u64 {
    latencies.sort_unstable();
    let part = (latencies.len() as f64 * MODE) as usize;
    // The narrowest stretch, relative to its beginning, that holds a mode's part.
    let spread = |from: usize| latencies[from + part] as f64 / latencies[from].max(1) as f64;
    let narrowest = (0..latencies.len() - part).min_by(|&a, &b| spread(a).total_cmp(&spread(b)));
    let from = narrowest.unwrap_or(0);
    let (mode, middle) = (latencies[from + part / 2], median(latencies));
    // Page types make modes side by side: together they are what is normal.
    if middle <= 2 * mode { middle } else { mode }
}

/// A threshold above what a normal read takes: where fewest reads lie, and of such places
/// the nearest to [`READ_COVER`] times a normal one.
fn between_modes(sorted: &[u64], normal: u64) -> u64 {
    let at = |times: f64| normal as f64 * times;
    let near = |times: f64| {
        let low = sorted.partition_point(|&ns| (ns as f64) < at(times) * (1.0 - CLEAR));
        let high = sorted.partition_point(|&ns| (ns as f64) < at(times) * (1.0 + CLEAR));
        high - low
    };
    let steps = ((RANGE.1 - RANGE.0) * 20.0) as u32;
    let places = (0..=steps).map(|step| RANGE.0 + f64::from(step) / 20.0);
    let few = sorted.len() / 500;
    let best = places.min_by(|&a, &b| {
        let weight = |times: f64| (near(times).max(few), ((times - READ_COVER).abs() * 1_000.0) as u64);
        weight(a).cmp(&weight(b))
    });
    at(best.unwrap_or(READ_COVER)) as u64
}

/// Whether there is time to measure more.
fn goes_on(latencies: &[u64], fewest: usize, elapsed: Span, longest: Span) -> bool {
    latencies.len() < fewest || elapsed < longest
}

/// Thresholds and the times of undisturbed requests.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    undetermined: &mut Vec<String>,
) -> Result<(Thresholds, Latencies), ProbeError> {
    let pool = runner.pool_where(|_| true);
    let longest = runner.at_most(LONGEST);
    // What was written before may still keep the drive busy: it is asked until it takes as
    // long as it did before.
    let (mut reads, mut before_ns) = (Vec::new(), 0);
    let mut is_settled = false;
    for _ in 0..ROUNDS {
        reads.clear();
        let begun = runner.now();
        while reads.len() < SAMPLES && goes_on(&reads, FEWEST, runner.now().since(begun), longest) {
            let lba = pool[runner.random.below(pool.len() as u64) as usize];
            reads.push(runner.serve(Operation::Read, lba)?.0);
        }
        let now_ns = fast_mode(&mut reads);
        is_settled = now_ns.abs_diff(before_ns) * 10 <= now_ns;
        before_ns = now_ns;
        if is_settled {
            break;
        }
    }
    if reads.len() < SAMPLES / 4 {
        let count = reads.len();
        undetermined
            .push(format!("thresholds_ns: the drive is busy all the time: {count} reads in {longest}"));
    } else if !is_settled {
        undetermined.push("thresholds_ns: reads take longer at one time than at another".into());
    }
    let mut writes = Vec::with_capacity(SAMPLES);
    let begun = runner.now();
    while writes.len() < SAMPLES && goes_on(&writes, FEWEST, runner.now().since(begun), longest) {
        writes.push(runner.serve(Operation::Write, writes.len() as u64 * 8)?.0);
    }
    runner.rest()?;
    runner.request_pages = LARGE;
    let mut large = [Vec::new(), Vec::new()];
    let longest = runner.at_most(LONGEST_LARGE);
    for (operation, latencies) in [Operation::Read, Operation::Write].into_iter().zip(&mut large) {
        let begun = runner.now();
        while latencies.len() < SAMPLES
            && goes_on(latencies, FEWEST_LARGE, runner.now().since(begun), longest)
        {
            let lba = runner.random.below(runner.pages() / LARGE) * LARGE * 8;
            latencies.push(runner.serve(operation, lba)?.0);
        }
    }
    runner.request_pages = 1;
    runner.rest()?;
    let read = fast_mode(&mut reads);
    let threshold = rounded_up(between_modes(&reads, read));
    // What a flush adds to a write is measured with the buffer.
    let thresholds = Thresholds { read: threshold, write: threshold };
    let write = median(&mut writes);
    let [large_reads, large_writes] = &mut large;
    let further = |most: u64, one: u64| (most.saturating_sub(one) as f64 * FURTHER) as u64 / (LARGE - 1);
    let read_page = further(quantile(large_reads, 0.5), read);
    let write_page = further(quantile(large_writes, 0.5), write);
    Ok((thresholds, Latencies { read, write, read_page, write_page, flush: 0, collection: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_rounded_by_a_tenth_at_most() {
        let rounded = [0, 7, 99, 4_230, 42_301, 235_432, 250_000, 9_999_999].map(rounded_up);
        assert_eq!(rounded, [1, 7, 99, 4_300, 43_000, 240_000, 250_000, 10_000_000]);
    }
}
