//! Diagnosis: what a drive shows to whoever only reads and writes it.

mod allocation;
mod buffer;
mod collection;
mod runner;
mod sleep;
mod statistics;
mod thresholds;

use std::ops::ControlFlow;

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Leaf, Outside};
use serde::Serialize;

pub use allocation::BitEvidence;
pub use buffer::BufferEvidence;
pub use collection::CollectionEvidence;
pub use runner::ProbeError;
pub use sleep::SleepEvidence;
pub(crate) use statistics::quantile;
pub(crate) use thresholds::{READ_COVER, STEP_NS};

use crate::DeviceModel;
use crate::model::MOST_BITS;
use runner::Runner;

/// What the findings rest on.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Throughput with each address bit held fixed, relative to free ones.
    pub allocation: Vec<BitEvidence>,
    /// Reads beside writes, and intervals between flushes.
    pub buffer: BufferEvidence,
    /// Intervals between collections, with each bit flipped.
    pub collection: CollectionEvidence,
    /// The first read after a silence.
    pub sleep: Vec<SleepEvidence>,
    /// Requests that were issued.
    pub requests: u64,
    /// Time that passed on the device, in nanoseconds.
    pub duration_ns: u64,
}

/// A diagnosis.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was found.
    #[serde(flatten)]
    pub model: DeviceModel,
    /// What that rests on.
    pub evidence: Evidence,
}

/// Diagnoses a drive. It is written to; what it held is
/// lost. `outside` is listened to while the drive waits for it, which one that is
/// simulated does not. `seed` decides the addresses; `progress` is told the fraction
/// done, and may break off.
///
/// # Errors
/// If the drive is too small to tell anything, refuses requests, waits for something
/// outside and there is no `outside`, or `progress` breaks off.
pub fn probe<'a>(
    leaf: &'a mut dyn Leaf,
    outside: Option<&'a mut dyn Outside>,
    seed: u64,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Report, ProbeError> {
    let mut told = |fraction| match progress(fraction) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ProbeError::Interrupted),
    };
    let sectors = leaf.limits().sectors;
    let mut runner = Runner::new(leaf, outside, sectors, seed)?;
    let mut undetermined = Vec::new();
    runner.prepare()?;
    told(0.05)?;
    let (mut thresholds, mut latencies) = thresholds::measure(&mut runner)?;
    let (mut volume_bits, allocation) = allocation::measure(&mut runner)?;
    if volume_bits.len() > MOST_BITS {
        undetermined.push(too_many("volume_bits", volume_bits.len()));
        volume_bits.clear();
    }
    told(0.2)?;
    let mut unfound = Vec::new();
    let mut found = buffer::measure(&mut runner, &volume_bits, &thresholds, &latencies, &mut unfound)?;
    told(0.35)?;
    let slow_write_ns = 4 * latencies.write + latencies.read;
    let buffer_pages = found.buffer.bytes.map(|bytes| bytes / LOGICAL_PAGE_BYTES);
    let mut collection =
        collection::measure(&mut runner, slow_write_ns, buffer_pages, &mut undetermined, &mut |part| {
            told(0.35 + 0.6 * part)
        })?;
    latencies.collection = collection.stall_ns;
    let found_there = collection.bits.as_deref().unwrap_or_default();
    let mut missed: Vec<u32> = found_there.iter().filter(|bit| !volume_bits.contains(bit)).copied().collect();
    if volume_bits.len() + missed.len() > MOST_BITS {
        undetermined.push(too_many("gc_volume_bits", found_there.len()));
        collection.bits = None;
        missed.clear();
    }
    if !missed.is_empty() {
        // Where something outside the flash limits reads, fixing a bit costs no
        // throughput. The buffers are those of the volumes found now.
        volume_bits.extend(missed);
        volume_bits.sort_unstable();
        unfound.clear();
        found = buffer::measure(&mut runner, &volume_bits, &thresholds, &latencies, &mut unfound)?;
    }
    thresholds.write = found.slow_write_ns.unwrap_or(thresholds.read);
    latencies.flush = found.flush_ns;
    undetermined.extend(unfound);
    let (sleep, silences) = sleep::measure(&mut runner, &thresholds, &latencies)?;
    told(1.0)?;
    let model = DeviceModel {
        sectors,
        volume_bits,
        gc_volume_bits: collection.bits,
        write_buffer: found.buffer,
        thresholds_ns: thresholds,
        latencies_ns: latencies,
        sleep,
        undetermined,
    };
    let evidence = Evidence {
        allocation,
        buffer: found.evidence,
        collection: collection.evidence,
        sleep: silences,
        requests: runner.requests(),
        duration_ns: runner.now().0,
    };
    Ok(Report { model, evidence })
}

/// Why bits that seem to select volumes are not taken to do so: something else
/// that changes with time made the difference.
fn too_many(key: &str, bits: usize) -> String {
    format!("{key}: {bits} bits make a difference, more than the {MOST_BITS} that may select volumes")
}
