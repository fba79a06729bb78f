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

    /// The probability of being slow, where `prior` is thought without history.
    #[inline]
    pub fn probability(self, prior: f32) -> f32 {
        let (slow, normal) = self.counts();
        (slow + PRIOR * prior) / (slow + normal + PRIOR)
    }

    /// Forgets half of it.
    #[cold]
    fn fade(&mut self) {
        *self = Entry::new(self.slow() / 2, self.all() / 2);
    }

    #[inline]
    pub fn all(self) -> u16 {
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

impl Noted {
    /// Which entry it is.
    pub fn index(&self) -> u32 {
        self.0
    }
}

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
        self.entries[index].probability(prior)
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

    /// Notes an outcome as if it had come so many times, a few; what the entry has seen then.
    #[inline]
    pub fn note(&mut self, index: usize, is_slow: bool, times: u32) -> Entry {
        let entry = &mut self.entries[index];
        if entry.all() >= MEMORY {
            entry.fade();
        }
        entry.0 += times << 16 | if is_slow { times } else { 0 };
        *entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_learn_and_forget() {
        let mut history = History::<2>::new();
        assert_eq!(history.probability(0, 0.5), 0.5);
        (0..5_000).for_each(|_| {
            history.note(0, true, 1);
        });
        assert!(history.probability(0, 0.0) > 0.98);
        (0..3_000).for_each(|_| {
            history.note(0, false, 1);
        });
        assert!(history.probability(0, 0.0) < 0.1);
        assert_eq!(history.probability(1, 0.5), 0.5, "others learn nothing");
    }
}
