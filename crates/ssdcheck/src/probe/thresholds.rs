//! What a normal request takes, and from where on one is slow.

use flashkeel_engine::Operation;

use super::runner::{ProbeError, Runner};
use super::statistics::{median, quantile};
use crate::{Latencies, Thresholds};

/// Requests measured for each figure.
const SAMPLES: usize = 2_000;
/// A read this many times as long as the median is not the NAND alone. On SSD
/// A the paper's threshold of 250 us is about that (§V-B).
const READ_COVER: f64 = 3.0;
/// Thresholds are rounded up to this.
const STEP_NS: u64 = 10_000;

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
    let read = median(&mut reads);
    // Where many reads take longer, as when the map has to be loaded, the
    // threshold covers them.
    let cover = (read as f64 * READ_COVER).max(quantile(&mut reads, 0.98) as f64 * 1.1) as u64;
    let threshold = cover.div_ceil(STEP_NS) * STEP_NS;
    // What a flush adds to a write is measured with the buffer.
    let thresholds = Thresholds { read: threshold, write: threshold };
    Ok((thresholds, Latencies { read, write: median(&mut writes), flush: 0, collection: 0 }))
}
