//! What else than buffer and collection tells of a request: what those before it took, what
//! is outstanding, and whether its part of the map has been used of late.

use flashkeel_engine::{Lba, Time};

use super::history::{Noted, PRIOR};
use super::mixer::{SETS, fixed, float, stretch};
use super::queue::{Queue, queue};
use super::scale::Scale;
use super::tables::{Places, Tables};
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
/// Half octaves of the time since the last of an operation ended, and of requests since a region was
/// used.
const ENDED: Scale = Scale::new(1, 12, 32);
const REUSE: Scale = Scale::new(1, 0, 32);
/// Half octaves of the last latency and quarter octaves of the mean of late ones, in parts of
/// 65,536 of the threshold, of which a sixteenth comes first.
const LAST: Scale = Scale::new(1, 12, LASTS as u32);
const MEANS: Scale = Scale::new(2, 12, 48);
/// Steps of the last latency, and room for those of the mean.
pub(super) const LASTS: usize = 16;
pub(super) const MOST_MEANS: usize = 64;
/// The parts, and how many of them there are of the longest latencies that are told apart.
const PARTS: f32 = 65_536.0;
const MOST: f32 = 64.0 * PARTS;
/// Late outcomes that are told apart: five.
const LATE: u32 = 31;
/// Where each table begins: by the last latency, by the mean, by the region, by the phase of the
/// buffer, and by what is outstanding or, where nothing is, by late outcomes.
const LAST_TABLE: u32 = 0;
const MEAN_TABLE: u32 = 512;
const REGION_TABLE: u32 = 1_024;
const PHASE_TABLE: u32 = 1_536;
pub(super) const QUEUE_TABLE: u32 = 2_048;

/// What one operation did of late.
#[derive(Clone, Copy, Debug)]
struct Lately {
    /// Where its requests stand in the tables, as far as that is known before they come.
    last: u32,
    mean_and_share: u32,
    phase: u32,
    /// The last outcomes, one bit each, and when the last one came.
    outcomes: u32,
    ended: Time,
    /// Part that was slow, and what a table that has seen nothing is taken to have seen for
    /// that: slow and normal ones; and the logarithm of the odds.
    share: f32,
    presumed: (f32, f32),
    share_odds: f32,
    share_step: u32,
    /// Exponential mean of latencies, in parts of their thresholds.
    mean: f32,
}

impl Lately {
    fn new(share: f32) -> Lately {
        let mut of = Lately {
            last: LAST_TABLE,
            mean_and_share: MEAN_TABLE,
            phase: PHASE_TABLE,
            outcomes: 0,
            ended: Time::ZERO,
            share,
            presumed: (0.0, 0.0),
            share_odds: 0.0,
            share_step: 0,
            mean: 0.0,
        };
        of.conclude_share();
        of.conclude(0.0);
        of
    }

    /// What follows from mean, outcomes and the last latency, so many parts of the threshold.
    #[inline]
    fn conclude(&mut self, last: f32) {
        self.last = LAST_TABLE + (LAST.step_of(last) << 5);
        self.mean_and_share = MEAN_TABLE + (MEANS.step_of(self.mean) << 3 | self.share_step);
        self.phase = PHASE_TABLE + (self.outcomes & 3);
    }

    /// What follows from the share.
    #[inline]
    fn conclude_share(&mut self) {
        let share = self.share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
        self.presumed = (PRIOR * share, PRIOR * (1.0 - share));
        self.share_odds = stretch(share, 1.0 - share);
        self.share_step = fixed(8.0 * share.sqrt()) >> 16;
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
    /// The last outcomes of both operations, one bit each.
    outcomes: u32,
    /// Writes and reads that are outstanding.
    outstanding: [u32; 2],
    written: u64,
    /// What had been written when a request was slow.
    slow: u64,
}

impl Signals {
    pub fn new() -> Signals {
        Signals {
            tables: Tables::new(),
            of: [Lately::new(0.0); 2],
            regions: vec![0; REGIONS].into_boxed_slice().try_into().expect("so many were made"),
            requests: 0,
            outcomes: 0,
            outstanding: [0; 2],
            written: 0,
            slow: 0,
        }
    }

    #[inline]
    fn region(lba: Lba) -> usize {
        (lba.0 / REGION_SECTORS) as usize % REGIONS
    }

    /// Whether anything is outstanding.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.outstanding != [0; 2]
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

    /// Where a request stands before which nothing is outstanding; `phase` is what its volume's
    /// buffer is at, below 128.
    #[inline(always)]
    pub fn places(&self, now: Time, lba: Lba, terms: &Terms, phase: u32, places: &mut Places) {
        let of = &self.of[usize::from(terms.is_read)];
        let since_used = self.requests.wrapping_sub(self.regions[Self::region(lba)]) & i32::MAX as u32;
        places[0] = of.last + ENDED.since(now, of.ended);
        places[1] = of.mean_and_share;
        places[2] = REGION_TABLE + (REUSE.step(since_used.into()) << 3) + terms.size;
        places[3] = of.phase + (phase << 2);
        places[4] = QUEUE_TABLE + ((of.outcomes & LATE) << 5) + (self.outcomes & LATE);
    }

    /// What is outstanding.
    #[inline]
    pub fn queue(&self) -> &'static Queue {
        queue(self.outstanding)
    }

    /// Steps of the last latency of a request's operation and of the mean of late ones, of which
    /// its places tell; see [`naive`](super::naive).
    #[inline]
    pub fn latencies(places: &Places) -> [usize; 2] {
        [(places[0] >> 5) as usize % LASTS, (places[1] >> 3) as usize % MOST_MEANS]
    }

    /// What is written since the last slow request, in steps below 128.
    #[inline]
    pub fn since_slow(&self) -> u32 {
        const PAGES: Scale = Scale::new(1, 0, 48);
        64 + PAGES.step(self.written - self.slow)
    }

    /// A request has been submitted.
    #[inline]
    pub fn submitted(&mut self, lba: Lba, is_read: bool, pages: u32) {
        self.regions[Self::region(lba)] = self.requests;
        self.requests = self.requests.wrapping_add(1);
        self.outstanding[usize::from(is_read)] += 1;
        if !is_read {
            self.written += u64::from(pages);
        }
    }

    /// A request has ended `now`, after so many nanoseconds.
    #[inline]
    pub fn ended(&mut self, now: Time, is_read: bool, threshold_ns: u64, ns: u64) {
        let is_slow = ns > threshold_ns;
        let of = &mut self.of[usize::from(is_read)];
        self.outstanding[usize::from(is_read)] -= 1;
        let parts = float(ns.min(i64::MAX as u64)) * PARTS / float(threshold_ns);
        let parts = if parts < MOST { parts } else { MOST };
        of.ended = now;
        of.mean += (parts - of.mean) / MEAN_MEMORY;
        of.outcomes = of.outcomes << 1 | u32::from(is_slow);
        self.outcomes = self.outcomes << 1 | u32::from(is_slow);
        of.conclude(parts);
        if is_slow {
            self.slow = self.written;
        }
    }

    /// The tables learn what became of a request at these places, as if it had come so many times.
    #[inline]
    pub fn learn(&mut self, set: usize, places: &Places, is_slow: bool, times: u32) {
        let of = &mut self.of[set / (SETS / 2)];
        let share = f32::from(u8::from(is_slow));
        of.share += (share - of.share) * (times as i32 as f32 / SHARE_MEMORY);
        of.conclude_share();
        self.tables.note(set, places, is_slow, times, of.presumed, of.share_odds);
    }

    /// Takes over what others have seen, and the parts of writes and reads that are slow.
    pub fn recall(&mut self, noted: &[Noted], shares: [f32; 2]) {
        self.of = shares.map(Lately::new);
        self.tables.recall(noted, |set| {
            let of = &self.of[set / (SETS / 2)];
            (of.presumed, of.share_odds)
        });
    }

    /// Nothing is outstanding any more.
    pub fn clear(&mut self) {
        self.outstanding = [0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::ENTRIES;
    use super::*;

    #[test]
    fn every_place_lies_in_its_table() {
        let mut signals = Signals::new();
        for number in 0..20_000_u64 {
            let is_read = number % 3 == 0;
            let terms =
                Terms { is_read, pages: 300, size: (number % 8) as u32, threshold_ns: 1, ..Terms::default() };
            let lba = Lba(number * 999);
            if number % 5 < 2 {
                signals.submitted(lba, is_read, 300);
            }
            let now = Time(number * number * 1_000_000);
            let phase = signals.since_slow();
            assert!((64..112).contains(&phase));
            let mut places = Places::default();
            signals.places(now, lba, &terms, phase, &mut places);
            let queued = signals.queue().place(now, Time::ZERO);
            let begins = [LAST_TABLE, MEAN_TABLE, REGION_TABLE, PHASE_TABLE, QUEUE_TABLE, ENTRIES as u32];
            for (place, table) in places.iter().zip(begins.windows(2)) {
                assert!((table[0]..table[1]).contains(place), "{places:?}");
            }
            assert!((QUEUE_TABLE..ENTRIES as u32).contains(&queued), "{queued}");
            if number % 7 == 0 {
                signals.submitted(lba, is_read, 300);
                signals.ended(now, is_read, 1, number);
            }
        }
    }
}
