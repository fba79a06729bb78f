//! Diagnosis: what a drive shows to whoever only reads and writes it.

mod allocation;
mod buffer;
mod certain;
mod collection;
mod elsewhere;
mod flushes;
mod places;
mod rested;
mod runner;
mod size;
mod sleep;
mod stalls;
mod statistics;
mod thresholds;
mod volumes;

use std::ops::ControlFlow;

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Leaf, Outside, Span};
use serde::Serialize;

pub use allocation::BitEvidence;
pub use buffer::BufferEvidence;
pub use collection::CollectionEvidence;
pub use elsewhere::PairEvidence;
pub use runner::ProbeError;
pub use sleep::SleepEvidence;
pub(crate) use statistics::quantile;
pub(crate) use thresholds::{READ_COVER, rounded_up};

use crate::model::MOST_BITS;
use crate::{DeviceModel, WriteBuffer};
use runner::{Runner, Told};

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
/// simulated does not. `seed` decides the addresses. What is not found within `limit` of the
/// drive's time is not determined; without one the probe takes what it takes. `progress` is
/// told the fraction done, and may break off.
///
/// # Errors
/// If the drive is too small to tell anything, refuses requests, waits for something
/// outside and there is no `outside`, `limit` is too short for anything, or `progress`
/// breaks off.
pub fn probe(
    leaf: &mut dyn Leaf,
    outside: Option<&mut dyn Outside>,
    seed: u64,
    limit: Option<Span>,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Report, ProbeError> {
    let told = Told::new(progress);
    let sectors = leaf.limits().sectors;
    told.reach(0.0)?;
    // As long as `told` lives, and no longer.
    let outside = outside.map(|outside| -> &mut dyn Outside { outside });
    let mut runner = Runner::new(leaf, outside, sectors, seed, limit)?;
    runner.told = Some(&told);
    runner.prepare()?;
    told.reach(0.05)?;
    let mut undetermined = Vec::new();
    let (thresholds_ns, latencies_ns) = thresholds::measure(&mut runner, &mut undetermined)?;
    let model = DeviceModel {
        sectors,
        volume_bits: Vec::new(),
        gc_volume_bits: None,
        write_buffer: WriteBuffer::UNKNOWN,
        thresholds_ns,
        latencies_ns,
        sleep: None,
        undetermined,
        learned: None,
    };
    let evidence = Evidence {
        allocation: Vec::new(),
        buffer: BufferEvidence::default(),
        collection: CollectionEvidence::default(),
        sleep: Vec::new(),
        requests: 0,
        duration_ns: 0,
    };
    let mut report = Report { model, evidence };
    let mut unknown = FEATURES;
    match features(&mut runner, &mut report, &mut unknown, &told) {
        Err(ProbeError::OutOfTime) => {
            let limit = limit.expect("only then there is an end");
            let missing = unknown.iter().map(|key| format!("{key}: the time given, {limit}, ran out before"));
            report.model.undetermined.extend(missing);
        }
        done => done?,
    }
    told.reach(1.0)?;
    report.doubt_thresholds();
    (report.evidence.requests, report.evidence.duration_ns) = (runner.requests(), runner.now().0);
    Ok(report)
}

/// Normal reads may be so many times as quick later on as when thresholds were measured: where
/// pages of the map are loaded, they take twice as long.
const QUICKER: u64 = 3;
/// Of the reads beside writes so many are the quickest, and fewer where none was tried after a rest.
const QUICK: f64 = 0.1;
const QUICK_UNRESTED: f64 = 0.05;

impl Report {
    /// Says so if reads were much quicker later on than when thresholds were measured: the drive
    /// was busy then, or has changed. So it may have been where the time was over before any other.
    fn doubt_thresholds(&mut self) {
        let Report { model, evidence } = self;
        let mut beside: Vec<u64> = evidence.buffer.reads.iter().map(|&(_, ns)| ns).collect();
        let quick = if evidence.sleep.is_empty() { QUICK_UNRESTED } else { QUICK };
        let beside = Some(quantile(&mut beside, quick)).filter(|&ns| ns > 0);
        let quickest = evidence.sleep.iter().map(|seen| seen.read_ns).chain(beside).min();
        let before_ns = model.latencies_ns.read;
        let before = Span(before_ns);
        let why = match quickest {
            Some(quickest) if quickest * QUICKER < before_ns => {
                let after = Span(quickest);
                format!(
                    "reads took {before} when these were measured, and {after} later: the drive was busy, or has changed"
                )
            }
            Some(_) => return,
            None => format!(
                "reads took {before} when these were measured, and there was no time to try that again"
            ),
        };
        if !model.undetermined.iter().any(|reason| reason.starts_with("thresholds_ns")) {
            model.undetermined.push(format!("thresholds_ns: {why}"));
        }
    }
}

/// What is looked for, in this order.
const FEATURES: &[&str] = &["volume_bits", "write_buffer", "sleep", "gc_volume_bits"];

/// Finds the features one after the other, and puts them into `report`; `unknown` are those
/// that are still to be found.
fn features(
    runner: &mut Runner<'_>,
    report: &mut Report,
    unknown: &mut &[&str],
    told: &Told<'_>,
) -> Result<(), ProbeError> {
    let Report { model, evidence } = report;
    let (mut fallen, allocation) = allocation::measure(runner)?;
    evidence.allocation = allocation;
    if fallen.len() > MOST_BITS {
        // Something that changes with time made the difference.
        fallen.clear();
    }
    model.volume_bits.clone_from(&fallen);
    told.reach(0.2)?;
    find_buffer(runner, model, evidence, &fallen, unknown)?;
    told.reach(0.4)?;
    let (thresholds, latencies) = (model.thresholds_ns, model.latencies_ns);
    match sleep::measure(runner, &thresholds, &latencies)? {
        (Ok(sleep), seen) => (model.sleep, evidence.sleep) = (sleep, seen),
        (Err(why), seen) => {
            evidence.sleep = seen;
            model.undetermined.push(format!("sleep: {why}"));
        }
    }
    *unknown = &FEATURES[3..];
    // By chance one search finds nothing, and another does.
    if !model.tells_buffer() {
        again(runner, model, evidence, &fallen)?;
    }
    told.reach(0.5)?;
    let slow_write_ns = 4 * latencies.write + latencies.read;
    let buffer_pages = model.write_buffer.bytes.map(|bytes| bytes / LOGICAL_PAGE_BYTES);
    let volume_bits = model.volume_bits.clone();
    let collection = collection::measure(
        runner,
        slow_write_ns,
        buffer_pages,
        &volume_bits,
        &mut model.undetermined,
        &mut |part| told.reach(0.5 + 0.5 * part),
    )?;
    model.gc_volume_bits = collection.bits;
    // Volumes that no bits tell apart are collected apart all the same.
    if elsewhere::contradiction(&evidence.buffer.pairs).is_some() && model.gc_volume_bits.take().is_some() {
        model.undetermined.push("gc_volume_bits: see volume_bits".into());
    }
    evidence.collection = collection.evidence;
    model.latencies_ns.collection = collection.stall_ns;
    Ok(())
}

/// What is said of bits that were found, and nothing more could be asked.
const UNTRIED: &str = "volume_bits: the time given ran out before they were tried elsewhere on the drive";

/// Looks for the buffer and the bits that select one; `fallen` are those that seem to.
fn find_buffer(
    runner: &mut Runner<'_>,
    model: &mut DeviceModel,
    evidence: &mut Evidence,
    fallen: &[u32],
    unknown: &mut &[&str],
) -> Result<(), ProbeError> {
    let (thresholds, latencies) = (model.thresholds_ns, model.latencies_ns);
    let mut unfound = Vec::new();
    let mut found = buffer::Found::nothing();
    let done = buffer::measure(runner, fallen, &thresholds, &latencies, &mut found, &mut unfound);
    if done.is_err() && found.bits.is_none() {
        return done;
    }
    if let Some(why) = elsewhere::contradiction(&found.evidence.pairs) {
        model.volume_bits = Vec::new();
        model.undetermined.push(format!("volume_bits: {why}"));
    } else if let Some(bits) = found.bits.take().filter(|bits| bits.len() <= MOST_BITS) {
        model.volume_bits = bits;
        if !found.unclear.is_empty() {
            let unclear: Vec<String> = found.unclear.iter().map(u32::to_string).collect();
            let unclear = unclear.join(", ");
            model.undetermined.push(format!(
                "volume_bits: pages that differ in bit {unclear} fill neither clearly one buffer nor two"
            ));
        }
    } else {
        model.undetermined.push(
            "volume_bits: by the throughput alone, as no buffer was found; chips that addresses are spread over \
             look like volumes, and what limits all reads hides them"
                .into(),
        );
    }
    if done.is_err() && found.evidence.pairs.len() < elsewhere::ENOUGH && !model.doubts_bits() {
        model.undetermined.push(UNTRIED.into());
    }
    model.put_buffer(found, unfound, evidence);
    *unknown = &FEATURES[2..];
    done
}

/// Looks for the buffer once more. What is found counts if it is the whole of it.
fn again(
    runner: &mut Runner<'_>,
    model: &mut DeviceModel,
    evidence: &mut Evidence,
    fallen: &[u32],
) -> Result<(), ProbeError> {
    let (mut second, mut seen) = (model.clone(), evidence.clone());
    // What the first has found is not found by the second: it may have no time for anything.
    (second.volume_bits, second.write_buffer) = (fallen.to_vec(), WriteBuffer::UNKNOWN);
    second.undetermined.retain(|reason| !FEATURES[..2].iter().any(|key| reason.starts_with(key)));
    let done = find_buffer(runner, &mut second, &mut seen, fallen, &mut &FEATURES[..]);
    if second.tells_buffer() {
        (*model, *evidence) = (second, seen);
    }
    done
}

impl DeviceModel {
    /// Whether the buffer's size is known, and what selects one, as far as there was time.
    fn tells_buffer(&self) -> bool {
        let is_doubt = |reason: &String| reason.starts_with(FEATURES[0]) && reason != UNTRIED;
        self.write_buffer.bytes.is_some() && !self.undetermined.iter().any(is_doubt)
    }

    /// Whether it is not clear what selects a volume.
    fn doubts_bits(&self) -> bool {
        self.undetermined.iter().any(|reason| reason.starts_with(FEATURES[0]))
    }

    /// Takes over what was found of the buffer, and why not more.
    fn put_buffer(&mut self, found: buffer::Found, unfound: Vec<String>, evidence: &mut Evidence) {
        self.thresholds_ns.write = found.slow_write_ns.unwrap_or(self.thresholds_ns.read);
        self.latencies_ns.flush = found.flush_ns;
        self.write_buffer = found.buffer;
        self.undetermined.extend(unfound);
        evidence.buffer = found.evidence;
    }
}
