//! What else than buffer and collection tells of a request: what those before it took, what
//! is outstanding, and whether its part of the map has been used of late.

use flashkeel_engine::{Lba, Time};

use super::flight::Outcome;
use super::ground::Ground;
use super::history::{Noted, PRIOR};
use super::mixer::{SETS, fixed, float, stretch};
use super::queue::{Queue, queue};
use super::scale::Scale;
use super::tables::{COMMON, OWN_PLACES, Places, Tables};

/// Sectors of which a page of a map tells where they are, if it has 4 KiB and entries of
/// four bytes for 4 KiB each.
const REGION_SECTORS: u64 = 8_192;
/// Regions told apart: those that lie 64 GiB apart are not.
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
/// Where the phase begins in a place, in bits, and where what is written since the last slow request
/// stands for it: beyond the steps of a buffer.
const PHASE: u32 = 2;
const SINCE_SLOW: u32 = 64 << PHASE;
/// Late outcomes that are told apart: five.
const LATE: u32 = 31;
/// Where each table begins: by the last latency, by the mean, by the phase of the buffer, by the
/// region, and by what is outstanding or, where nothing is, by late outcomes.
const LAST_TABLE: u32 = 0;
const MEAN_TABLE: u32 = 512;
const PHASE_TABLE: u32 = 1_024;
const REGION_TABLE: u32 = 2_048;
pub(super) const QUEUE_TABLE: u32 = 3_072;

/// What one operation did of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lately {
    /// The last outcomes, one bit each.
    outcomes: u32,
    /// The last latency and an exponential mean of them, in parts of their thresholds.
    last: f32,
    mean: f32,
    /// Part that was slow, the logarithm of the odds, and its step.
    share: f32,
    share_odds: f32,
    share_step: u32,
}

impl Lately {
    pub fn new(share: f32) -> Lately {
        let mut of = Lately { outcomes: 0, last: 0.0, mean: 0.0, share, share_odds: 0.0, share_step: 0 };
        of.conclude_share();
        of
    }

    /// The share that is reckoned with.
    #[inline]
    fn reckoned(&self) -> f32 {
        self.share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE)
    }

    /// What a table that has seen nothing is taken to have seen for that: slow and normal ones.
    #[inline]
    fn presumed(&self) -> (f32, f32) {
        (PRIOR * self.reckoned(), PRIOR * (1.0 - self.reckoned()))
    }

    /// What follows from the share.
    #[inline]
    fn conclude_share(&mut self) {
        let share = self.reckoned();
        self.share_odds = stretch(share, 1.0 - share);
        self.share_step = fixed(8.0 * share.sqrt()) >> 16;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Signals {
    pub tables: Tables,
    /// Of writes and of reads.
    pub of: [Ground; 2],
    /// Whether that of each is as it has to be for the next request.
    pub settled: [bool; 2],
    /// When each region was used last, in requests.
    regions: Box<[u32; REGIONS]>,
    requests: u32,
    /// The last outcomes of both operations, one bit each.
    outcomes: u32,
    /// Writes and reads that are outstanding.
    outstanding: [u32; 2],
    /// Whether it is known how full buffers are; where not, what has been written since the last slow
    /// request stands for that, in steps of a place.
    is_followed: bool,
    since_slow: u32,
    written: u64,
    /// What had been written when a request was slow.
    slow: u64,
}

impl Signals {
    /// Of a drive whose writes and reads stand on these grounds, and whose buffers are followed or not.
    pub fn new(of: [Ground; 2], is_followed: bool) -> Signals {
        Signals {
            tables: Tables::new(),
            of,
            settled: [false; 2],
            is_followed,
            since_slow: if is_followed { 0 } else { SINCE_SLOW },
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
        let of = &self.of[usize::from(is_read)].lately;
        (of.share, of.share_odds)
    }

    /// Of writes and of reads.
    pub fn shares(&self) -> [f32; 2] {
        self.of.map(|ground| ground.lately.share)
    }

    /// Where the requests of an operation stand by the mean and by late outcomes, in tables that begin
    /// at `first`.
    #[inline]
    pub fn common_places(&self, first: u32, is_read: bool) -> [u32; COMMON] {
        let of = &self.of[usize::from(is_read)].lately;
        [
            first + MEAN_TABLE + (MEANS.step_of(of.mean) << 3) + of.share_step,
            first + QUEUE_TABLE + ((of.outcomes & LATE) << 5) + (self.outcomes & LATE),
        ]
    }

    /// Where those parts of the tables, of which all begin at `first`, begin in which a request's own
    /// places are: by the last latency, by its region and by the phase.
    #[inline]
    pub fn begins(&self, first: u32, is_read: bool) -> [u32; OWN_PLACES] {
        let of = &self.of[usize::from(is_read)].lately;
        let by_phase = first + PHASE_TABLE + self.since_slow + (of.outcomes & 3);
        [first + LAST_TABLE + (LAST.step_of(of.last) << 5), first + REGION_TABLE, by_phase]
    }

    /// Where a request of so many octaves of pages has its own places, in tables that
    /// [begin](Self::begins) as `ground` says; `phase` is how full its volume's buffer is, below 64.
    #[inline(always)]
    pub fn own_places(
        &self,
        now: Time,
        lba: Lba,
        size: u32,
        phase: u32,
        ground: &Ground,
    ) -> [u32; OWN_PLACES] {
        let since_used = self.requests.wrapping_sub(self.regions[Self::region(lba)]);
        let [by_last, by_region, by_phase] = ground.begins;
        [
            by_last + ENDED.since(now, ground.ended),
            by_region + (REUSE.step(since_used.into()) << 5) + size,
            by_phase + (phase << PHASE),
        ]
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
        [(places[0] >> 5) as usize % LASTS, (places[OWN_PLACES] >> 3) as usize % MOST_MEANS]
    }

    /// Finds what has been written since the last slow request.
    #[cold]
    #[inline(never)]
    fn find_since_slow(&mut self) {
        const PAGES: Scale = Scale::new(1, 0, 48);
        self.since_slow = SINCE_SLOW + (PAGES.step(self.written - self.slow) << PHASE);
    }

    /// A request has been submitted.
    #[inline]
    pub fn submitted(&mut self, lba: Lba, is_read: bool, pages: u32) {
        self.regions[Self::region(lba)] = self.requests;
        self.requests = self.requests.wrapping_add(1);
        self.outstanding[usize::from(is_read)] += 1;
        self.unsettle();
        if !is_read {
            self.written += u64::from(pages);
            if !self.is_followed {
                self.find_since_slow();
            }
        }
    }

    /// A request has ended of which nothing is to be learnt.
    pub fn left(&mut self, is_read: bool) {
        self.outstanding[usize::from(is_read)] -= 1;
        self.unsettle();
    }

    /// A request has ended `now`.
    #[inline(always)]
    pub fn ended(&mut self, now: Time, is_read: bool, outcome: &Outcome) {
        let is_slow = outcome.was_slow();
        self.outstanding[usize::from(is_read)] -= 1;
        self.unsettle();
        let ground = &mut self.of[usize::from(is_read)];
        ground.ended = now;
        let of = &mut ground.lately;
        // Halves, which are never too many to convert.
        let parts = float(outcome.took.0 / 2) * (2.0 * PARTS) / float(outcome.threshold_ns);
        let parts = if parts < MOST { parts } else { MOST };
        of.mean += (parts - of.mean) / MEAN_MEMORY;
        of.outcomes = of.outcomes << 1 | u32::from(is_slow);
        self.outcomes = self.outcomes << 1 | u32::from(is_slow);
        of.last = parts;
    }

    /// The request that ended last was slow.
    pub fn was_slow(&mut self) {
        self.slow = self.written;
        if !self.is_followed {
            self.find_since_slow();
        }
    }

    /// The tables learn what became of a request at these places, as if it had come so many times.
    #[inline]
    pub fn learn(&mut self, is_read: bool, places: &Places, is_slow: bool, times: u32) {
        let of = &mut self.of[usize::from(is_read)].lately;
        let share = f32::from(u8::from(is_slow));
        of.share += (share - of.share) * (times as i32 as f32 / SHARE_MEMORY);
        of.conclude_share();
        self.tables.note(places, is_slow, times, of.presumed(), of.share_odds);
    }

    /// Takes over what others have seen, and the parts of writes and reads that are slow.
    pub fn recall(&mut self, noted: &[Noted], shares: [f32; 2]) {
        for (ground, share) in self.of.iter_mut().zip(shares) {
            ground.lately = Lately::new(share);
        }
        self.tables.recall(noted, |set| {
            let of = &self.of[set / (SETS / 2)].lately;
            (of.presumed(), of.share_odds)
        });
    }

    /// Nothing is outstanding any more.
    pub fn clear(&mut self) {
        self.outstanding = [0; 2];
        self.unsettle();
    }

    /// A request has been submitted or has ended: what was worked out for others is as it was no more.
    #[inline]
    pub fn unsettle(&mut self) {
        self.settled = [false; 2];
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Span;

    use super::super::tables::ENTRIES;
    use super::*;

    #[test]
    fn every_place_lies_in_its_table() {
        let mut signals = Signals::new([Ground::default(); 2], false);
        for number in 0..20_000_u64 {
            let is_read = number % 3 == 0;
            let lba = Lba(number * 999);
            if number % 5 < 2 {
                signals.submitted(lba, is_read, 300);
            }
            let now = Time(number * number * 1_000_000);
            assert!((SINCE_SLOW..SINCE_SLOW + (48 << PHASE)).contains(&signals.since_slow));
            let size = (number % 30) as u32;
            let mut ground = Ground { ended: Time(number), ..Ground::default() };
            ground.begins = signals.begins(0, is_read);
            let own = signals.own_places(now, lba, size, 0, &ground);
            let [last, region, phase] = own;
            let [mean, outcomes] = signals.common_places(0, is_read);
            let queued = signals.queue().place(now, Time::ZERO);
            let begins = [LAST_TABLE, MEAN_TABLE, PHASE_TABLE, REGION_TABLE, QUEUE_TABLE, ENTRIES as u32];
            for (place, table) in [last, mean, phase, region, outcomes].iter().zip(begins.windows(2)) {
                assert!((table[0]..table[1]).contains(place), "{number} {place}");
            }
            assert!((QUEUE_TABLE..ENTRIES as u32).contains(&queued), "{queued}");
            if number % 7 == 0 {
                signals.submitted(lba, is_read, 300);
                let took = Span(number);
                signals.ended(now, is_read, &Outcome { took, latency: took, threshold_ns: 1 });
                if number > 1 {
                    signals.was_slow();
                }
            }
        }
    }
}
