//! What else than buffer and collection tells of a request: what those before it took, what
//! is outstanding, and whether its part of the map has been used of late.

use flashkeel_engine::{Lba, Time};

use super::history::{History, Noted, PRIOR};
use super::mixer::{float, log2, stretch};
use super::view::Terms;

/// Circumstances that each have a table of their own.
pub(super) const SIGNALS: usize = 8;
/// Entries of each table, and of all.
const ENTRIES: usize = 2_048;
const ALL: usize = SIGNALS * ENTRIES;
/// What the tables have seen.
pub(super) type Tables = History<ALL>;
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
#[derive(Clone, Copy, Debug)]
struct Lately {
    /// The last latency over the threshold, in half octaves; when it ended.
    last: u32,
    ended: Time,
    /// The last outcomes, one bit each.
    outcomes: u32,
    /// Part that was slow, and what a table that has seen nothing is taken to have seen for
    /// that: slow and normal ones.
    share: f32,
    presumed: (f32, f32),
    /// Exponential mean of latencies over their thresholds, and its logarithm.
    mean: f32,
    mean_log: f32,
    /// Steps of mean and share, together.
    level: u32,
    outstanding: u32,
}

impl Lately {
    fn new(share: f32) -> Lately {
        let mut of = Lately {
            last: 0,
            ended: Time::ZERO,
            outcomes: 0,
            share,
            presumed: (0.0, 0.0),
            mean: 0.0,
            mean_log: 0.0,
            level: 0,
            outstanding: 0,
        };
        of.conclude();
        of
    }

    /// What follows from share and mean.
    #[inline]
    fn conclude(&mut self) {
        let share = self.share.clamp(0.001, 0.999);
        self.presumed = (PRIOR * share, PRIOR * (1.0 - share));
        self.mean_log = log2(if self.mean > 1e-3 { self.mean } else { 1e-3 });
        let mean = (4.0 * self.mean_log + 16.0) as i32;
        let share = (8.0 * self.share.sqrt()) as i32;
        self.level = (mean.clamp(0, 47) << 3 | share.clamp(0, 7)) as u32;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Signals {
    tables: Tables,
    /// Of writes and of reads.
    of: [Lately; 2],
    /// When each region was used last, in requests.
    regions: Box<[u32; REGIONS]>,
    requests: u32,
    written: u64,
    /// What had been written, and the time, when a request was slow and when one was for long.
    slow: (u64, Time),
    long: (u64, Time),
}

/// Steps of half an octave: of so much at most, where the greatest is the half-octave's own.
#[inline]
fn half_octaves<const N: usize>(values: [u32; N], greatest: [f32; N]) -> [u32; N] {
    std::array::from_fn(|at| {
        let value = values[at] as i32 as f32;
        let value = if value > 1.0 { value } else { 1.0 };
        let value = if value < greatest[at] { value } else { greatest[at] };
        // Exponent and first bit of the fraction.
        (value.to_bits() >> 22) - (1.0_f32.to_bits() >> 22)
    })
}

/// The number from which on the last of so many half octaves begins.
const fn last_of(steps: u32) -> f32 {
    let octave = 1 << ((steps - 1) / 2);
    (if steps.is_multiple_of(2) { octave + octave / 2 } else { octave }) as f32
}

/// Greater than any number that is told apart.
const MANY: u64 = 1 << 20;

impl Signals {
    pub fn new() -> Signals {
        Signals {
            tables: Tables::new(),
            of: [Lately::new(0.0); 2],
            regions: vec![0; REGIONS].into_boxed_slice().try_into().expect("so many were made"),
            requests: 0,
            written: 0,
            slow: (0, Time::ZERO),
            long: (0, Time::ZERO),
        }
    }

    #[inline]
    fn region(lba: Lba) -> usize {
        (lba.0 / REGION_SECTORS) as usize % REGIONS
    }

    /// Where a request stands; `phase` is what its volume's buffer is at, below 128, and
    /// `oldest` when the oldest request that is outstanding was submitted.
    #[inline]
    pub fn places(&self, now: Time, lba: Lba, terms: &Terms, phase: u32, oldest: Time) -> Places {
        const GREATEST: [f32; 8] = [
            last_of(32),
            last_of(32),
            last_of(32),
            last_of(32),
            last_of(32),
            last_of(31),
            last_of(12),
            last_of(12),
        ];
        let kind = u32::from(terms.is_read);
        let of = &self.of[kind as usize];
        let since = |time: Time, shift: u32| (now.0.saturating_sub(time.0) >> shift).min(MANY) as u32;
        let [slow, ended, long, written, reuse, waited, writes, reads] = half_octaves(
            [
                since(self.slow.1, 14),
                since(of.ended, 12),
                since(self.long.1, 16),
                (self.written - self.long.0).min(MANY) as u32,
                self.requests.wrapping_sub(self.regions[Self::region(lba)]) & i32::MAX as u32,
                since(oldest, 12),
                1 + self.of[0].outstanding,
                1 + self.of[1].outstanding,
            ],
            GREATEST,
        );
        let is_busy = u32::from(writes + reads > 0);
        let size = terms.size;
        let waited = if is_busy > 0 { 1 + waited } else { 0 };
        [
            (kind << 4 | of.outcomes & 15) << 5 | slow,
            ((kind << 4 | of.last) << 5 | ended) << 1 | is_busy,
            ((kind * 12 + writes) * 12 + reads) * 7 + size.min(6),
            ((kind << 5 | reuse) << 3 | size) << 1 | is_busy,
            ((kind << 7 | phase) << 1 | writes.min(1)) << 2 | of.outcomes & 3,
            (kind << 9) | of.level,
            (kind << 5 | written) << 5 | long,
            ((kind << 5 | waited) << 3 | writes.min(7)) << 2 | reads.min(3),
        ]
        .map(|place| place as u16)
    }

    /// The logarithms of the odds of what is at these places.
    #[inline]
    pub fn odds(&self, places: &Places, is_read: bool) -> [f32; SIGNALS] {
        let (slow, normal) = self.of[usize::from(is_read)].presumed;
        let entries: [_; SIGNALS] =
            std::array::from_fn(|signal| self.tables.entry(Self::index(signal, places[signal])));
        entries.map(|entry| {
            let (more_slow, more_normal) = entry.counts();
            stretch(slow + more_slow, normal + more_normal)
        })
    }

    #[inline]
    fn index(signal: usize, place: u16) -> usize {
        // A place lies within its table; the processor need not be asked.
        signal * ENTRIES + usize::from(place) % ENTRIES
    }

    /// The logarithm of the mean latency over the threshold.
    #[inline]
    pub fn mean(&self, is_read: bool) -> f32 {
        self.of[usize::from(is_read)].mean_log
    }

    /// What is written since the last slow request, in steps below 128.
    #[inline]
    pub fn since_slow(&self) -> u32 {
        let written = (self.written - self.slow.0).min(u64::from(u32::MAX >> 1)) as u32;
        let [steps] = half_octaves([written], [last_of(48)]);
        steps + 64
    }

    /// A request has been submitted.
    #[inline]
    pub fn submitted(&mut self, lba: Lba, terms: &Terms) {
        self.regions[Self::region(lba)] = self.requests;
        self.requests = self.requests.wrapping_add(1);
        self.of[usize::from(terms.is_read)].outstanding += 1;
        if !terms.is_read {
            self.written += u64::from(terms.pages);
        }
    }

    /// A request at these places has ended `now`, after so many nanoseconds.
    #[inline]
    pub fn ended(&mut self, now: Time, terms: &Terms, places: &Places, ns: u64) {
        let threshold_ns = terms.threshold_ns;
        let is_slow = ns > threshold_ns;
        for (signal, &place) in places.iter().enumerate() {
            self.tables.note(Self::index(signal, place), is_slow);
        }
        let of = &mut self.of[usize::from(terms.is_read)];
        of.outstanding -= 1;
        let times = float(ns.min(i64::MAX as u64)) / float(threshold_ns.max(1));
        [of.last] = half_octaves([(16.0 * times) as u32], [last_of(16)]);
        of.ended = now;
        of.mean += (if times < 64.0 { times } else { 64.0 } - of.mean) / MEAN_MEMORY;
        of.outcomes = of.outcomes << 1 | u32::from(is_slow);
        of.share += (f32::from(u8::from(is_slow)) - of.share) / SHARE_MEMORY;
        of.conclude();
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
        self.of = shares.map(Lately::new);
    }

    /// Nothing is outstanding any more.
    pub fn clear(&mut self) {
        self.of.iter_mut().for_each(|of| of.outstanding = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_octaves_end_where_they_are_told_to() {
        let values = [0, 1, 2, 3, 4, 5, 6, 1 << 20];
        assert_eq!(half_octaves(values, [last_of(32); 8]), [0, 0, 2, 3, 4, 4, 5, 31]);
        assert_eq!(half_octaves([1 << 20; 4], [12, 16, 31, 48].map(last_of)), [11, 15, 30, 40]);
    }

    #[test]
    fn every_place_lies_in_its_table() {
        let mut signals = Signals::new();
        for number in 0..20_000_u64 {
            let is_read = number % 3 == 0;
            let terms =
                Terms { is_read, pages: 300, size: (number % 8) as u32, threshold_ns: 1, ..Terms::default() };
            let lba = Lba(number * 999);
            if number % 5 < 2 {
                signals.submitted(lba, &terms);
            }
            let now = Time(number * number * 1_000_000);
            let phase = signals.since_slow();
            assert!((64..112).contains(&phase));
            let places = signals.places(now, lba, &terms, phase, Time::ZERO);
            assert!(places.iter().all(|&place| usize::from(place) < ENTRIES), "{places:?}");
            if number % 7 == 0 {
                signals.of[usize::from(is_read)].outstanding += 1;
                signals.ended(now, &terms, &places, number);
            }
        }
    }
}
