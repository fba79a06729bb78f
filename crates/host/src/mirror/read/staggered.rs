//! `staggered`: a copy that is neither predicted to be slow nor late with a read, of copies
//! that do not write their buffers out together.
//!
//! Copies of one kind are written the same, so their buffers are full at the same time, and
//! then none is quick, whichever is asked. Where the predictor says that two are nearly as
//! full as one another, the fuller one gets pages again that all have got, until it is ahead.

use flashkeel_engine::{Completion, LOGICAL_PAGE_SECTORS, Predictor, Request, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::monitor::{Monitor, Watcher};
use super::{Build, Copies, Ended, Reader, least};
use crate::mirror::{MOST, each};

/// Settings of `staggered`; who predicts is `predictor` of the mirror.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Staggered {
    /// Share of the pages written that may be written again, above 0 and at most 1.
    pub again: f64,
}

impl Default for Staggered {
    /// Ours. What is used of it is far less: once apart, copies stay so.
    fn default() -> Self {
        Staggered { again: 0.01 }
    }
}

impl Build for Staggered {
    fn build(&self, predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        let watcher = Watcher::new(&Monitor::default());
        Box::new(Apart { predictors, watcher, last: MOST - 1, again: self.again, allowed: 0.0 })
    }

    fn needs_predictor(&self) -> bool {
        true
    }

    fn writes_again(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        if self.again > 0.0 && self.again <= 1.0 {
            return Ok(());
        }
        Err(format!("again is {}; a share above 0 and at most 1", self.again))
    }
}

/// Copies are too near one another below this part of what would keep them furthest apart,
/// in quarters.
const NEAR: u32 = 3;
/// Pages that may be written again at once.
const AT_ONCE: f64 = 64.0;

#[derive(Clone)]
struct Apart {
    /// Of each copy.
    predictors: Vec<Box<dyn Predictor>>,
    /// Sees which are late.
    watcher: Watcher,
    last: usize,
    again: f64,
    /// Pages that may be written again now.
    allowed: f64,
}

impl Apart {
    /// Of two copies that are too near one another, the one that is ahead, and by how many
    /// pages it should be more.
    fn too_near(&self, write: &Request, copies: u8) -> Option<(usize, u32)> {
        let filling = |copy: usize| Some((copy, self.predictors[copy].filling(write)?));
        each(copies).filter_map(filling).find_map(|(copy, filled)| {
            let wanted = filled.of * NEAR / (4 * copies.count_ones());
            let others = each(copies & !(1 << copy)).filter_map(filling);
            others.filter(|(_, behind)| behind.of == filled.of).find_map(|(other, behind)| {
                let ahead = (filled.pages + filled.of - behind.pages) % filled.of;
                let short = wanted.saturating_sub(ahead);
                // Of two that are as full, the later moves.
                (short > 0 && (ahead > 0 || copy > other)).then_some((copy, short))
            })
        })
    }
}

impl Reader for Apart {
    fn choose(&mut self, now: Time, read: &Request, copies: &Copies<'_>) -> usize {
        let (predictors, watcher) = (&mut self.predictors, &self.watcher);
        self.last = least(copies, self.last, |copy| {
            let is_late = watcher.is_overdue(now, copy);
            let prediction = predictors[copy].predict(now, &[], read);
            let latency = if prediction.is_slow { prediction.latency } else { Span::ZERO };
            (prediction.is_slow || is_late, is_late, latency, copies.queued[copy])
        });
        self.last
    }

    fn submitted(&mut self, now: Time, copy: usize, request: &Request) {
        self.watcher.submitted(now, copy, request);
        self.predictors[copy].submitted(now, request);
    }

    fn completed(&mut self, now: Time, ended: &Ended, completion: &Completion) {
        self.watcher.completed(now, ended, completion);
        self.predictors[ended.copy].observe(now, completion);
    }

    fn again(&mut self, write: &Request, present: u8) -> Option<(usize, u32)> {
        let pages = (u64::from(write.sectors) / LOGICAL_PAGE_SECTORS) as u32;
        self.allowed = (self.allowed + f64::from(pages) * self.again).min(AT_ONCE);
        if self.allowed < 1.0 {
            return None;
        }
        let (copy, short) = self.too_near(write, present)?;
        let count = short.min(pages).min(self.allowed as u32);
        self.allowed -= f64::from(count);
        Some((copy, count))
    }

    fn cut_power(&mut self, now: Time) {
        self.watcher.cut_power(now);
        self.predictors.iter_mut().for_each(|predictor| predictor.cut_power(now));
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Filling, Lba, Operation, Prediction, RequestId};

    use super::*;

    /// Knows how full a buffer is, or nothing.
    #[derive(Clone)]
    struct Counter {
        pages: u32,
        of: Option<u32>,
    }

    impl Predictor for Counter {
        fn predict(&mut self, _now: Time, _ahead: &[Request], _request: &Request) -> Prediction {
            Prediction { latency: Span::ZERO, chance: 0.0, is_slow: false }
        }

        fn filling(&self, _write: &Request) -> Option<Filling> {
            self.of.map(|of| Filling { pages: self.pages % of, of })
        }

        fn submitted(&mut self, _now: Time, request: &Request) {
            self.pages += request.sectors / 8;
        }

        fn observe(&mut self, _now: Time, _completion: &Completion) {}

        fn cut_power(&mut self, _now: Time) {}
    }

    /// Pages that each copy got again in so many writes of two pages, and how full each is.
    fn written_again(filled: &[u32], of: Option<u32>, again: f64, writes: u32) -> (Vec<u32>, Vec<u32>) {
        let predictors = filled.iter().map(|&pages| Box::new(Counter { pages, of }) as Box<dyn Predictor>);
        let mut reader = Staggered { again }.build(predictors.collect());
        let mut got = vec![0; filled.len()];
        for number in 0..writes {
            let write = Request::new(RequestId(u64::from(number)), Operation::Write, Lba(0), 16);
            (0..filled.len()).for_each(|copy| reader.submitted(Time(1), copy, &write));
            if let Some((copy, pages)) = reader.again(&write, ((1u16 << filled.len()) - 1) as u8) {
                got[copy] += pages;
                let once_more = Request { sectors: 8 * pages, ..write };
                reader.submitted(Time(1), copy, &once_more);
            }
        }
        let full = filled.iter().zip(&got).map(|(filled, got)| (filled + 2 * writes + got) % 64);
        let full = full.collect();
        (got, full)
    }

    #[test]
    fn copies_that_are_as_full_part_once_and_stay_apart() {
        assert_eq!(written_again(&[5, 5], Some(64), 1.0, 500).0, [0, 24]);
        // The fuller one goes on, across the end of the buffer too.
        assert_eq!(written_again(&[13, 5], Some(64), 1.0, 500).0, [16, 0]);
        assert_eq!(written_again(&[2, 60], Some(64), 1.0, 500).0, [18, 0]);
        assert_eq!(written_again(&[0, 32], Some(64), 1.0, 500).0, [0, 0]);
        for copies in 2..=8 {
            let (got, mut full) = written_again(&vec![7; copies], Some(64), 1.0, 2000);
            full.sort_unstable();
            let wanted = 64 * NEAR / (4 * copies as u32);
            assert!(full.windows(2).all(|pair| pair[1] - pair[0] >= wanted), "{full:?}");
            assert!(64 - (full[copies - 1] - full[0]) >= wanted, "{full:?}");
            assert!(got.iter().sum::<u32>() <= 64 * copies as u32, "{got:?}");
        }
    }

    #[test]
    fn nothing_is_written_again_that_is_not_allowed_or_of_use() {
        assert_eq!(written_again(&[5, 5], None, 1.0, 500).0, [0, 0]);
        assert_eq!(written_again(&[5, 5], Some(64), 0.01, 499).0, [0, 9]);
        assert!(Staggered { again: 0.0 }.validate().is_err() && Staggered { again: 1.5 }.validate().is_err());
        assert!(Staggered { again: f64::NAN }.validate().is_err());
    }
}
