//! Garbage-collection volumes: *Fixed* and *Flip* (§III-B2).
//!
//! Writing the same page over and over makes whole blocks garbage, so that
//! collection comes at nearly constant intervals of writes. If part of the
//! writes go to a page that differs in one bit, and that bit selects another
//! volume, each volume collects at intervals of its own.
//!
//! The paper compares the intervals of both runs. Collection may settle into
//! another cycle of intervals in each run, though, of one volume as of two. What
//! does not change is when a volume flushes: with every so many of its own
//! writes. A write that is held up comes with a flush, so that the writes
//! between two of them are whole buffers, counted in the volume's own writes
//! and in no others. The flipped page is written in bursts of random length,
//! lest the counts agree by chance. This takes a volume's buffer and its collection
//! to be of one partition, as they are in all of the paper's drives.

use flashkeel_engine::{Operation, Span};
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use super::stalls::{Starts, distances, longest_stalls, stall_threshold};
use super::statistics::{median, same_distribution};

/// Writes to the flipped page come in bursts of as many flushes at random, those
/// to the other in bursts twice as long: volumes that collect in turn would look
/// like one. Collections are many bursts apart.
const BURST: std::ops::RangeInclusive<u64> = 1..=4;
/// What counts as a flush where the buffer's size is not known.
const TYPICAL_FLUSH: u64 = 8;
/// Collections of each run: enough, and more where they come quickly. The first
/// ones still move other data.
const EVENTS: usize = 24;
const MOST_EVENTS: usize = 72;
const QUICK_WRITES: u64 = 60_000;
pub(super) const WARM_UP: usize = 6;
/// Fewest collections that tell anything.
pub(super) const FEWEST: usize = 12;
/// How many times as long as other slow writes a stall is, at least: the longest of flushes stand out
/// from the rest by chance, too.
const LONGER: f64 = 1.3;
/// Most writes of a run, and the longest that one may take on the drive.
pub(super) const MOST_WRITES: u64 = 160_000;
const LONGEST: Span = Span::from_secs(20);
/// How often a bit is asked about that was not clear before, or is told by intervals alone.
const ASKED: usize = 2;
/// Below this probability of one volume, intervals may show two. A chance find
/// among twenty bits is then rarer than one in a thousand.
const DIFFERENT: f64 = 1e-5;
/// What intervals show must itself have this probability, and be so many times as
/// likely as the other.
const POSSIBLE: f64 = 1e-3;
const BETTER: f64 = 1e3;
/// Smallest buffer whose flushes tell volumes apart: a distance that has nothing
/// to do with it is a multiple of it one time in as many.
const LEAST_FLUSH: u64 = 4;
/// Of the distances between stalls so many are multiples of the buffer where they
/// are counted in the writes of the volume, and so many at most where not.
const WITH_FLUSHES: f64 = 0.9;
const BY_CHANCE: f64 = 0.6;
/// Or, where late answers are among the stalls, most are, and hardly any where not.
const MOSTLY: f64 = 0.6;
const HARDLY_ANY: f64 = 0.25;
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
    /// For each bit, what *Flip* saw.
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
    /// that intervals in all writes are those of *Fixed*; if there are enough.
    pub p: Option<f64>,
    /// The same of two volumes: that intervals in writes to one page, between
    /// collections that held it up, are.
    pub p_own: Option<f64>,
    /// Part of the distances between stalls of different bursts, in all writes,
    /// that are whole buffers, or of these stalls that are in phase with one, if that is more;
    /// if its size is known and there are enough.
    pub with_flushes: Option<f64>,
    /// The same in writes to one page, between stalls of it.
    pub with_own_flushes: Option<f64>,
}

impl FlipEvidence {
    /// Whether the bit selects a volume, if that can be told: by whichever of
    /// the two tests tells, unless they contradict each other.
    fn selects(&self) -> Option<bool> {
        let intervals = match (self.p, self.p_own) {
            (Some(p), Some(own)) if p < DIFFERENT && own >= POSSIBLE && own > p * BETTER => Some(true),
            (Some(p), Some(own)) if p >= POSSIBLE && p > own * BETTER => Some(false),
            _ => None,
        };
        let is_clear = |whole: f64, other: f64| {
            whole >= WITH_FLUSHES && other <= BY_CHANCE || whole >= MOSTLY && other <= HARDLY_ANY
        };
        let flushes = match (self.with_flushes, self.with_own_flushes) {
            (Some(all), Some(own)) if is_clear(own, all) => Some(true),
            (Some(all), Some(own)) if is_clear(all, own) => Some(false),
            _ => None,
        };
        match (intervals, flushes) {
            (Some(one), Some(other)) if one != other => None,
            _ => flushes.or(intervals),
        }
    }
}

/// What was found.
pub(super) struct Found {
    /// `None` if nothing could be told.
    pub bits: Option<Vec<u32>>,
    /// What the write that a collection holds up longest takes, in the median; 0 if none was seen.
    pub stall_ns: u64,
    pub evidence: CollectionEvidence,
}

/// Tests every bit: those of `volume_bits` one by one, and all others together, for where
/// none of them selects a volume, neither do all. `progress` is told the fraction done.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    slow_write_ns: u64,
    buffer_pages: Option<u64>,
    volume_bits: &[u32],
    undetermined: &mut Vec<String>,
    progress: &mut dyn FnMut(f64) -> Result<(), ProbeError>,
) -> Result<Found, ProbeError> {
    let mut found = Found { bits: None, stall_ns: 0, evidence: CollectionEvidence::default() };
    // Low enough for every bit to be flipped.
    let page = runner.random.below(runner.pages() / 16) * 8;
    // How long writes take decides what a collection is.
    let mut slow = Vec::new();
    let begun = runner.now();
    for index in 0..MOST_WRITES / 2 {
        let latency = runner.serve(Operation::Write, page)?.0;
        if latency > slow_write_ns {
            slow.push((index, latency));
        }
        if runner.now().since(begun) > LONGEST {
            break;
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
    found.stall_ns = median(&mut longest_stalls(&slow, above, together));
    let mut flushes: Vec<u64> = slow.iter().map(|&(_, latency)| latency).filter(|ns| *ns <= above).collect();
    if (found.stall_ns as f64) < LONGER * median(&mut flushes) as f64 {
        undetermined.push(format!(
            "gc_volume_bits, latencies_ns.collection: the longest writes to one page, of {} ns, are hardly longer \
             than other slow ones, which may be all that was seen",
            found.stall_ns
        ));
        found.stall_ns = 0;
        return Ok(found);
    }
    let stall = Stall { above, together, buffer_pages };
    let fixed = run(runner, page, page, &stall)?.intervals;
    if fixed.len() < FEWEST {
        undetermined.push(format!(
            "gc_volume_bits: only {} collections in {MOST_WRITES} writes to one page",
            fixed.len()
        ));
        found.evidence.fixed = fixed;
        return Ok(found);
    }
    let (mut selecting, mut unclear, mut together) = (Vec::new(), Vec::new(), Vec::new());
    let mut flips: Vec<(Vec<u32>, u64)> = Vec::new();
    let mut others = 0u64;
    for bit in runner.bits() {
        let is_single = volume_bits.contains(&bit);
        match (is_single, runner.holds(page ^ 1 << bit), runner.holds(page ^ (others | 1 << bit))) {
            (false, _, true) => {
                others |= 1 << bit;
                together.push(bit);
            }
            (_, true, _) => flips.push((vec![bit], 1 << bit)),
            (_, false, _) => {
                undetermined.push(format!("gc_volume_bits: bit {bit} cannot be flipped within the capacity"))
            }
        }
    }
    if others > 0 {
        flips.push((together, others));
    }
    let count = flips.len() as f64;
    // Intervals alone may change with time.
    let needed = if buffer_pages.is_some() { 1 } else { ASKED };
    for (index, (bits, flip)) in flips.into_iter().enumerate() {
        let mut told = Vec::new();
        for _ in 0..ASKED {
            let seen = run(runner, page, page ^ flip, &stall)?;
            let evidence = |bit: u32| FlipEvidence {
                bit,
                p: probability(&fixed, &seen.intervals),
                p_own: probability(&fixed, &seen.own_intervals),
                intervals: seen.intervals.clone(),
                with_flushes: seen.with_flushes,
                with_own_flushes: seen.with_own_flushes,
            };
            told.extend(evidence(bits[0]).selects());
            found.evidence.flip.retain(|of| !bits.contains(&of.bit));
            found.evidence.flip.extend(bits.iter().map(|&bit| evidence(bit)));
            if told.len() >= needed {
                break;
            }
        }
        let selects = told.first().copied();
        match selects.filter(|&one| told.len() >= needed && told.iter().all(|&other| other == one)) {
            Some(true) if bits.len() == 1 => selecting.push(bits[0]),
            Some(false) => {}
            _ => unclear.extend(bits.iter().map(u32::to_string)),
        }
        progress((index + 1) as f64 / count)?;
    }
    selecting.sort_unstable();
    found.evidence.flip.sort_by_key(|of| of.bit);
    if !unclear.is_empty() {
        undetermined.push(format!(
            "gc_volume_bits: with one of the bits {} flipped, collections are not clearly those of one volume \
             or of two",
            unclear.join(", ")
        ));
    }
    found.bits = unclear.is_empty().then_some(selecting);
    found.evidence.fixed = fixed;
    Ok(found)
}

/// The chi-squared test, if there are intervals enough to tell anything.
fn probability(fixed: &[u64], seen: &[u64]) -> Option<f64> {
    (seen.len() >= FEWEST / 2).then(|| same_distribution(fixed, seen))
}

/// What counts as a collection.
struct Stall {
    /// Latency above which a write is behind one.
    above: u64,
    /// Writes within which stalls are of the same one.
    together: u64,
    /// Writes of a volume between its flushes, if known.
    buffer_pages: Option<u64>,
}

/// What a run saw.
struct Run {
    /// Intervals between collections in all writes.
    intervals: Vec<u64>,
    /// Between those that held up the same page, in writes to that page.
    own_intervals: Vec<u64>,
    /// See [`FlipEvidence`].
    with_flushes: Option<f64>,
    with_own_flushes: Option<f64>,
}

/// Writes `page` over and over, and `flipped` in between.
fn run(runner: &mut Runner<'_>, page: u64, flipped: u64, stall: &Stall) -> Result<Run, ProbeError> {
    let mut all = Starts::default();
    let mut own = [Starts::default(), Starts::default()];
    let (mut with_flushes, mut with_own_flushes) = (Grid::default(), [Grid::default(), Grid::default()]);
    let flush = stall.buffer_pages.unwrap_or(TYPICAL_FLUSH);
    let (mut written, mut burst, mut burst_end) = ([0, 0], 0u64, 0);
    let begun = runner.now();
    for index in 0..MOST_WRITES {
        if runner.now().since(begun) > LONGEST {
            break;
        }
        if index == burst_end {
            burst += 1;
            let unit = flush.max(TYPICAL_FLUSH);
            let scale = if burst.is_multiple_of(2) { unit } else { 2 * unit };
            burst_end += runner.random.between(scale * BURST.start(), scale * BURST.end());
        }
        let side = usize::from(burst.is_multiple_of(2));
        written[side] += 1;
        if runner.serve(Operation::Write, [page, flipped][side])?.0 > stall.above {
            all.stalled(index, index, stall.together);
            own[side].stalled(index, written[side], stall.together);
            with_flushes.stalled(index, burst, flush);
            with_own_flushes[side].stalled(written[side], burst, flush);
            let events = all.starts.len().saturating_sub(WARM_UP);
            if events >= MOST_EVENTS || (events >= EVENTS && index >= QUICK_WRITES) {
                break;
            }
        }
    }
    let own_intervals = own.iter().flat_map(|own| distances(own.after(WARM_UP / 2))).collect();
    let is_known = stall.buffer_pages.is_some_and(|pages| pages >= LEAST_FLUSH);
    Ok(Run {
        intervals: distances(all.after(WARM_UP)),
        own_intervals,
        with_flushes: part(&[with_flushes]).filter(|_| is_known),
        with_own_flushes: part(&with_own_flushes).filter(|_| is_known),
    })
}

/// How many of the distances between stalls are multiples of a buffer.
#[derive(Clone, Default)]
struct Grid {
    /// Position and burst of the latest stall.
    last: Option<(u64, u64)>,
    multiples: usize,
    distances: usize,
    /// Where in a buffer each stall lies that ends or begins a distance.
    phases: Vec<u64>,
}

impl Grid {
    /// A stall at a position, in a burst. Stalls of the same burst tell nothing.
    fn stalled(&mut self, position: u64, burst: u64, flush: u64) {
        if let Some((last, _)) = self.last.filter(|&(_, of)| of != burst) {
            self.distances += 1;
            self.multiples += usize::from((position - last).is_multiple_of(flush));
            self.phases.push(position % flush);
        }
        self.last = Some((position, burst));
    }

    /// Stalls in the phase that most of them share: one that is of no collection, as where the
    /// machine held a request up, breaks two distances and one phase, while a buffer that is
    /// flushed early once breaks one distance and any number of phases.
    fn in_phase(&self) -> usize {
        let mut phases = self.phases.clone();
        phases.sort_unstable();
        phases.chunk_by(|one, other| one == other).map(<[u64]>::len).max().unwrap_or(0)
    }
}

/// The part of distances that are multiples, or of stalls in phase, if that is more and
/// there are enough to tell; each page has a phase of its own.
fn part(grids: &[Grid]) -> Option<f64> {
    let sum = |count: fn(&Grid) -> usize| grids.iter().map(count).sum::<usize>();
    let distances = sum(|grid| grid.distances);
    let regular = sum(|grid| grid.multiples).max(sum(Grid::in_phase));
    (distances >= FEWEST).then(|| regular as f64 / distances as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(p: f64, p_own: f64, flushes: Option<(f64, f64)>) -> FlipEvidence {
        FlipEvidence {
            bit: 3,
            intervals: Vec::new(),
            p: Some(p),
            p_own: Some(p_own),
            with_flushes: flushes.map(|(all, _)| all),
            with_own_flushes: flushes.map(|(_, own)| own),
        }
    }

    #[test]
    fn a_bit_selects_where_one_test_tells_and_none_contradicts() {
        assert_eq!(evidence(1e-6, 0.4, None).selects(), Some(true));
        assert_eq!(evidence(0.4, 1e-6, None).selects(), Some(false));
        // Neither kind of interval, or both; the flushes decide.
        for p in [1e-30, 0.5] {
            assert_eq!(evidence(p, p, None).selects(), None);
            assert_eq!(evidence(p, p, Some((0.5, 0.5))).selects(), None);
            assert_eq!(evidence(p, p, Some((0.1, 1.0))).selects(), Some(true));
            assert_eq!(evidence(p, p, Some((1.0, 0.1))).selects(), Some(false));
            // With late answers among them, as long as the other way is hardly any.
            assert_eq!(evidence(p, p, Some((0.7, 0.1))).selects(), Some(false));
            assert_eq!(evidence(p, p, Some((0.1, 0.7))).selects(), Some(true));
            assert_eq!(evidence(p, p, Some((0.7, 0.3))).selects(), None);
        }
        assert_eq!(evidence(1e-6, 0.4, Some((1.0, 0.1))).selects(), None);
        // Too few intervals say nothing.
        let few = FlipEvidence { p: Some(1e-10), p_own: None, ..evidence(0.0, 0.0, None) };
        assert_eq!(few.selects(), None);
        assert_eq!(probability(&[320; 40], &[320; FEWEST / 2 - 1]), None);
        assert_eq!(probability(&[320; 40], &[320; FEWEST / 2]), Some(1.0));
    }

    #[test]
    fn distances_are_counted_between_bursts_only() {
        let mut grid = Grid::default();
        for (position, burst) in [(3, 1), (10, 1), (17, 2), (24, 3), (26, 4)] {
            grid.stalled(position, burst, 7);
        }
        assert_eq!((grid.multiples, grid.distances, grid.in_phase()), (2, 3, 2));
        assert_eq!(part(&[grid]), None, "too few to tell");
        let many = Grid { multiples: 30, distances: 40, ..Grid::default() };
        assert_eq!(part(&[many.clone(), many]), Some(0.75));
    }

    /// Once a drive of which a busy machine answered one write in ten thousand too late was of
    /// no volumes that could be told.
    #[test]
    fn neither_a_late_answer_nor_an_early_flush_hides_whole_buffers() {
        let grid_of = |positions: &[u64]| {
            let mut grid = Grid::default();
            (0..).zip(positions).for_each(|(burst, &position)| grid.stalled(position, burst, 62));
            part(&[grid]).unwrap()
        };
        let whole: Vec<u64> = (0..40).map(|index| 5 + index * 62 * 7).collect();
        let mut late = whole.clone();
        late.extend([700, 5_003, 9_100]);
        late.sort_unstable();
        let early: Vec<u64> = whole.iter().map(|at| if *at > 8_000 { at + 31 } else { *at }).collect();
        assert!(grid_of(&whole) == 1.0 && grid_of(&early) > 0.95);
        assert!((0.9..1.0).contains(&grid_of(&late)));
        let odd: Vec<u64> = (0..40).map(|index| index * index * 97 % 10_007 + index * 20_000).collect();
        assert!(grid_of(&odd) < 0.2);
    }
}
