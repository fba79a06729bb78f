//! The interval distribution of garbage collection, counted in flushes.

/// Longest interval told apart.
const LONGEST: usize = 1_024;
/// Intervals remembered before older ones begin to fade.
const MEMORY: u32 = 64;
/// Fewest intervals that tell anything.
const FEWEST: u32 = 4;

/// How many flushes lay between collections.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    counts: Vec<u16>,
    total: u32,
    /// Whether a collection after so many flushes is likelier than not.
    expected: Vec<bool>,
}

impl Intervals {
    pub fn new() -> Self {
        Intervals { counts: vec![0; LONGEST], total: 0, expected: vec![false; LONGEST] }
    }

    /// Whether the flush that is number `since` since the last collection is
    /// expected to collect.
    #[inline]
    pub fn expects(&self, since: u32) -> bool {
        self.expected[(since as usize).min(LONGEST - 1)]
    }

    /// A collection came after `since` flushes.
    pub fn note(&mut self, since: u32) {
        if self.total == MEMORY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().map(|&count| u32::from(count)).sum();
        }
        self.counts[(since as usize).min(LONGEST - 1)] += 1;
        self.total += 1;
        let mut left = self.total;
        for (count, expected) in self.counts.iter().zip(&mut self.expected) {
            *expected = left >= FEWEST && u32::from(*count) * 2 > left;
            left -= u32::from(*count);
        }
    }

    /// Forgets all of it: the drive is used in another way now.
    pub fn reset(&mut self) {
        *self = Intervals::new();
    }
}
