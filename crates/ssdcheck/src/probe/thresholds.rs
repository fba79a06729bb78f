//! What a normal request takes, and from where on one is slow.

use flashkeel_engine::Operation;

use super::runner::{ProbeError, Runner};
use super::statistics::{median, quantile};
use crate::{Latencies, Thresholds};

/// Requests measured for each figure.
const SAMPLES: usize = 2_000;
/// A read this many times as long as the median is not the NAND alone. On SSD
/// A the paper's threshold of 250 us is about that (§V-B).
pub(crate) const READ_COVER: f64 = 3.0;
/// Pages of a large request, and how much more than in the median its further
/// pages may take: they wait for each other on chips and channels.
const LARGE: u64 = 16;
const FURTHER: f64 = 1.25;
/// Thresholds are rounded up to this.
pub(crate) const STEP_NS: u64 = 10_000;

/// Thresholds and the times of undisturbed requests.
pub(super) fn measure(runner: &mut Runner<'_>) -> Result<(Thresholds, Latencies), ProbeError> {
    let pool = runner.pool_where(|_| true);
    let mut reads = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let lba = pool[runner.random.below(pool.len() as u64) as usize];
        reads.push(runner.serve(Operation::Read, lba)?.0);
    }
    let mut writes = Vec::with_capacity(SAMPLES);
    for index in 0..SAMPLES as u64 {
        writes.push(runner.serve(Operation::Write, index * 8)?.0);
    }
    runner.rest()?;
    runner.request_pages = LARGE;
    let mut large = [Vec::new(), Vec::new()];
    for (operation, latencies) in [Operation::Read, Operation::Write].into_iter().zip(&mut large) {
        for _ in 0..SAMPLES / 4 {
            let lba = runner.random.below(runner.pages() / LARGE) * LARGE * 8;
            latencies.push(runner.serve(operation, lba)?.0);
        }
    }
    runner.request_pages = 1;
    runner.rest()?;
    let read = median(&mut reads);
    // Where many reads take longer, as when the map has to be loaded, the
    // threshold covers them.
    let cover = (read as f64 * READ_COVER).max(quantile(&mut reads, 0.98) as f64 * 1.1) as u64;
    let threshold = cover.div_ceil(STEP_NS) * STEP_NS;
    // What a flush adds to a write is measured with the buffer.
    let thresholds = Thresholds { read: threshold, write: threshold };
    let write = median(&mut writes);
    let [large_reads, large_writes] = &mut large;
    let further = |most: u64, one: u64| (most.saturating_sub(one) as f64 * FURTHER) as u64 / (LARGE - 1);
    let read_page = further(quantile(large_reads, 0.5), read);
    let write_page = further(quantile(large_writes, 0.5), write);
    Ok((thresholds, Latencies { read, write, read_page, write_page, flush: 0, collection: 0 }))
}
