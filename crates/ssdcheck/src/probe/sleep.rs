//! Sleep: whether the first read after a silence is slow.

use flashkeel_engine::{Operation, Span};
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use crate::{Latencies, Sleep, Thresholds};

/// Silences that are tried, in microseconds; then the time is bisected.
const SILENCES_US: [u64; 12] =
    [300, 1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 3_000_000];
/// Reads for each silence. A drive that sleeps does so every time: one normal read shows
/// that it is awake, whatever else made others slow.
const READS: usize = 3;
/// Steps of bisection: the time is found within a hundredth or so.
const STEPS: u32 = 7;
/// Further reads after a silence a little shorter, and a little longer, than found: so many
/// must be normal, and slow.
const AGAIN: usize = 5;
const AGREEING: usize = 4;

/// The first read after a silence.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SleepEvidence {
    /// Length of the silence in nanoseconds.
    pub silence_ns: u64,
    /// Least latency of the reads that end one, in nanoseconds.
    pub read_ns: u64,
}

/// Sleep, if there is any, or why that cannot be told.
type Told = Result<Option<Sleep>, &'static str>;

/// How the drive sleeps, if it does, or why that cannot be told; and the evidence.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    thresholds: &Thresholds,
    latencies: &Latencies,
) -> Result<(Told, Vec<SleepEvidence>), ProbeError> {
    let pool = runner.pool_where(|_| true);
    runner.rest()?;
    let mut first_read = |silence: Span| {
        runner.wait(silence)?;
        let lba = pool[runner.random.below(pool.len() as u64) as usize];
        Ok::<u64, ProbeError>(runner.serve(Operation::Read, lba)?.0)
    };
    let mut least = |silence: Span| {
        let mut least = u64::MAX;
        for _ in 0..READS {
            least = least.min(first_read(silence)?);
            if least <= thresholds.read {
                break;
            }
        }
        Ok::<u64, ProbeError>(least)
    };
    let mut evidence = Vec::new();
    for silence_us in SILENCES_US {
        let silence = Span::from_us(silence_us);
        evidence.push(SleepEvidence { silence_ns: silence.0, read_ns: least(silence)? });
    }
    let awake = evidence.iter().rposition(|tried| tried.read_ns <= thresholds.read);
    let slow = awake.map_or(0, |index| index + 1);
    let Some(first) = evidence.get(slow) else { return Ok((Ok(None), evidence)) };
    let wake_ns = first.read_ns.saturating_sub(latencies.read);
    let mut shortest = awake.map_or(0, |index| evidence[index].silence_ns);
    let mut longest = first.silence_ns;
    for _ in 0..STEPS {
        let middle = shortest.midpoint(longest);
        if least(Span(middle))? > thresholds.read {
            longest = middle;
        } else {
            shortest = middle;
        }
    }
    let mut slow_after = |silence_ns: u64| {
        let mut slow = 0;
        for _ in 0..AGAIN {
            slow += usize::from(first_read(Span(silence_ns))? > thresholds.read);
        }
        Ok::<usize, ProbeError>(slow)
    };
    let after = slow_after(longest + longest / 20)?;
    let before = slow_after(shortest - shortest / 20)?;
    if after < AGREEING || before > AGAIN - AGREEING {
        return Ok((Err("reads after silences of one length are slow at times and not at others"), evidence));
    }
    Ok((Ok(Some(Sleep { after_ns: longest, wake_ns })), evidence))
}
