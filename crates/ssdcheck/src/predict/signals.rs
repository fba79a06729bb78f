//! What else than buffer and collection tells of a request: what those before it took, what
//! is outstanding, and whether its part of the map has been used of late.

use flashkeel_engine::{Operation, Request, Time};

use super::history::{History, Noted};
use super::mixer::log2;

/// Circumstances that each have a table of their own.
pub(super) const SIGNALS: usize = 8;
/// Entries of each table, and of all.
const ENTRIES: usize = 2_048;
pub(super) const ALL: usize = SIGNALS * ENTRIES;
/// Sectors of which a page of a map tells where they are, if it has 4 KiB and entries of
/// four bytes for 4 KiB each.
const REGION_SECTORS: u64 = 8_192;
/// Regions told apart.
const REGIONS: usize = 1 << 14;
/// Requests over which the share of slow ones is taken, and the mean of latencies.
const SHARE_MEMORY: f32 = 256.0;
const MEAN_MEMORY: f32 = 8.0;
/// A stall so many times the threshold is a long one.
const LONG: u64 = 8;

/// Where the signals of a request stand in their tables.
pub(super) type Places = [u16; SIGNALS];

/// What one operation did of late.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    /// The last latency over the threshold, in half octaves; when it ended.
    last: u32,
    ended: Time,
    /// The last outcomes, one bit each.
    outcomes: u32,
    /// Part that was slow.
    share: f32,
    /// Exponential mean of latencies over their thresholds.
    mean: f32,
    outstanding: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Signals {
    tables: History,
    /// Of writes and of reads.
    of: [Lately; 2],
    /// When each region was used last, in requests.
    regions: Vec<u32>,
    requests: u32,
    written: u64,
    /// What had been written, and the time, when a request was slow and when one was for long.
    slow: (u64, Time),
    long: (u64, Time),
}

/// Steps of half an octave from `from` on, `steps` in all.
#[inline]
fn steps(value: u64, from: u64, steps: u32) -> u32 {
    let octaves = log2((value / from).max(1) as f32);
    ((2.0 * octaves) as u32).min(steps - 1)
}

impl Signals {
    pub fn new() -> Signals {
        Signals {
            tables: History::new(ALL),
            of: [Lately::default(); 2],
            regions: vec![0; REGIONS],
            requests: 0,
            written: 0,
            slow: (0, Time::ZERO),
            long: (0, Time::ZERO),
        }
    }

    #[inline]
    fn region(request: &Request) -> usize {
        (request.lba.0 / REGION_SECTORS) as usize % REGIONS
    }

    /// Where a request stands; `phase` is what its volume's buffer is at, below 128, and
    /// `oldest` when the oldest request that is outstanding was submitted.
    #[inline]
    pub fn places(&self, now: Time, request: &Request, phase: u32, oldest: Option<Time>) -> Places {
        let kind = u32::from(request.operation == Operation::Read);
        let size = request.sectors.div_ceil(8).max(1).ilog2().min(7);
        let of = &self.of[kind as usize];
        let since = |time: Time| now.0.saturating_sub(time.0);
        let count = |operation: usize| steps(1 + u64::from(self.of[operation].outstanding), 1, 16);
        let [writes, reads] = [count(0), count(1)];
        let reuse = steps(u64::from(self.requests.wrapping_sub(self.regions[Self::region(request)])), 1, 32);
        let share = ((16.0 * of.share.sqrt()) as u32).min(15);
        let waited = oldest.map_or(0, |oldest| 1 + steps(since(oldest), 4_096, 31));
        let place = |parts: [(u32, u32); 3]| {
            let place = parts.into_iter().fold(kind, |place, (part, of)| place * of + part.min(of - 1));
            debug_assert!(place < ENTRIES as u32);
            place as u16
        };
        [
            place([(of.outcomes & 15, 16), (steps(since(self.slow.1), 16_384, 32), 32), (0, 1)]),
            place([
                (of.last, 16),
                (steps(since(of.ended), 4_096, 32), 32),
                (u32::from(writes + reads > 0), 2),
            ]),
            place([(writes, 12), (reads, 12), (size, 7)]),
            place([(reuse, 32), (size, 8), (u32::from(writes + reads > 0), 2)]),
            place([(phase, 128), (writes.min(1), 2), (of.outcomes & 3, 4)]),
            place([((4.0 * log2(16.0 * of.mean.max(1e-3)).max(0.0)) as u32, 48), (share / 2, 8), (0, 1)]),
            place([
                (steps(self.written - self.long.0, 1, 32), 32),
                (steps(since(self.long.1), 65_536, 32), 32),
                (0, 1),
            ]),
            place([(waited, 32), (writes, 8), (reads, 4)]),
        ]
    }

    /// The logarithms of the odds of what is at these places; `share` is what is thought of
    /// a request that nothing is known of.
    #[inline]
    pub fn odds(&self, places: &Places, is_read: bool) -> [f32; SIGNALS] {
        let share = self.of[usize::from(is_read)].share.clamp(0.001, 0.999);
        std::array::from_fn(|signal| self.tables.odds(signal * ENTRIES + usize::from(places[signal]), share))
    }

    /// The logarithm of the mean latency over the threshold.
    #[inline]
    pub fn mean(&self, is_read: bool) -> f32 {
        log2(self.of[usize::from(is_read)].mean.max(1e-3))
    }

    /// What is written since the last slow request, in steps below 128.
    #[inline]
    pub fn since_slow(&self) -> u32 {
        steps(self.written - self.slow.0, 1, 48) + 64
    }

    /// A request has been submitted.
    #[inline]
    pub fn submitted(&mut self, request: &Request) {
        self.regions[Self::region(request)] = self.requests;
        self.requests = self.requests.wrapping_add(1);
        let kind = usize::from(request.operation == Operation::Read);
        self.of[kind].outstanding += 1;
        if kind == 0 {
            self.written += u64::from(request.sectors.div_ceil(8));
        }
    }

    /// A request at these places has ended `now`, after so many nanoseconds where
    /// `threshold_ns` is slow.
    #[inline]
    pub fn ended(&mut self, now: Time, is_read: bool, places: &Places, ns: u64, threshold_ns: u64) {
        let is_slow = ns > threshold_ns;
        for (signal, &place) in places.iter().enumerate() {
            self.tables.note(signal * ENTRIES + usize::from(place), is_slow);
        }
        let of = &mut self.of[usize::from(is_read)];
        of.outstanding -= 1;
        of.last = steps(ns.saturating_mul(16), threshold_ns.max(1), 16);
        of.ended = now;
        of.mean += ((ns as f32 / threshold_ns.max(1) as f32).min(64.0) - of.mean) / MEAN_MEMORY;
        of.outcomes = of.outcomes << 1 | u32::from(is_slow);
        of.share += (f32::from(u8::from(is_slow)) - of.share) / SHARE_MEMORY;
        if is_slow {
            self.slow = (self.written, now);
            if ns > threshold_ns.saturating_mul(LONG) {
                self.long = (self.written, now);
            }
        }
    }

    /// What the tables have seen.
    pub fn noted(&self) -> Vec<Noted> {
        self.tables.noted()
    }

    /// Takes over what others have seen, and the parts of writes and reads that are slow.
    pub fn recall(&mut self, noted: &[Noted], shares: [f32; 2]) {
        self.tables.recall(noted);
        for (of, share) in self.of.iter_mut().zip(shares) {
            of.share = share;
        }
    }

    /// Nothing is outstanding any more.
    pub fn clear(&mut self) {
        self.of.iter_mut().for_each(|of| of.outstanding = 0);
    }
}
