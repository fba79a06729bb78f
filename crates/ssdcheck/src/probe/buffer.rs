//! The write buffer: how much it holds, who waits for its flush, and what
//! starts one (Algorithm 1, each answer from tests that have to agree).

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Operation, Span};
use serde::Serialize;

use super::elsewhere::PairEvidence;
use super::flushes::{LONGEST, Sight, Watch, watch};
use super::runner::{ProbeError, Runner};
use super::size::Size;
use super::statistics::{median, quantile};
use crate::{BufferType, FlushTrigger, Latencies, Thresholds, WriteBuffer};

/// Runs of each kind that must agree.
pub(super) const AGREEING: usize = 2;
/// Writes of a run that looks for the size, and flushes enough for one whose size is known.
pub(super) const WRITES: u64 = 9_000;
pub(super) const FLUSHES: u64 = 24;
/// Fewest spikes that tell anything.
const FEWEST: usize = 6;
/// Part of the flushes that writes wait for if they do, and if they do not.
const WAITED: std::ops::RangeInclusive<f64> = 0.75..=1.3;
const NOT_WAITED: f64 = 0.3;
/// In real time the way after a pause is longer than without one, and not always the same: each
/// place in the buffer is known by the median of all buffers filled. Where none takes longer than
/// so many times the median of all places, nobody waits, and where one does, and so much, it does.
const LONGER: (u64, u64) = (2, 3);
/// Pages that the reader beside a writer reads: few and close together, so that their part
/// of the map stays in memory.
pub(super) const READ: usize = 128;
/// A write that takes no longer than this and one and a half of the usual has not waited.
const SHORTEST_NS: u64 = 1_000;

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
    /// Pairs of pages from all over the drive that were asked whether the bits hold there, too.
    pub pairs: Vec<PairEvidence>,
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

impl Found {
    pub fn nothing() -> Self {
        Found {
            buffer: WriteBuffer::UNKNOWN,
            bits: None,
            unclear: Vec::new(),
            flush_ns: 0,
            slow_write_ns: None,
            evidence: BufferEvidence::default(),
        }
    }

    fn put(&mut self, size: &Size, bits: Vec<u32>, trigger: Option<bool>) {
        self.bits = Some(bits);
        self.buffer.bytes = Some(size.pages * LOGICAL_PAGE_BYTES);
        self.buffer.flush = match trigger {
            Some(true) => vec![FlushTrigger::Full, FlushTrigger::ReadTrigger],
            Some(false) => vec![FlushTrigger::Full],
            None => Vec::new(),
        };
    }
}

/// Looks for the buffer of a volume; `fallen` are bits that seem to select one. What is
/// found stays in `found` if the time given runs out.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    fallen: &[u32],
    thresholds: &Thresholds,
    latencies: &Latencies,
    found: &mut Found,
    undetermined: &mut Vec<String>,
) -> Result<(), ProbeError> {
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
        longest: LONGEST,
    };
    let mut test = Test {
        watched,
        mask,
        read_ns: latencies.read,
        shortest_wait_ns: 3 * latencies.write / 2 + SHORTEST_NS,
        evidence: BufferEvidence::default(),
        flush_ns: Vec::new(),
        leave_early: false,
        volumes: None,
        why: None,
    };
    let done = test.find(runner, fallen, latencies, found, undetermined).and_then(|()| {
        found.slow_write_ns = test.sequential_writes(runner, thresholds, latencies)?;
        Ok(())
    });
    found.flush_ns = median(&mut test.flush_ns);
    found.evidence = test.evidence;
    done
}

pub(super) struct Test<'a> {
    pub watched: Watch<'a>,
    /// Bits that are 0 in all pages that are read.
    pub mask: u64,
    pub read_ns: u64,
    /// The shortest wait that may be one.
    pub shortest_wait_ns: u64,
    pub evidence: BufferEvidence,
    pub flush_ns: Vec<u64>,
    /// Whether pages leave by themselves where they come slowly.
    pub leave_early: bool,
    /// The bits that select a buffer, and unclear ones, where they are known with the size.
    pub volumes: Option<(Vec<u32>, Vec<u32>)>,
    /// Why nothing was found.
    pub why: Option<&'static str>,
}

impl Test<'_> {
    /// Size, volumes, type and what starts a flush.
    fn find(
        &mut self,
        runner: &mut Runner<'_>,
        fallen: &[u32],
        latencies: &Latencies,
        found: &mut Found,
        undetermined: &mut Vec<String>,
    ) -> Result<(), ProbeError> {
        let trigger = self.read_trigger(runner, latencies)?;
        let size = if latencies.write < latencies.read {
            self.size(runner, trigger)?
        } else {
            self.why = Some("writes take as long as reads, as if none kept them");
            None
        };
        let Some(size) = size else {
            let why = self.why.take().unwrap_or(
                "neither writes nor reads beside writes are slow at regular intervals, the same again and again",
            );
            undetermined.push(format!("write_buffer: {why}"));
            return Ok(());
        };
        let (bits, unclear) = match self.volumes.take() {
            Some(told) => told,
            None => self.bits(runner, fallen, &size)?,
        };
        if unclear.is_empty() {
            found.put(&size, bits.clone(), trigger);
        }
        let kind = self.waits(runner, &size).inspect_err(|error| {
            if *error == ProbeError::OutOfTime {
                undetermined.push("write_buffer.type: the time given ran out before".into());
            }
        })?;
        if kind.is_none() && !unclear.is_empty() {
            undetermined.push(
                "write_buffer: writes are slow at regular intervals, but neither tell volumes apart nor who waits"
                    .into(),
            );
            return Ok(());
        }
        found.put(&size, bits.clone(), trigger);
        let is_clear = unclear.is_empty();
        found.unclear = unclear;
        match kind {
            Some(true) => found.buffer.kind = BufferType::Fore,
            Some(false) => found.buffer.kind = BufferType::Back,
            None => undetermined.push(
                "write_buffer.type: some writes wait for the flush that they cause, and some do not".into(),
            ),
        }
        if trigger.is_none() {
            undetermined
                .push("write_buffer.flush: some reads right after writes are slow, and some are not".into());
        }
        if is_clear { self.look_elsewhere(runner, &bits, &size) } else { Ok(()) }
    }

    /// Whether the first read of a page after a few writes to it takes longer than the second.
    /// It is of their volume, whatever selects that, and where a read starts no flush it
    /// finds the page in the buffer. A flush takes longer than a read of flash; what takes less, of
    /// a drive in real time, is the way there, which is longer after a pause.
    fn read_trigger(
        &mut self,
        runner: &mut Runner<'_>,
        latencies: &Latencies,
    ) -> Result<Option<bool>, ProbeError> {
        const TRIALS: u32 = 200;
        let bits: Vec<u32> = (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect();
        let (mut slow, mut told) = ([0u32; 2], [None; 2]);
        let is_real = runner.is_real();
        let least_ns = if is_real { latencies.read / 2 } else { 0 };
        for told in &mut told {
            let mut longer = 0;
            for _ in 0..TRIALS / 2 {
                let lba = runner.page_within(&bits);
                for _ in 0..runner.random.between(1, 6) {
                    runner.serve(Operation::Write, lba)?;
                }
                let think = runner.random.between(0, 1_000_000);
                runner.wait(Span(think))?;
                let first = runner.serve(Operation::Read, lba)?.0;
                if is_real {
                    runner.wait(Span(think))?;
                }
                let second = runner.serve(Operation::Read, lba)?.0;
                longer += u32::from(first > second + (second / 4).max(least_ns));
                for (slow, latency) in slow.iter_mut().zip([first, second]) {
                    *slow += u32::from(latency > latencies.read + latencies.read / 2);
                }
            }
            *told = match f64::from(longer) / f64::from(TRIALS / 2) {
                part if part >= 0.85 => Some(true),
                part if part <= 0.35 => Some(false),
                _ => None,
            };
        }
        let [first, second] = slow.map(|slow| f64::from(slow) / f64::from(TRIALS));
        self.evidence.slow_after_write = Some((first, second));
        Ok(told[0].filter(|_| told[0] == told[1]))
    }

    /// Whether a write waits for the flush that it causes, however long after the last one
    /// it comes.
    pub fn waits(&mut self, runner: &mut Runner<'_>, size: &Size) -> Result<Option<bool>, ProbeError> {
        if matches!(size.sight, Sight::Rested { .. }) {
            // It is of two halves, of which one takes writes.
            return Ok(Some(false));
        }
        let flush_ns = median(&mut self.flush_ns);
        let busy_ns = size.cycle_ns.max(flush_ns).max(200_000);
        let (mut waiting, mut passing, mut waited_ns) = (0, 0, Vec::new());
        // In real time no single write says that it has waited.
        let slow_write_ns = if runner.is_real() { u64::MAX } else { self.watched.slow_write_ns };
        let watched = Watch { slow_write_ns, ..self.watched };
        for times in [3, 6, 2, 12] {
            let think = Span(times * busy_ns / size.pages);
            let seen = watch(runner, watched, Sight::Waits(think), size.place, size.pages * FLUSHES)?;
            if seen.writes < 4 * size.pages {
                // Another think time may be short enough.
                continue;
            }
            let (waits, passes) = if runner.is_real() {
                let places_ns = seen.by_place(size.pages);
                let [.., next_ns, longest_ns] = places_ns[..] else { break };
                let usual_ns = places_ns[places_ns.len() / 2];
                waited_ns.push((longest_ns * usual_ns).isqrt());
                let is_one = next_ns <= LONGER.0 * usual_ns;
                (is_one && longest_ns >= LONGER.1 * usual_ns, longest_ns <= LONGER.0 * usual_ns)
            } else {
                let part = seen.at.len() as f64 / (seen.writes / size.pages).max(1) as f64;
                (WAITED.contains(&part) && seen.period(0) == Some(size.pages), part <= NOT_WAITED)
            };
            // In so little time a write may wait for the flush before.
            waiting += usize::from(waits && times > 2);
            passing += usize::from(passes);
            if waiting == AGREEING || passing == AGREEING {
                break;
            }
        }
        Ok(match (waiting, passing) {
            (AGREEING.., 0) => {
                let slow_write_ns =
                    if waited_ns.is_empty() { self.watched.slow_write_ns } else { median(&mut waited_ns) };
                self.unhurried(runner, slow_write_ns)?;
                Some(true)
            }
            (0, AGREEING..) => Some(false),
            _ => None,
        })
    }

    /// How long a flush takes of a drive that is at rest between flushes, and of pages from all
    /// over it, as hosts write them; what takes longer than so many nanoseconds has waited for one.
    fn unhurried(&mut self, runner: &mut Runner<'_>, slow_write_ns: u64) -> Result<(), ProbeError> {
        const THINK: Span = Span::from_us(1_000);
        let bits: Vec<u32> = (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect();
        let mut waits_ns = Vec::new();
        for _ in 0..WRITES {
            let lba = runner.page_within(&bits);
            let latency = runner.serve(Operation::Write, lba)?.0;
            if latency > slow_write_ns {
                waits_ns.push(latency);
            }
            runner.wait(THINK)?;
        }
        if !waits_ns.is_empty() {
            self.flush_ns = waits_ns;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use flashkeel_engine::{
        Arena, Completion, Durable, Leaf, Ledger, Limits, Outside, Request, Status, Submit, Time, Wake,
    };

    use super::super::places::Where;
    use super::*;

    const SECTORS: u64 = 1 << 16;
    const LATENCIES: Latencies =
        Latencies { read: 85_000, write: 15_000, read_page: 0, write_page: 0, flush: 0, collection: 0 };

    /// A drive in real time with a write buffer. The way to it takes longer after a pause.
    #[derive(Default)]
    struct Far {
        starts_flushes: bool,
        /// A write waits for the flush of the buffer that it fills.
        is_fore: bool,
        written: u64,
        is_dirty: bool,
        heard: Time,
        ends: Option<Completion>,
    }

    impl Leaf for Far {
        fn limits(&self) -> Limits {
            let durable = Durable::Acknowledged;
            Limits { sectors: SECTORS, block_sectors: 8, preferred_sectors: 8, durable }
        }

        fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
            let way_ns = if now.since(self.heard) > Span(30_000) { 90_000 } else { 10_000 };
            let is_write = request.operation == Operation::Write;
            self.written += u64::from(is_write);
            let serving_ns = match (is_write, self.is_dirty) {
                (true, _) if self.is_fore && self.written.is_multiple_of(PAGES) => 700_000,
                (true, _) => 5_000,
                (false, true) if self.starts_flushes => 700_000,
                (false, true) => 2_000,
                (false, false) => 75_000,
            };
            self.is_dirty = is_write || (self.is_dirty && !self.starts_flushes);
            let time = now + Span(way_ns + serving_ns);
            self.ends = Some(Completion { id: request.id, time, status: Status::Ok, ledger: Ledger::ZERO });
            Submit::Accepted
        }

        fn next_event(&self) -> Wake {
            Wake::new(self.ends.as_ref().map(|end| end.time), true)
        }

        fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
            if let Some(end) = self.ends.take_if(|end| end.time <= now) {
                self.heard = end.time;
                completions.push(end);
            }
        }

        fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
    }

    /// Pages of its buffer.
    const PAGES: u64 = 32;

    /// Time that passes at once.
    struct Clock(Time);

    impl Outside for Clock {
        fn wait(&mut self, until: Option<Time>) -> Time {
            self.0 = until.expect("something will happen").max(self.0);
            self.0
        }
    }

    fn test() -> Test<'static> {
        Test {
            watched: Watch { slow_read_ns: 0, slow_write_ns: 0, reads: &[], longest: LONGEST },
            mask: 0,
            read_ns: LATENCIES.read,
            shortest_wait_ns: 0,
            evidence: BufferEvidence::default(),
            flush_ns: Vec::new(),
            leave_early: false,
            volumes: None,
            why: None,
        }
    }

    /// Once the way after a pause was taken for the beginning of a flush.
    #[test]
    fn a_way_that_is_longer_after_a_pause_is_no_flush() {
        for starts_flushes in [false, true] {
            let mut drive = Far { starts_flushes, ..Far::default() };
            let mut world = Clock(Time::ZERO);
            let mut runner =
                Runner::new(&mut drive, Some(&mut world), SECTORS, 1, None).expect("it is large enough");
            assert_eq!(test().read_trigger(&mut runner, &LATENCIES), Ok(Some(starts_flushes)));
        }
    }

    /// Once it was taken for a wait, so that who waits for flushes was not told.
    #[test]
    fn a_way_that_is_longer_after_a_pause_is_no_wait() {
        for (is_fore, slow_write_ns) in [(false, 72_500), (true, 72_500), (false, 20_000), (true, 20_000)] {
            let mut drive = Far { is_fore, ..Far::default() };
            let mut world = Clock(Time::ZERO);
            let mut runner =
                Runner::new(&mut drive, Some(&mut world), SECTORS, 1, None).expect("it is large enough");
            let watched = Watch { slow_read_ns: 0, slow_write_ns, reads: &[], longest: LONGEST };
            let mut test = Test { watched, flush_ns: vec![700_000], ..test() };
            let sight = Sight::Waits(Span::ZERO);
            let size = Size { pages: PAGES, place: Where::One(0), sight, cycle_ns: PAGES * LATENCIES.write };
            assert_eq!(test.waits(&mut runner, &size), Ok(Some(is_fore)));
        }
    }
}
