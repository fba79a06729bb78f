//! What became of requests in like circumstances: the probability of being
//! slow, learnt as the drive is used.

use serde::{Deserialize, Serialize};

/// Outcomes remembered by each entry before older ones begin to fade.
const MEMORY: u16 = 1_024;
/// Most outcomes that are kept of an entry: it will be used in another way, and has to learn that.
const KEPT: u16 = 32;
/// Outcomes that an entry is taken to have seen before it has seen any.
pub(super) const PRIOR: f32 = 3.0;

/// Slow requests in the lower half, all of them in the upper.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry(u32);

impl Entry {
    fn new(slow: u16, all: u16) -> Entry {
        Entry(u32::from(all) << 16 | u32::from(slow))
    }

    /// Slow requests and normal ones.
    #[inline]
    pub fn counts(self) -> (f32, f32) {
        let slow = (self.0 & 0xffff) as i32;
        // A signed number is what processors convert, several at once.
        (slow as f32, ((self.0 >> 16) as i32 - slow) as f32)
    }

    #[inline]
    fn all(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[inline]
    fn slow(self) -> u16 {
        self.0 as u16
    }
}

/// An entry, how many slow requests it has seen, and how many in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted(u32, u16, u16);

/// A table of entries, by circumstances.
#[derive(Clone, Debug)]
pub(super) struct History<const ENTRIES: usize> {
    entries: Box<[Entry; ENTRIES]>,
}

impl<const ENTRIES: usize> History<ENTRIES> {
    pub fn new() -> Self {
        let entries = vec![Entry::default(); ENTRIES].into_boxed_slice();
        History { entries: entries.try_into().expect("so many were made") }
    }

    /// What an entry has seen.
    #[inline]
    pub fn entry(&self, index: usize) -> Entry {
        self.entries[index]
    }

    /// The probability of being slow, where `prior` is thought without history.
    #[inline]
    pub fn probability(&self, index: usize, prior: f32) -> f32 {
        let (slow, normal) = self.entries[index].counts();
        (slow + PRIOR * prior) / (slow + normal + PRIOR)
    }

    /// What the entries have seen that have seen anything.
    pub fn noted(&self) -> Vec<Noted> {
        let seen = self.entries.iter().enumerate().filter(|(_, entry)| entry.all() > 0);
        let noted = |(index, entry): (usize, &Entry)| {
            let times = entry.all().div_ceil(KEPT);
            Noted(index as u32, entry.slow() / times, entry.all() / times)
        };
        seen.map(noted).collect()
    }

    /// Whether a table of so many entries can have seen that.
    pub fn holds(noted: &[Noted]) -> bool {
        noted.iter().all(|&Noted(index, slow, all)| {
            (index as usize) < ENTRIES && slow <= all && (1..=KEPT).contains(&all)
        })
    }

    /// Takes over what another table has seen.
    pub fn recall(&mut self, noted: &[Noted]) {
        for &Noted(index, slow, all) in noted {
            self.entries[index as usize] = Entry::new(slow, all);
        }
    }

    /// Notes an outcome.
    #[inline]
    pub fn note(&mut self, index: usize, is_slow: bool) {
        let entry = &mut self.entries[index];
        if entry.all() == MEMORY {
            *entry = Entry::new(entry.slow() / 2, MEMORY / 2);
        }
        entry.0 += 1 << 16 | u32::from(is_slow);
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
        let mut history = History::<2>::new();
        assert_eq!(history.probability(0, 0.5), 0.5);
        (0..5_000).for_each(|_| history.note(0, true));
        assert!(history.probability(0, 0.0) > 0.98);
        (0..3_000).for_each(|_| history.note(0, false));
        assert!(history.probability(0, 0.0) < 0.1);
        assert_eq!(history.probability(1, 0.5), 0.5, "others learn nothing");
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
