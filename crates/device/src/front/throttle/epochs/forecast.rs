//! The forecast of write demand (READY's predictor): the next epoch is expected
//! to write what the last one wrote, and epochs are as long as makes that most
//! true.

use flashkeel_engine::{Span, Time};

/// Nanoseconds of a minute, the unit of epochs.
pub(super) const MINUTE: u64 = 60_000_000_000;
/// Minutes of demand that are kept to choose by.
const KEPT: usize = 24 * 60;
/// A prediction that is off by more than this share is wrong; so many wrong
/// ones in a row are reason to choose the length again (review of the paper).
const WRONG: f64 = 0.25;
const WRONG_IN_A_ROW: u32 = 3;

/// Chooses the length of epochs.
#[derive(Clone)]
pub(super) struct Forecast {
    /// Lengths to choose from, in minutes, and which is chosen.
    lengths: Vec<usize>,
    chosen: usize,
    /// Bytes written in each of the latest minutes, by minute modulo [`KEPT`].
    minutes: Vec<f64>,
    /// The latest minute counted.
    latest: u64,
    /// Bytes that the next epoch is expected to write.
    pub(super) expected: f64,
    wrong: u32,
    has_chosen: bool,
}

impl Forecast {
    pub fn new(lengths: &[Span]) -> Self {
        Forecast {
            lengths: lengths.iter().map(|length| (length.0 / MINUTE) as usize).collect(),
            chosen: 0,
            minutes: vec![0.0; KEPT],
            latest: 0,
            expected: f64::NAN,
            wrong: 0,
            has_chosen: false,
        }
    }

    pub fn epoch(&self) -> Span {
        Span(self.lengths[self.chosen] as u64 * MINUTE)
    }

    pub fn count(&mut self, now: Time, bytes: f64) {
        let minute = now.0 / MINUTE;
        if minute > self.latest {
            for passed in (self.latest + 1..=minute).rev().take(KEPT) {
                self.minutes[passed as usize % KEPT] = 0.0;
            }
            self.latest = minute;
        }
        self.minutes[minute as usize % KEPT] += bytes;
    }

    /// As [`count`](Self::count), for bytes written evenly over a stretch.
    pub fn spread(&mut self, from: Time, until: Time, bytes: f64) {
        let per_ns = bytes / until.since(from).0.max(1) as f64;
        let mut begin = from.0;
        while begin / MINUTE < until.0 / MINUTE {
            let end = (begin / MINUTE + 1) * MINUTE;
            self.count(Time(begin), per_ns * (end - begin) as f64);
            begin = end;
        }
        self.count(Time(begin), per_ns * (until.0.max(from.0 + 1) - begin) as f64);
    }

    /// An epoch ended at `now` in which `written` bytes were written.
    pub fn close(&mut self, written: f64, now: Time) {
        // Minutes that nothing was written in have not been counted.
        self.count(Time(now.0 - 1), 0.0);
        let is_wrong = (written - self.expected).abs() > WRONG * self.expected;
        self.wrong = if is_wrong { self.wrong + 1 } else { 0 };
        self.expected = written;
        let is_known = now.0 / MINUTE >= KEPT as u64;
        if is_known && (self.wrong >= WRONG_IN_A_ROW || !self.has_chosen) {
            self.choose(now);
        }
    }

    /// Takes the length with the smallest mean difference between successive
    /// demands, as a share of the former.
    fn choose(&mut self, now: Time) {
        let end = (now.0 / MINUTE) as usize;
        let difference = |&length: &usize| {
            let demand = |epoch: usize| -> f64 {
                let first = end - epoch * length;
                (first - length..first).map(|minute| self.minutes[minute % KEPT]).sum()
            };
            let pairs = KEPT / length - 1;
            let off = |epoch| {
                let (before, after) = (demand(epoch + 1), demand(epoch));
                if before == after { 0.0 } else { (after - before).abs() / before.max(after * 1e-6) }
            };
            (0..pairs).map(off).sum::<f64>() / pairs as f64
        };
        let differences: Vec<f64> = self.lengths.iter().map(difference).collect();
        let least = |best: usize, index: usize| {
            if differences[index] < differences[best] { index } else { best }
        };
        let best = (0..differences.len()).fold(self.chosen, least);
        if best != self.chosen {
            self.expected = f64::NAN;
        }
        (self.chosen, self.wrong, self.has_chosen) = (best, 0, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_without_writes_are_not_those_of_the_day_before() {
        let mut forecast = Forecast::new(&[Span(30 * MINUTE)]);
        (0..60).for_each(|minute| forecast.count(Time(minute * MINUTE), 1e6));
        forecast.close(0.0, Time((KEPT as u64 + 60) * MINUTE));
        assert!(forecast.minutes.iter().all(|&bytes| bytes == 0.0));
    }
}
