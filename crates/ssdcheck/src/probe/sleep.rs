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
/// In real time a drive that sleeps takes so many times as long as one that does not, where the
/// way to it takes long, too.
const CLEAR: u64 = 2;
/// Where reads after so many of the longest silences all take nearly as long as a slow one, some of
/// them are.
const LAST: usize = 3;
const NEARLY: f64 = 0.75;

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
    let is_real = runner.is_real();
    runner.rest()?;
    let mut first_read = |silence: Span| {
        runner.wait(silence)?;
        let lba = pool[runner.random.below(pool.len() as u64) as usize];
        Ok::<u64, ProbeError>(runner.serve(Operation::Read, lba)?.0)
    };
    let mut least = |silence: Span, reads: usize| {
        let mut least = u64::MAX;
        for _ in 0..reads {
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
        evidence.push(SleepEvidence { silence_ns: silence.0, read_ns: least(silence, READS)? });
    }
    let read_ns: Vec<u64> = evidence.iter().map(|tried| tried.read_ns).collect();
    let slow_ns = if is_real { beyond_the_way(&read_ns, thresholds.read) } else { Some(thresholds.read) };
    let Some(slow_ns) = slow_ns else {
        return Ok((Err("reads after silences are slow, but not much slower from one silence on"), evidence));
    };
    let awake = read_ns.iter().rposition(|&read_ns| read_ns <= slow_ns);
    let slow = awake.map_or(0, |index| index + 1);
    let Some(first) = evidence.get(slow) else {
        let is_near = |&read_ns: &u64| read_ns as f64 > NEARLY * slow_ns as f64;
        let why = "reads after the longest silences take nearly as long as slow ones";
        let told = if read_ns[read_ns.len() - LAST..].iter().all(is_near) { Err(why) } else { Ok(None) };
        return Ok((told, evidence));
    };
    let wake_ns = first.read_ns.saturating_sub(latencies.read);
    let mut shortest = awake.map_or(0, |index| evidence[index].silence_ns);
    let mut longest = first.silence_ns;
    for _ in 0..STEPS {
        let middle = shortest.midpoint(longest);
        if least(Span(middle), READS)? > slow_ns {
            longest = middle;
        } else {
            shortest = middle;
        }
    }
    // In real time one read may be slow because of the machine.
    let reads = if is_real { READS } else { 1 };
    let mut slow_after = |silence_ns: u64| {
        let mut slow = 0;
        for _ in 0..AGAIN {
            slow += usize::from(least(Span(silence_ns), reads)? > slow_ns);
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

/// From where on a read is one of a drive that slept, of a drive in real time, where the way is
/// the longer the longer nobody has gone it: who serves it sleeps, too. `None` where reads are
/// slow and that cannot be told from the way.
fn beyond_the_way(read_ns: &[u64], slow_ns: u64) -> Option<u64> {
    if read_ns.last().is_none_or(|&last| last <= slow_ns) {
        return Some(slow_ns);
    }
    (1..read_ns.len()).find_map(|slow| {
        let (awake, asleep) = read_ns.split_at(slow);
        let (longest, shortest) = (*awake.iter().max()?, *asleep.iter().min()?);
        (shortest > slow_ns && shortest >= CLEAR * longest).then(|| slow_ns.max((longest * shortest).isqrt()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once a way of 400 us on a busy machine was taken for a drive that sleeps from 300 us on.
    #[test]
    fn a_way_that_takes_longer_after_silences_is_no_sleep() {
        let way = [358, 377, 387, 405];
        let asleep = [1448, 1135, 1019, 1268];
        let seen: Vec<u64> = way.iter().chain(&asleep).copied().collect();
        assert_eq!(beyond_the_way(&seen, 270), Some((405u64 * 1019).isqrt()));
        // It may be both, and is not said to be either.
        assert_eq!(beyond_the_way(&[120, 180, 260, 390, 500], 270), None);
        assert_eq!(beyond_the_way(&way, 270), None);
        // Nothing was slow in the end.
        assert_eq!(beyond_the_way(&[120, 500, 180], 270), Some(270));
        assert_eq!(beyond_the_way(&[120, 130, 300, 310], 270), Some(270));
    }
}
