//! The write buffer: how much it holds, who waits for its flush, and what
//! starts one (Algorithm 1, each answer from tests that have to agree).

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Operation, Span};
use serde::Serialize;

use super::flushes::{Sight, Watch, Where, is_one_buffer, watch};
use super::runner::{ProbeError, Runner};
use super::statistics::{median, quantile};
use crate::{BufferType, FlushTrigger, Latencies, Thresholds, WriteBuffer};

/// Think times of the writer (§III-B3), and others for drives that flush all the time at
/// a shorter one or that are done with a flush sooner.
const THINK: [Span; 5] = [
    Span::from_us(1_000),
    Span::from_us(200),
    Span::from_us(5_000),
    Span::from_us(50),
    Span::from_us(20_000),
];
/// Runs of each kind that must agree, of so many.
const AGREEING: usize = 2;
const RUNS: usize = 3;
/// Writes of a run that looks for the size, and flushes enough for one whose size is known.
const WRITES: u64 = 9_000;
const FLUSHES: u64 = 24;
/// Fewer pages than this are no buffer: they leave for flash as they come.
const LEAST_PAGES: u64 = 8;
/// Fewest spikes that tell anything.
const FEWEST: usize = 6;
/// Part of the flushes that writes wait for if they do, and if they do not.
const WAITED: std::ops::RangeInclusive<f64> = 0.75..=1.3;
const NOT_WAITED: f64 = 0.3;
/// Pages that the reader beside a writer reads: few and close together, so that their part
/// of the map stays in memory.
const READ: usize = 128;
/// Points kept for the picture.
const POINTS: usize = 4_000;

/// What the buffer's tests saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BufferEvidence {
    /// Reads beside writes: writes submitted before the read, its latency in
    /// nanoseconds.
    pub reads: Vec<(u64, u64)>,
    /// Writes before each group of slow reads, for each think time in
    /// nanoseconds.
    pub flushes: Vec<(u64, Vec<u64>)>,
    /// Part of the reads right after writes that were slow, and of those after
    /// them.
    pub slow_after_write: Option<(f64, f64)>,
    /// Writes before each slow one, where nothing was read.
    pub slow_writes: Vec<u64>,
}

/// What was found.
pub(super) struct Found {
    pub buffer: WriteBuffer,
    /// Bits that select a buffer, rising, as far as that can be told.
    pub bits: Option<Vec<u32>>,
    /// Bits that may do so or not.
    pub unclear: Vec<u32>,
    /// Time of a flush, 0 if none was seen.
    pub flush_ns: u64,
    /// From where on a write is slow.
    pub slow_write_ns: Option<u64>,
    pub evidence: BufferEvidence,
}

/// Looks for the buffer of a volume; `fallen` are bits that seem to select one.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    fallen: &[u32],
    thresholds: &Thresholds,
    latencies: &Latencies,
    undetermined: &mut Vec<String>,
) -> Result<Found, ProbeError> {
    let mask = fallen.iter().fold(0, |mask, bit| mask | 1u64 << bit);
    let mut reads = runner.pool_where(|lba| lba & mask == 0);
    reads.sort_unstable();
    reads.truncate(READ);
    if reads.is_empty() {
        reads = runner.pool_where(|_| true);
    }
    let watched = Watch {
        slow_read_ns: thresholds.read,
        slow_write_ns: 2 * latencies.write + latencies.read / 2,
        reads: &reads,
    };
    let mut test = Test {
        watched,
        mask,
        read_ns: latencies.read,
        evidence: BufferEvidence::default(),
        flush_ns: Vec::new(),
        why: None,
    };
    let mut buffer = WriteBuffer::UNKNOWN;
    let (mut bits, mut unclear) = (None, Vec::new());
    let trigger = test.read_trigger(runner, latencies)?;
    if let Some(size) = test.size(runner, trigger)? {
        (bits, unclear) = test.bits(runner, fallen, &size)?;
        buffer.bytes = Some(size.pages * LOGICAL_PAGE_BYTES);
        match test.waits(runner, &size)? {
            Some(true) => buffer.kind = BufferType::Fore,
            Some(false) => buffer.kind = BufferType::Back,
            None => undetermined.push(
                "write_buffer.type: some writes wait for the flush that they cause, and some do not".into(),
            ),
        }
        match trigger {
            Some(true) => buffer.flush = vec![FlushTrigger::Full, FlushTrigger::ReadTrigger],
            Some(false) => buffer.flush = vec![FlushTrigger::Full],
            None => undetermined
                .push("write_buffer.flush: some reads right after writes are slow, and some are not".into()),
        }
    } else {
        let why = test.why.take().unwrap_or(
            "neither writes nor reads beside writes are slow at regular intervals, the same again and again",
        );
        undetermined.push(format!("write_buffer: {why}"));
    }
    let slow_write_ns = test.sequential_writes(runner, thresholds, latencies)?;
    Ok(Found {
        buffer,
        bits,
        unclear,
        flush_ns: median(&mut test.flush_ns),
        slow_write_ns,
        evidence: test.evidence,
    })
}

struct Test<'a> {
    watched: Watch<'a>,
    /// Bits that are 0 in all pages that are read.
    mask: u64,
    read_ns: u64,
    evidence: BufferEvidence,
    flush_ns: Vec<u64>,
    /// Why nothing was found.
    why: Option<&'static str>,
}

/// A buffer that was found.
struct Size {
    pages: u64,
    place: Where,
    sight: Sight,
    /// From one flush to the next where the writer does not think.
    cycle_ns: u64,
}

impl Test<'_> {
    /// Whether a read right after a few writes is slow and the next one is not.
    fn read_trigger(
        &mut self,
        runner: &mut Runner<'_>,
        latencies: &Latencies,
    ) -> Result<Option<bool>, ProbeError> {
        const TRIALS: u32 = 200;
        let bits: Vec<u32> = (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect();
        let mut slow = [[0u32; 2]; 2];
        for half in &mut slow {
            for _ in 0..TRIALS / 2 {
                for _ in 0..runner.random.between(1, 6) {
                    let lba = runner.page_within(&bits);
                    runner.serve(Operation::Write, lba)?;
                }
                let think = runner.random.between(0, 1_000_000);
                runner.wait(Span(think))?;
                for slow in half.iter_mut() {
                    let reads = self.watched.reads;
                    let lba = reads[runner.random.below(reads.len() as u64) as usize];
                    let latency = runner.serve(Operation::Read, lba)?.0;
                    *slow += u32::from(latency > latencies.read + latencies.read / 2);
                }
            }
        }
        let part = |count| f64::from(count) / f64::from(TRIALS / 2);
        let told = slow.map(|[first, second]| match (part(first), part(second)) {
            (first, second) if first >= 0.9 && second <= 0.4 => Some(true),
            (first, second) if first <= 0.35 + second => Some(false),
            _ => None,
        });
        let both = |at: usize| (part(slow[0][at]) + part(slow[1][at])) / 2.0;
        self.evidence.slow_after_write = Some((both(0), both(1)));
        Ok(told[0].filter(|_| told[0] == told[1]))
    }

    /// Looks for the buffer's size: by writes to one page, or, where a buffer keeps only
    /// the newest of what is written again, by writes to many.
    fn size(&mut self, runner: &mut Runner<'_>, trigger: Option<bool>) -> Result<Option<Size>, ProbeError> {
        // Low enough for every bit to be flipped.
        let page = (runner.random.below(runner.pages() / 16) * 8) & !self.mask;
        for place in [Where::One(page), Where::Without(self.mask)] {
            let mut waited = Vec::new();
            let mut cycles = Vec::new();
            while waited.len() < RUNS && agreed(&waited).is_none() {
                let seen = watch(runner, self.watched, Sight::Waits(Span::ZERO), place, WRITES)?;
                waited.extend(seen.period());
                cycles.push(seen.took_ns / seen.writes.max(1));
                self.flush_ns.extend(&seen.waits_ns);
                let is_any = seen.period().is_some();
                self.evidence.slow_writes = seen.at;
                if !is_any && cycles.len() >= AGREEING {
                    break;
                }
            }
            let per_write_ns = median(&mut cycles);
            let by_waits = agreed(&waited);
            let found = |pages, sight| Size { pages, place, sight, cycle_ns: pages * per_write_ns };
            let waits = Sight::Waits(Span::ZERO);
            if trigger == Some(true) {
                // Who reads beside the writes starts flushes.
                if let Some(pages) = by_waits {
                    return Ok(self.plausible(found(pages, waits)));
                }
                continue;
            }
            let thinks: Vec<Span> = match by_waits {
                Some(_) => {
                    [2, 1, 4, 16].map(|times| Span((times * per_write_ns).max(times * self.read_ns))).to_vec()
                }
                None => THINK.to_vec(),
            };
            let (mut beside, mut last) = (Vec::new(), None);
            for think in thinks {
                let writes = by_waits.map_or(WRITES / 2, |pages| (pages * FLUSHES).min(WRITES));
                let seen = watch(runner, self.watched, Sight::Beside(think), place, writes)?;
                if self.evidence.reads.is_empty() {
                    self.evidence.reads = seen.reads.iter().copied().take(POINTS).collect();
                }
                let pages = by_waits.filter(|&pages| seen.fits(pages)).or(seen.period());
                self.evidence.flushes.push((think.0, seen.at.clone()));
                let Some(pages) = pages else { continue };
                if by_waits.is_none() {
                    self.flush_ns.extend(&seen.waits_ns);
                }
                last = Some(think);
                beside.push(pages);
                let agreeing = beside.iter().filter(|&&other| other == pages).count();
                if by_waits == Some(pages) || agreeing == AGREEING {
                    break;
                }
            }
            let by_reads = agreed(&beside);
            let pages = match (by_waits, by_reads) {
                (Some(waited), _) if beside.contains(&waited) => waited,
                // Writes wait for something rarer than flushes.
                (Some(waited), Some(seen)) if waited.is_multiple_of(seen) => seen,
                (None, Some(seen)) => seen,
                (Some(waited), None) if waited >= LEAST_PAGES => {
                    let size = found(waited, waits);
                    // Collection comes at other times where it has data to move.
                    let other = watch(runner, self.watched, waits, Where::Without(self.mask), WRITES)?;
                    let is_sure = place != Where::Without(self.mask)
                        && (other.period() == Some(waited) || other.fits(waited));
                    if is_sure || self.waits(runner, &size)? == Some(true) {
                        return Ok(Some(size));
                    }
                    self.why = Some("writes are slow at regular intervals, but reads beside them are not");
                    continue;
                }
                (None, None) if beside.is_empty() => continue,
                _ => {
                    self.why = Some("runs with other think times find other sizes");
                    continue;
                }
            };
            let sight = match last {
                _ if by_waits == Some(pages) => waits,
                Some(think) => Sight::Beside(think),
                None => waits,
            };
            return Ok(self.plausible(found(pages, sight)));
        }
        Ok(None)
    }

    fn plausible(&mut self, size: Size) -> Option<Size> {
        if size.pages < LEAST_PAGES {
            self.why = Some("pages leave for flash a few at a time, as they come");
            return None;
        }
        Some(size)
    }

    /// Whether a write waits for the flush that it causes, however long after the last one
    /// it comes.
    fn waits(&mut self, runner: &mut Runner<'_>, size: &Size) -> Result<Option<bool>, ProbeError> {
        let flush_ns = median(&mut self.flush_ns);
        let busy_ns = size.cycle_ns.max(flush_ns).max(200_000);
        let (mut waiting, mut passing) = (0, 0);
        for times in [3, 6, 2, 12] {
            let think = Span(times * busy_ns / size.pages);
            let seen = watch(runner, self.watched, Sight::Waits(think), size.place, size.pages * FLUSHES)?;
            let part = seen.at.len() as f64 / (seen.writes / size.pages).max(1) as f64;
            if seen.writes < 4 * size.pages {
                break;
            }
            waiting += usize::from(WAITED.contains(&part) && seen.period() == Some(size.pages));
            passing += usize::from(part <= NOT_WAITED);
            if waiting == AGREEING || passing == AGREEING {
                break;
            }
        }
        Ok(match (waiting, passing) {
            (AGREEING.., 0) => {
                self.unhurried(runner)?;
                Some(true)
            }
            (0, AGREEING..) => Some(false),
            _ => None,
        })
    }

    /// How long a flush takes of a drive that is at rest between flushes, and of pages from all
    /// over it, as hosts write them.
    fn unhurried(&mut self, runner: &mut Runner<'_>) -> Result<(), ProbeError> {
        const THINK: Span = Span::from_us(1_000);
        let bits: Vec<u32> = (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect();
        let mut waits_ns = Vec::new();
        for _ in 0..WRITES {
            let lba = runner.page_within(&bits);
            let latency = runner.serve(Operation::Write, lba)?.0;
            if latency > self.watched.slow_write_ns {
                waits_ns.push(latency);
            }
            runner.wait(THINK)?;
        }
        if !waits_ns.is_empty() {
            self.flush_ns = waits_ns;
        }
        Ok(())
    }

    /// The bits that select a buffer, and those of which that cannot be told.
    fn bits(
        &mut self,
        runner: &mut Runner<'_>,
        fallen: &[u32],
        size: &Size,
    ) -> Result<(Option<Vec<u32>>, Vec<u32>), ProbeError> {
        let (mut selecting, mut unclear) = (Vec::new(), Vec::new());
        let others: Vec<u32> = match size.place {
            Where::One(page) => {
                runner.bits().filter(|bit| !fallen.contains(bit) && runner.holds(page ^ 1 << bit)).collect()
            }
            // Pages that differ in them have filled one buffer.
            Where::Without(_) => Vec::new(),
        };
        let mut singly = fallen.to_vec();
        let mut together = 0;
        for &bit in &others {
            let more = together | 1u64 << bit;
            if matches!(size.place, Where::One(page) if runner.holds(page ^ more)) {
                together = more;
            } else {
                singly.push(bit);
            }
        }
        if together != 0 && self.is_one(runner, size, together)? != Some(true) {
            singly.extend(others.iter().filter(|&&bit| together >> bit & 1 == 1));
        }
        for bit in singly {
            match self.is_one(runner, size, 1 << bit)? {
                Some(true) => {}
                Some(false) => selecting.push(bit),
                None => unclear.push(bit),
            }
        }
        selecting.sort_unstable();
        unclear.sort_unstable();
        Ok((Some(selecting), unclear))
    }

    /// Asks again where the first answer is none.
    fn is_one(&self, runner: &mut Runner<'_>, size: &Size, flip: u64) -> Result<Option<bool>, ProbeError> {
        let mut told = None;
        for _ in 0..AGREEING {
            told = is_one_buffer(runner, self.watched, size.sight, size.place, size.pages, flip)?;
            if told.is_some() {
                break;
            }
        }
        Ok(told)
    }

    /// From where on a write is slow: half of what the spikes of sequential
    /// writes take (§III-C2), but no later than a read; `None` if there are none.
    fn sequential_writes(
        &self,
        runner: &mut Runner<'_>,
        thresholds: &Thresholds,
        latencies: &Latencies,
    ) -> Result<Option<u64>, ProbeError> {
        let slow_write_ns = 4 * latencies.write + latencies.read;
        let begun = runner.now();
        let mut spikes = Vec::new();
        for index in 0..WRITES {
            let latency = runner.serve(Operation::Write, index % runner.pages() * 8)?.0;
            if latency > slow_write_ns {
                spikes.push(latency);
            }
            if runner.now().since(begun) > Span::from_secs(5) {
                break;
            }
        }
        runner.rest()?;
        let spike = quantile(&mut spikes, 0.5);
        let threshold = (spike / 2).clamp(slow_write_ns, thresholds.read.max(slow_write_ns));
        Ok((spikes.len() >= FEWEST).then_some(threshold))
    }
}

/// What two of the runs have found.
fn agreed(found: &[u64]) -> Option<u64> {
    found.iter().copied().find(|&one| found.iter().filter(|&&other| other == one).count() >= AGREEING)
}
