//! Sleep: whether the first read after a silence is slow.

use flashkeel_engine::{Operation, Span};
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use super::statistics::median;
use crate::{Latencies, Sleep, Thresholds};

/// Silences that are tried, in microseconds; then the time is bisected.
const SILENCES_US: [u64; 12] =
    [300, 1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000];
/// Reads for each silence.
const READS: usize = 7;
/// Steps of bisection: the time is found within a hundredth or so.
const STEPS: u32 = 7;

/// The first read after a silence.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SleepEvidence {
    /// Length of the silence in nanoseconds.
    pub silence_ns: u64,
    /// Median latency of the read that ends it, in nanoseconds.
    pub read_ns: u64,
}

/// How the drive sleeps, if it does, and the evidence.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    thresholds: &Thresholds,
    latencies: &Latencies,
) -> Result<(Option<Sleep>, Vec<SleepEvidence>), ProbeError> {
    let pool = runner.pool_where(|_| true);
    runner.rest()?;
    let mut first_read = |silence: Span| {
        let mut reads = Vec::with_capacity(READS);
        for _ in 0..READS {
            runner.wait(silence)?;
            let lba = pool[runner.random.below(pool.len() as u64) as usize];
            reads.push(runner.serve(Operation::Read, lba)?.0);
        }
        Ok::<u64, ProbeError>(median(&mut reads))
    };
    let mut evidence = Vec::new();
    for silence_us in SILENCES_US {
        let silence = Span::from_us(silence_us);
        evidence.push(SleepEvidence { silence_ns: silence.0, read_ns: first_read(silence)? });
    }
    let awake = evidence.iter().rposition(|tried| tried.read_ns <= thresholds.read);
    let slow = awake.map_or(0, |index| index + 1);
    let Some(first) = evidence.get(slow) else { return Ok((None, evidence)) };
    let wake_ns = first.read_ns.saturating_sub(latencies.read);
    let mut shortest = awake.map_or(0, |index| evidence[index].silence_ns);
    let mut longest = first.silence_ns;
    for _ in 0..STEPS {
        let middle = shortest.midpoint(longest);
        if first_read(Span(middle))? > thresholds.read {
            longest = middle;
        } else {
            shortest = middle;
        }
    }
    Ok((Some(Sleep { after_ns: longest, wake_ns }), evidence))
}
