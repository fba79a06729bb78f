//! Allocation volumes: throughput falls where a fixed bit leaves part of the
//! drive idle (§III-B1).

use flashkeel_engine::Operation;
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use super::statistics::median;

/// Reads of each run.
const READS: usize = 1_600;
/// Reads outstanding, enough to keep the chips of every volume busy.
const DEPTH: usize = 128;
/// A bit selects a volume if fixing it leaves less of the throughput than
/// this. Half of the drive gives a half; the rest is noise.
const FALLEN: f64 = 0.75;
/// How often a fall is looked at again in the time of a machine that does other work: what
/// a volume costs, it costs every time.
const AGAIN: usize = 3;
/// Fewer pages than this tell nothing.
const FEWEST: usize = 64;

/// What fixing one bit does.
#[derive(Clone, Debug, Serialize)]
pub struct BitEvidence {
    /// Bit of the 512-byte LBA.
    pub bit: u32,
    /// Throughput of random reads with the bit fixed at 0 and at 1, relative to
    /// all bits free.
    pub relative_throughput: [Option<f64>; 2],
}

/// The bits that select a volume, and the evidence.
pub(super) fn measure(runner: &mut Runner<'_>) -> Result<(Vec<u32>, Vec<BitEvidence>), ProbeError> {
    let all = runner.pool_where(|_| true);
    let free = runner.throughput(Operation::Read, &all, 4 * READS, DEPTH)?;
    let mut runs = Vec::new();
    for bit in runner.bits() {
        let mut fixed = [None; 2];
        for (value, fixed) in fixed.iter_mut().enumerate() {
            let pages = runner.pool_where(|lba| lba >> bit & 1 == value as u64);
            if pages.len() >= FEWEST {
                *fixed = Some(runner.throughput(Operation::Read, &pages, READS, DEPTH)?);
            }
        }
        runs.push((bit, fixed));
    }
    // The run with all bits free may have met the drive at work of its own. Most
    // bits select nothing.
    let mut fixed: Vec<u64> =
        runs.iter().flat_map(|(_, fixed)| fixed).flatten().map(|&per_s| per_s as u64).collect();
    let whole = free.max(median(&mut fixed) as f64);
    if runner.is_real() {
        for (bit, fixed) in &mut runs {
            if fixed.iter().flatten().all(|&per_s| per_s < FALLEN * whole) {
                look_again(runner, *bit, fixed)?;
            }
        }
    }
    let evidence: Vec<BitEvidence> = runs
        .into_iter()
        .map(|(bit, fixed)| BitEvidence { bit, relative_throughput: fixed.map(|per_s| Some(per_s? / whole)) })
        .collect();
    let selects = |of: &&BitEvidence| {
        let mut parts = of.relative_throughput.iter().flatten().peekable();
        parts.peek().is_some() && parts.all(|&part| part < FALLEN)
    };
    Ok((evidence.iter().filter(selects).map(|of| of.bit).collect(), evidence))
}

/// Measures a bit again; of each value the best of all runs counts.
fn look_again(runner: &mut Runner<'_>, bit: u32, fixed: &mut [Option<f64>; 2]) -> Result<(), ProbeError> {
    for (value, best) in fixed.iter_mut().enumerate() {
        let Some(best) = best else { continue };
        let pages = runner.pool_where(|lba| lba >> bit & 1 == value as u64);
        for _ in 0..AGAIN {
            *best = best.max(runner.throughput(Operation::Read, &pages, READS, DEPTH)?);
        }
    }
    Ok(())
}
