//! Garbage-collection volumes: *Fixed* and *Flip* (§III-B2).
//!
//! Writing the same page over and over makes whole blocks garbage, so that
//! collection comes at nearly constant intervals of writes. If part of the
//! writes go to a page that differs in one bit, and that bit selects another
//! volume, each volume collects at intervals of its own.

use flashkeel_engine::Operation;
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use super::statistics::{median, same_distribution, variation};

/// Of this many writes one goes to the flipped page. With every second one, two
/// volumes that collect in turn would look like one; so their intervals become
/// half as long again, or are cut in two.
const FLIP_EVERY: u64 = 3;
/// Collections of each run: enough, and more where they come quickly. The first
/// ones still move other data.
const EVENTS: usize = 24;
const MOST_EVENTS: usize = 72;
const QUICK_WRITES: u64 = 60_000;
const WARM_UP: usize = 6;
/// Fewest collections that tell anything.
const FEWEST: usize = 12;
/// Most writes of a run.
const MOST_WRITES: u64 = 160_000;
/// Below this probability two runs saw different volumes. A chance find among
/// twenty bits is then rarer than one in a thousand.
const DIFFERENT: f64 = 1e-5;
/// Two volumes must be so many times as likely as one, or one as two.
const BETTER: f64 = 1e3;
/// Collections are at most this part of the slow writes; the others are flushes.
const RARE: usize = 6;
/// Intervals of *Fixed* vary at most by this part of their mean.
const REGULAR: f64 = 0.35;
/// Stalls within this many flushes are of one collection.
const TOGETHER: u64 = 4;

/// What the runs saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CollectionEvidence {
    /// From where on a write is taken for one behind a collection, in
    /// nanoseconds.
    pub stall_above_ns: u64,
    /// Writes between collections of *Fixed*.
    pub fixed: Vec<u64>,
    /// For each bit, the writes between collections of *Flip* and the
    /// probability that they are of one volume.
    pub flip: Vec<FlipEvidence>,
}

/// One run of *Flip*.
#[derive(Clone, Debug, Serialize)]
pub struct FlipEvidence {
    /// Bit of the 512-byte LBA.
    pub bit: u32,
    /// Writes between collections.
    pub intervals: Vec<u64>,
    /// Probability, by the chi-squared test, that both pages are of one volume:
    /// that intervals in all writes are those of *Fixed*.
    pub p: f64,
    /// The same of two volumes: that intervals in writes to one page, between
    /// collections that held it up, are.
    pub p_own: f64,
}

/// What was found.
pub(super) struct Found {
    pub bits: Vec<u32>,
    /// Median latency of a write behind a collection; 0 if none was seen.
    pub stall_ns: u64,
    pub evidence: CollectionEvidence,
}

/// Tests every bit. `progress` is told the fraction done.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    slow_write_ns: u64,
    buffer_pages: Option<u64>,
    undetermined: &mut Vec<String>,
    progress: &mut dyn FnMut(f64) -> Result<(), ProbeError>,
) -> Result<Found, ProbeError> {
    let mut found = Found { bits: Vec::new(), stall_ns: 0, evidence: CollectionEvidence::default() };
    // Low enough for every bit to be flipped.
    let page = runner.random.below(runner.pages() / 16) * 8;
    // How long writes take decides what a collection is.
    let mut slow = Vec::new();
    for index in 0..MOST_WRITES / 2 {
        let latency = runner.serve(Operation::Write, page)?.0;
        if latency > slow_write_ns {
            slow.push((index, latency));
        }
    }
    let together = buffer_pages.unwrap_or(1) * TOGETHER;
    let Some(above) = stall_threshold(&slow, buffer_pages, together, slow_write_ns) else {
        undetermined.push(
            "gc_volume_bits: no writes to one page stand out from the others as if behind garbage collection"
                .into(),
        );
        return Ok(found);
    };
    found.evidence.stall_above_ns = above;
    let stalls = slow.iter().map(|&(_, latency)| latency).filter(|&latency| latency > above);
    found.stall_ns = median(&mut stalls.collect::<Vec<_>>());
    let stall = Stall { above, together };
    let fixed = run(runner, page, page, &stall)?.intervals;
    if fixed.len() < FEWEST {
        undetermined.push(format!(
            "gc_volume_bits: only {} collections in {MOST_WRITES} writes to one page",
            fixed.len()
        ));
        found.evidence.fixed = fixed;
        return Ok(found);
    }
    let bits = runner.bits();
    let count = f64::from(bits.end - bits.start);
    for bit in bits.clone() {
        let flipped = page ^ 1 << bit;
        if !runner.holds(flipped) {
            undetermined.push(format!("gc_volume_bits: bit {bit} cannot be flipped within the capacity"));
            continue;
        }
        let seen = run(runner, page, flipped, &stall)?;
        if seen.intervals.len() < FEWEST / 2 {
            let few = seen.intervals.len();
            undetermined.push(format!("gc_volume_bits: only {few} collections with bit {bit} flipped"));
            continue;
        }
        let p = same_distribution(&fixed, &seen.intervals);
        let p_own = same_distribution(&fixed, &seen.own_intervals);
        if p < DIFFERENT {
            if p_own > p * BETTER {
                found.bits.push(bit);
            } else if p_own > p / BETTER {
                undetermined.push(format!(
                    "gc_volume_bits: with bit {bit} flipped, intervals are those of neither one volume nor two"
                ));
            }
        }
        found.evidence.flip.push(FlipEvidence { bit, intervals: seen.intervals, p, p_own });
        progress(f64::from(bit - bits.start + 1) / count)?;
    }
    found.evidence.fixed = fixed;
    Ok(found)
}

/// What counts as a collection.
struct Stall {
    /// Latency above which a write is behind one.
    above: u64,
    /// Writes within which stalls are of the same one.
    together: u64,
}

/// Intervals between the collections of a run.
struct Run {
    /// In all writes.
    intervals: Vec<u64>,
    /// Between those that held up the same page, in writes to that page.
    own_intervals: Vec<u64>,
}

/// Writes `page` over and over, but one time in [`FLIP_EVERY`] `flipped`.
fn run(runner: &mut Runner<'_>, page: u64, flipped: u64, stall: &Stall) -> Result<Run, ProbeError> {
    let mut all = Starts::default();
    let mut own = [Starts::default(), Starts::default()];
    for index in 0..MOST_WRITES {
        let is_flipped = index % FLIP_EVERY == 0;
        let lba = if is_flipped { flipped } else { page };
        if runner.serve(Operation::Write, lba)?.0 > stall.above {
            all.stalled(index, index, stall.together);
            let flips = index.div_ceil(FLIP_EVERY);
            let written = if is_flipped { flips } else { index - flips };
            own[usize::from(is_flipped)].stalled(index, written, stall.together);
            let events = all.starts.len().saturating_sub(WARM_UP);
            if events >= MOST_EVENTS || (events >= EVENTS && index >= QUICK_WRITES) {
                break;
            }
        }
    }
    let own_intervals = own.iter().flat_map(|own| distances(own.after(WARM_UP / 2))).collect();
    Ok(Run { intervals: distances(all.after(WARM_UP)), own_intervals })
}

/// Where collections began.
#[derive(Default)]
struct Starts {
    starts: Vec<u64>,
    last: Option<u64>,
}

impl Starts {
    /// Write number `index` was held up; it counts as `position`, unless it is
    /// of the same collection as the one before.
    fn stalled(&mut self, index: u64, position: u64, together: u64) {
        if self.last.is_none_or(|last| index - last > together) {
            self.starts.push(position);
        }
        self.last = Some(index);
    }

    fn after(&self, warm_up: usize) -> &[u64] {
        &self.starts[warm_up.min(self.starts.len())..]
    }
}

fn distances(starts: &[u64]) -> Vec<u64> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The latency above which slow writes, given with their numbers, are rare and
/// recur regularly: where the gap between latencies is the clearest.
/// Where flushes are not seen at all, because slow writes are rarer, every slow
/// write counts.
fn stall_threshold(
    slow: &[(u64, u64)],
    buffer_pages: Option<u64>,
    together: u64,
    slow_write_ns: u64,
) -> Option<u64> {
    if slow.len() < FEWEST {
        return None;
    }
    let flushes = buffer_pages.map(|pages| MOST_WRITES / 2 / pages);
    if flushes.is_some_and(|flushes| (slow.len() as u64) < flushes / 4) {
        return Some(slow_write_ns);
    }
    let mut latencies: Vec<u64> = slow.iter().map(|&(_, latency)| latency).collect();
    latencies.sort_unstable();
    let mut best = (0.0, None);
    for count in FEWEST..=slow.len() / RARE {
        let (below, from) = (latencies[latencies.len() - count - 1], latencies[latencies.len() - count]);
        let gap = from as f64 / below as f64;
        // A narrower gap below many is as clear as a wide one below few.
        let clarity = libm::log(gap) * libm::sqrt(count as f64);
        if clarity <= best.0 {
            continue;
        }
        let mut starts = Starts::default();
        for &(index, _) in slow.iter().filter(|&&(_, latency)| latency > below) {
            starts.stalled(index, index, together);
        }
        let settled = distances(starts.after(WARM_UP / 2));
        if settled.len() >= FEWEST / 2 && variation(&settled) < REGULAR {
            best = (clarity, Some((below as f64 * libm::sqrt(gap)) as u64));
        }
    }
    best.1
}
