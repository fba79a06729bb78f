//! The write buffer: how much it holds, who waits for its flush, and what
//! starts one (Algorithm 1).

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Operation, Span};
use serde::Serialize;

use super::runner::{ProbeError, Runner};
use super::statistics::{median, period, quantile};
use crate::{BufferType, FlushTrigger, Latencies, Thresholds, WriteBuffer};

/// Think times of the writer (§III-B3), and one more for drives that flush all
/// the time at a shorter one. Those at which the drive keeps up must give the same
/// size: two at least, three are enough.
const THINK: [Span; 4] =
    [Span::from_us(500), Span::from_us(1_000), Span::from_us(5_000), Span::from_us(20_000)];
const ENOUGH: usize = 3;
const LEAST: usize = 2;
/// Fewest spikes that tell anything.
const FEWEST: usize = 6;
/// Where slow reads take more of the reader's time than this, the drive was never
/// done with a flush before the next began.
const OVERWHELMED: f64 = 0.5;
/// Normal reads between two flushes, at least.
const CALM: u32 = 4;
/// Writes of the first test, and the most of every other.
const WRITES: u64 = 9_000;
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
    /// Time of a flush, 0 if none was seen.
    pub flush_ns: u64,
    /// From where on a write is slow.
    pub slow_write_ns: Option<u64>,
    pub evidence: BufferEvidence,
}

/// Runs Algorithm 1 within one volume.
pub(super) fn measure(
    runner: &mut Runner<'_>,
    volume_bits: &[u32],
    thresholds: &Thresholds,
    latencies: &Latencies,
    undetermined: &mut Vec<String>,
) -> Result<Found, ProbeError> {
    let mut test = Test {
        volume_bits,
        slow_read_ns: thresholds.read,
        slow_write_ns: 4 * latencies.write + latencies.read,
        read_ns: latencies.read,
        evidence: BufferEvidence::default(),
        flush_ns: Vec::new(),
        own_flush: (0, 0),
    };
    let mut buffer = WriteBuffer::UNKNOWN;
    if let Some(pages) = test.background_reads(runner)? {
        let (waited, flushes) = test.own_flush;
        let kind = if waited * 2 > flushes { BufferType::Fore } else { BufferType::Back };
        buffer =
            WriteBuffer { bytes: Some(pages * LOGICAL_PAGE_BYTES), kind, flush: vec![FlushTrigger::Full] };
    } else if test.read_trigger(runner)? {
        buffer.flush = vec![FlushTrigger::Full, FlushTrigger::ReadTrigger];
        let mut unhurried = test.writes_only(runner, Span::from_us(1_000))?;
        buffer.kind = BufferType::Fore;
        if unhurried.is_none() {
            unhurried = test.writes_only(runner, Span::ZERO)?;
            buffer.kind = BufferType::Back;
        }
        buffer.bytes = unhurried.map(|pages| pages * LOGICAL_PAGE_BYTES);
        if buffer.bytes.is_none() {
            buffer.kind = BufferType::Unknown;
            undetermined.push(
                "write_buffer: reads start a flush, but writes are slow at no regular interval; no size"
                    .into(),
            );
        }
    } else {
        undetermined.push(
            "write_buffer: neither reads beside writes nor reads after writes are slow at regular intervals"
                .into(),
        );
    }
    let slow_write_ns = test.sequential_writes(runner)?;
    Ok(Found { buffer, flush_ns: median(&mut test.flush_ns), slow_write_ns, evidence: test.evidence })
}

struct Test<'a> {
    volume_bits: &'a [u32],
    slow_read_ns: u64,
    slow_write_ns: u64,
    read_ns: u64,
    evidence: BufferEvidence,
    flush_ns: Vec<u64>,
    /// Writes that started a flush and waited for it, of all.
    own_flush: (usize, usize),
}

/// What a writer beside a reader saw.
struct Beside {
    /// Writes before each group of slow reads.
    flushes: Vec<u64>,
    /// How many of the writes right before a group were slow themselves.
    waited: usize,
    /// How long the flushes took that those writes started.
    flush_ns: Vec<u64>,
    /// Part of the reader's time that slow reads took.
    slow_part: f64,
}

/// Reads that a flush made slow.
#[derive(Clone, Copy)]
struct Group {
    /// Writes submitted before the first of them.
    writes: u64,
    end_ns: u64,
}

impl Test<'_> {
    fn mask(&self) -> u64 {
        self.volume_bits.iter().fold(0, |mask, bit| mask | 1u64 << bit)
    }

    /// Lines 1 to 3: the size in pages, if reads beside writes are slow at
    /// regular intervals whatever the think time.
    fn background_reads(&mut self, runner: &mut Runner<'_>) -> Result<Option<u64>, ProbeError> {
        let (mut size, mut agreeing, mut writes) = (None, 0, WRITES);
        for think in THINK {
            let seen = self.flushes(runner, writes, think)?;
            let found = period(&seen.flushes, writes);
            let groups = seen.flushes.len();
            self.evidence.flushes.push((think.0, seen.flushes));
            if seen.slow_part > OVERWHELMED {
                continue;
            }
            let Some(pages) = found.filter(|_| size.is_none() || found == size) else { return Ok(None) };
            self.flush_ns.extend(seen.flush_ns);
            self.own_flush.0 += seen.waited;
            self.own_flush.1 += groups;
            size = found;
            writes = (pages * 24).min(WRITES);
            agreeing += 1;
            if agreeing == ENOUGH {
                break;
            }
        }
        Ok(size.filter(|_| agreeing >= LEAST))
    }

    /// Serves a writer with a think time beside a reader.
    fn flushes(&mut self, runner: &mut Runner<'_>, writes: u64, think: Span) -> Result<Beside, ProbeError> {
        let mask = self.mask();
        let pages = runner.pool_where(|lba| lba & mask == 0);
        let bound = runner.pages();
        let (mut groups, mut calm): (Vec<Group>, u32) = (Vec::new(), CALM);
        let (mut submitted, mut slow_writes) = (Vec::new(), Vec::new());
        let (slow_read_ns, slow_write_ns) = (self.slow_read_ns, self.slow_write_ns);
        let is_first = self.evidence.reads.is_empty();
        let (mut points, mut slow_ns, mut all_ns) = (Vec::new(), 0, 0);
        let page = |random: &mut flashkeel_engine::Stream| (random.below(bound) * 8) & !mask;
        runner.beside(writes, think, page, &pages, |is_write, before, start, end| {
            let latency = end.since(start).0;
            if is_write {
                submitted.push(start.0);
                slow_writes.push(latency > slow_write_ns);
                return;
            }
            if is_first && points.len() < POINTS {
                points.push((before, latency));
            }
            all_ns += latency;
            if latency <= slow_read_ns {
                calm += 1;
                return;
            }
            slow_ns += latency;
            if calm >= CALM {
                groups.push(Group { writes: before, end_ns: end.0 });
                calm = 0;
            } else {
                calm = 0;
                groups.last_mut().expect("reads were slow before").end_ns = end.0;
            }
        })?;
        if is_first {
            self.evidence.reads = points;
        }
        let (mut waited, mut flush_ns) = (0, Vec::new());
        for group in groups.iter().filter(|group| group.writes > 0) {
            let trigger = group.writes as usize - 1;
            waited += usize::from(slow_writes[trigger]);
            flush_ns.push(group.end_ns.saturating_sub(submitted[trigger]).saturating_sub(self.read_ns));
        }
        let flushes = groups.iter().map(|group| group.writes).collect();
        Ok(Beside { flushes, waited, flush_ns, slow_part: slow_ns as f64 / all_ns.max(1) as f64 })
    }

    /// Line 4: whether a read right after a few writes is slow, and the next
    /// one is not.
    fn read_trigger(&mut self, runner: &mut Runner<'_>) -> Result<bool, ProbeError> {
        const TRIALS: u32 = 200;
        let mask = self.mask();
        let pages = runner.pool_where(|lba| lba & mask == 0);
        let mut slow = [0u32; 2];
        for _ in 0..TRIALS {
            for _ in 0..runner.random.between(1, 6) {
                let lba = runner.page_within(self.volume_bits);
                runner.serve(Operation::Write, lba)?;
            }
            let think = runner.random.between(0, 1_000_000);
            runner.wait(Span(think))?;
            for slow in &mut slow {
                let lba = pages[runner.random.below(pages.len() as u64) as usize];
                let latency = runner.serve(Operation::Read, lba)?.0;
                *slow += u32::from(latency > self.read_ns + self.read_ns / 2);
            }
        }
        let part = |count| f64::from(count) / f64::from(TRIALS);
        self.evidence.slow_after_write = Some((part(slow[0]), part(slow[1])));
        Ok(part(slow[0]) >= 0.9 && part(slow[1]) <= 0.3)
    }

    /// Line 5: the interval between slow writes in pages, if it is regular.
    fn writes_only(&mut self, runner: &mut Runner<'_>, think: Span) -> Result<Option<u64>, ProbeError> {
        let mut slow = Vec::new();
        for index in 0..WRITES {
            let lba = runner.page_within(self.volume_bits);
            let latency = runner.serve(Operation::Write, lba)?.0;
            runner.wait(think)?;
            if latency > self.slow_write_ns {
                self.flush_ns.push(latency);
                slow.push(index);
            }
        }
        let found = period(&slow, WRITES);
        self.evidence.slow_writes = slow;
        Ok(found)
    }

    /// From where on a write is slow: half of what the spikes of sequential
    /// writes take (§III-C2), but no later than a read; `None` if there are none.
    fn sequential_writes(&self, runner: &mut Runner<'_>) -> Result<Option<u64>, ProbeError> {
        let mut spikes = Vec::new();
        for index in 0..WRITES {
            let latency = runner.serve(Operation::Write, index % runner.pages() * 8)?.0;
            if latency > self.slow_write_ns {
                spikes.push(latency);
            }
        }
        runner.rest()?;
        let spike = quantile(&mut spikes, 0.5);
        let threshold = (spike / 2).clamp(self.slow_write_ns, self.slow_read_ns.max(self.slow_write_ns));
        Ok((spikes.len() >= FEWEST).then_some(threshold))
    }
}
