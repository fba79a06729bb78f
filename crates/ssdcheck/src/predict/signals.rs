//! What else than buffer and collection tells of a request: what those before it took, what
//! is outstanding, and whether its part of the map has been used of late.

use flashkeel_engine::{Lba, Time};

use super::history::PRIOR;
use super::mixer::{fixed, float, stretch};
use super::queue::{Queue, queue};
use super::scale::Scale;
use super::tables::{ENTRIES, Places, Tables};
use super::view::Terms;

/// Sectors of which a page of a map tells where they are, if it has 4 KiB and entries of
/// four bytes for 4 KiB each.
const REGION_SECTORS: u64 = 8_192;
/// Regions told apart.
const REGIONS: usize = 1 << 14;
/// Requests over which the share of slow ones is taken, and the mean of latencies.
const SHARE_MEMORY: f32 = 512.0;
const MEAN_MEMORY: f32 = 8.0;
/// Least share that is reckoned with.
const LEAST_SHARE: f32 = 0.001;
/// Half octaves of the times since a slow request, since the last of an operation ended and since
/// the oldest was submitted, of a latency in sixteenths of the threshold, and of requests since a
/// region was used.
const SLOW: Scale = Scale::new(1, 14, 32);
const ENDED: Scale = Scale::new(1, 12, 32);
const WAITED: Scale = Scale::new(1, 12, 32);
const LAST: Scale = Scale::new(1, 0, LASTS as u32);
const REUSE: Scale = Scale::new(1, 0, 32);
/// Quarter octaves of the mean latency, in parts of 65,536 of the threshold.
const MEANS: Scale = Scale::new(2, 12, 48);
/// Steps of the last latency, and room for those of the mean.
pub(super) const LASTS: usize = 16;
pub(super) const MOST_MEANS: usize = 64;
/// Where others are outstanding, in the table by these.
const BUSY: u32 = READ / 2;
/// Of reads in every table.
const READ: u32 = (ENTRIES / 2) as u32;

/// What one operation did of late.
#[derive(Clone, Copy, Debug)]
struct Lately {
    /// Where its part of each table begins, and where its requests stand as far as that is known
    /// before they come.
    tables: Places,
    places: Places,
    /// The last outcomes, one bit each, and when the last one came.
    outcomes: u32,
    ended: Time,
    /// Part that was slow, and what a table that has seen nothing is taken to have seen for
    /// that: slow and normal ones; and the logarithm of the odds.
    share: f32,
    presumed: (f32, f32),
    share_odds: f32,
    /// Exponential mean of latencies over their thresholds.
    mean: f32,
    outstanding: u32,
}

impl Lately {
    fn new(is_read: bool, share: f32) -> Lately {
        let kind = if is_read { READ } else { 0 };
        let tables: Places = std::array::from_fn(|signal| (signal * ENTRIES) as u32 + kind);
        let mut of = Lately {
            tables,
            places: tables,
            outcomes: 0,
            ended: Time::ZERO,
            share,
            presumed: (0.0, 0.0),
            share_odds: 0.0,
            mean: 0.0,
            outstanding: 0,
        };
        of.conclude_share();
        of.conclude(0);
        of
    }

    /// What follows from share, mean, outcomes and the `last` latency.
    #[inline]
    fn conclude(&mut self, last: u32) {
        let mean = MEANS.step(u64::from(fixed(self.mean)));
        self.places[0] = self.tables[0] | last << 7;
        self.places[1] = self.tables[1] | mean << 5;
        self.places[3] = self.tables[3] | (self.outcomes & 3) << 2;
    }

    /// What follows from the share.
    #[inline]
    fn conclude_share(&mut self) {
        let share = self.share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        self.presumed = (PRIOR * share, PRIOR * (1.0 - share));
        self.share_odds = stretch(share, 1.0 - share);
        let share = fixed(8.0 * share.sqrt()) >> 16;
        let kind = self.tables[1] & READ;
        self.tables[1] = ENTRIES as u32 | kind | share << 2;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Signals {
    pub tables: Tables,
    /// Of writes and of reads.
    of: [Lately; 2],
    /// When each region was used last, in requests.
    regions: Box<[u32; REGIONS]>,
    requests: u32,
    written: u64,
    /// What had been written, and the time, when a request was slow.
    slow: (u64, Time),
}

impl Signals {
    pub fn new() -> Signals {
        Signals {
            tables: Tables::new(),
            of: [false, true].map(|is_read| Lately::new(is_read, 0.0)),
            regions: vec![0; REGIONS].into_boxed_slice().try_into().expect("so many were made"),
            requests: 0,
            written: 0,
            slow: (0, Time::ZERO),
        }
    }

    #[inline]
    fn region(lba: Lba) -> usize {
        (lba.0 / REGION_SECTORS) as usize % REGIONS
    }

    /// What is outstanding.
    #[inline]
    pub fn queue(&self) -> &'static Queue {
        queue([self.of[0].outstanding, self.of[1].outstanding])
    }

    /// Part of an operation's requests that was slow of late, and the logarithm of the odds.
    #[inline]
    pub fn share(&self, is_read: bool) -> (f32, f32) {
        let of = &self.of[usize::from(is_read)];
        (of.share, of.share_odds)
    }

    /// Of writes and of reads.
    pub fn shares(&self) -> [f32; 2] {
        [self.of[0].share, self.of[1].share]
    }

    /// Where a request stands; `phase` is what its volume's buffer is at, below 128, and `oldest`
    /// when the oldest request that is outstanding was submitted.
    #[inline(always)]
    pub fn places(&self, now: Time, lba: Lba, terms: &Terms, phase: u32, oldest: Time, places: &mut Places) {
        let (of, queue) = (&self.of[usize::from(terms.is_read)], self.queue());
        let since = |time: Time| now.0.saturating_sub(time.0);
        let since_used = self.requests.wrapping_sub(self.regions[Self::region(lba)]) & i32::MAX as u32;
        let depth = u32::from(queue.depth);
        places[0] = of.places[0] | ENDED.step(since(of.ended)) << 2 | depth;
        places[1] = of.places[1] | depth;
        places[2] = of.places[2] | REUSE.step(since_used.into()) << 5 | terms.size << 2 | depth;
        places[3] = of.places[3] | phase << 4 | depth;
        places[4] = of.places[4]
            | match queue.is_busy {
                true => BUSY | WAITED.step(since(oldest)) << 5 | u32::from(queue.both),
                false => (of.outcomes & 15) << 5 | SLOW.step(since(self.slow.1)),
            };
    }

    /// Steps of the last latency of a request's operation and of the mean of late ones, of which
    /// its places tell; see [`naive`](super::naive).
    #[inline]
    pub fn latencies(places: &Places) -> [usize; 2] {
        [(places[0] >> 7) as usize % LASTS, (places[1] >> 5) as usize % MOST_MEANS]
    }

    /// What is written since the last slow request, in steps below 128.
    #[inline]
    pub fn since_slow(&self) -> u32 {
        const PAGES: Scale = Scale::new(1, 0, 48);
        64 + PAGES.step(self.written - self.slow.0)
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

    /// A request has ended `now`, after so many nanoseconds.
    #[inline]
    pub fn ended(&mut self, now: Time, terms: &Terms, ns: u64) {
        let threshold_ns = terms.threshold_ns;
        let is_slow = ns > threshold_ns;
        let of = &mut self.of[usize::from(terms.is_read)];
        of.outstanding -= 1;
        let times = float(ns.min(i64::MAX as u64)) / float(threshold_ns.max(1));
        let times = if times < 64.0 { times } else { 64.0 };
        of.ended = now;
        of.mean += (times - of.mean) / MEAN_MEMORY;
        of.outcomes = of.outcomes << 1 | u32::from(is_slow);
        of.share += (f32::from(u8::from(is_slow)) - of.share) / SHARE_MEMORY;
        of.conclude(LAST.step(u64::from(fixed(times) >> 12)));
        if is_slow {
            self.slow = (self.written, now);
        }
    }

    /// The tables learn what became of a request at these places.
    #[inline]
    pub fn learn(&mut self, places: &Places, is_read: bool, is_slow: bool, times: u32) {
        let of = &mut self.of[usize::from(is_read)];
        of.conclude_share();
        self.tables.note(places, is_slow, times, of.presumed, of.share_odds);
    }

    /// Takes over what others have seen, and the parts of writes and reads that are slow.
    pub fn recall(&mut self, noted: &[super::history::Noted], shares: [f32; 2]) {
        self.of = [false, true].map(|is_read| Lately::new(is_read, shares[usize::from(is_read)]));
        self.tables.recall(noted, |place| {
            let of = &self.of[usize::from(place & READ > 0)];
            (of.presumed, of.share_odds)
        });
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
    fn every_place_lies_in_its_table() {
        let mut signals = Signals::new();
        for number in 0..20_000_u64 {
            let is_read = number % 3 == 0;
            let terms =
                Terms { is_read, pages: 300, size: (number % 7) as u32, threshold_ns: 1, ..Terms::default() };
            let lba = Lba(number * 999);
            if number % 5 < 2 {
                signals.submitted(lba, &terms);
            }
            let now = Time(number * number * 1_000_000);
            let phase = signals.since_slow();
            assert!((64..112).contains(&phase));
            let mut places = Places::default();
            signals.places(now, lba, &terms, phase, Time::ZERO, &mut places);
            for (signal, &place) in places.iter().enumerate() {
                assert_eq!(place as usize / ENTRIES, signal, "{places:?}");
                assert_eq!(place & READ > 0, is_read, "{places:?}");
            }
            if number % 7 == 0 {
                signals.of[usize::from(is_read)].outstanding += 1;
                signals.ended(now, &terms, number);
            }
        }
    }
}
