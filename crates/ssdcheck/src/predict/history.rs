//! What became of requests in like circumstances: the probability of being
//! slow, learnt as the drive is used.

use serde::{Deserialize, Serialize};

use super::mixer::stretch;

/// Outcomes remembered by each entry before older ones begin to fade.
const MEMORY: u16 = 1_024;
/// Most outcomes that are kept of an entry: it will be used in another way, and has to learn that.
const KEPT: u16 = 32;
/// Outcomes that an entry is taken to have seen before it has seen any.
const PRIOR: f32 = 3.0;

/// Slow requests and all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    slow: u16,
    all: u16,
}

/// An entry, how many slow requests it has seen, and how many in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted(u32, u16, u16);

/// A table of entries, by circumstances.
#[derive(Clone, Debug)]
pub(super) struct History {
    entries: Vec<Entry>,
}

impl History {
    pub fn new(circumstances: usize) -> Self {
        History { entries: vec![Entry::default(); circumstances] }
    }

    /// Whether the probability of being slow is above `call`, where `prior` is
    /// thought without history.
    #[inline]
    pub fn exceeds(&self, index: usize, prior: f32, call: f32) -> bool {
        let Entry { slow, all } = self.entries[index];
        f32::from(slow) + PRIOR * prior > call * (f32::from(all) + PRIOR)
    }

    /// The probability of being slow, where `prior` is thought without history.
    #[inline]
    pub fn probability(&self, index: usize, prior: f32) -> f32 {
        let Entry { slow, all } = self.entries[index];
        (f32::from(slow) + PRIOR * prior) / (f32::from(all) + PRIOR)
    }

    /// The logarithm of the odds of being slow, base 2, where `prior` is thought without history.
    #[inline]
    pub fn odds(&self, index: usize, prior: f32) -> f32 {
        let Entry { slow, all } = self.entries[index];
        let [slow, all] = [slow, all].map(f32::from);
        stretch(slow + PRIOR * prior, all - slow + PRIOR * (1.0 - prior))
    }

    /// What the entries have seen that have seen anything.
    pub fn noted(&self) -> Vec<Noted> {
        let seen = self.entries.iter().enumerate().filter(|(_, entry)| entry.all > 0);
        let noted = |(index, &Entry { slow, all }): (usize, &Entry)| {
            let times = all.div_ceil(KEPT);
            Noted(index as u32, slow / times, all / times)
        };
        seen.map(noted).collect()
    }

    /// Whether a table of so many entries can have seen that.
    pub fn holds(noted: &[Noted], entries: usize) -> bool {
        noted.iter().all(|&Noted(index, slow, all)| {
            (index as usize) < entries && slow <= all && (1..=KEPT).contains(&all)
        })
    }

    /// Takes over what another table has seen.
    pub fn recall(&mut self, noted: &[Noted]) {
        for &Noted(index, slow, all) in noted {
            self.entries[index as usize] = Entry { slow, all };
        }
    }

    /// Notes an outcome.
    #[inline]
    pub fn note(&mut self, index: usize, is_slow: bool) {
        let entry = &mut self.entries[index];
        if entry.all == MEMORY {
            entry.all /= 2;
            entry.slow /= 2;
        }
        entry.all += 1;
        entry.slow += u16::from(is_slow);
    }
}

/// A time on a scale of quarter octaves from 64 us on: 0 below that, and
/// `steps - 1` at most.
#[inline]
pub(super) fn quarter_octaves(ns: u64, steps: usize) -> usize {
    let octave = 63 - (ns | 1).leading_zeros();
    if octave < 16 {
        return 0;
    }
    let quarter = (ns >> (octave - 2) & 3) as usize;
    (1 + (octave as usize - 16) * 4 + quarter).min(steps - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_learn_and_forget() {
        let mut history = History::new(2);
        assert!(history.exceeds(0, 0.5, 0.49) && !history.exceeds(0, 0.5, 0.51));
        (0..5_000).for_each(|_| history.note(0, true));
        assert!(history.exceeds(0, 0.0, 0.98));
        (0..3_000).for_each(|_| history.note(0, false));
        assert!(!history.exceeds(0, 0.0, 0.1));
        assert!(history.exceeds(1, 0.5, 0.49) && !history.exceeds(1, 0.5, 0.51), "others learn nothing");
    }

    #[test]
    fn the_scale_rises_by_quarter_octaves() {
        assert_eq!(quarter_octaves(0, 40), 0);
        assert_eq!(quarter_octaves(65_535, 40), 0);
        assert_eq!(quarter_octaves(65_536, 40), 1);
        assert_eq!(quarter_octaves(131_072, 40), 5);
        assert_eq!(quarter_octaves(131_072 + 32_768, 40), 6);
        assert_eq!(quarter_octaves(u64::MAX, 40), 39);
    }
}
