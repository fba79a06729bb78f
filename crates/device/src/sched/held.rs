//! Chips that the policy holds back.

use std::ops::Range;

use super::Task;

/// Which chips have a free slot and something pending that the policy does
/// not let go, and whose it is.
#[derive(Clone)]
pub(super) struct Held {
    /// By task, 64 chips to a word, so that chips where nothing can have changed
    /// cost nothing to pass over.
    chips: Vec<[u64; Task::COUNT]>,
    /// Each partition's chip whose turn it is.
    cursors: Vec<usize>,
    chips_per_partition: usize,
}

impl Held {
    /// Nothing held at any of `chips` chips, of which each of `partitions` has as many.
    pub fn new(chips: usize, partitions: usize) -> Self {
        let chips_per_partition = chips / partitions;
        Held {
            chips: vec![[0; Task::COUNT]; chips.div_ceil(64)],
            cursors: (0..partitions).map(|partition| partition * chips_per_partition).collect(),
            chips_per_partition,
        }
    }

    /// A partition's chips in rotation: from the one whose turn it is on, and those before.
    #[inline]
    pub fn in_turn(&self, partition: u32) -> [Range<usize>; 2] {
        let (first, cursor) = (self.first(partition), self.cursors[partition as usize]);
        [cursor..first + self.chips_per_partition, first..cursor]
    }

    /// The turn passes on from a partition's `chip`.
    #[inline]
    pub fn pass(&mut self, partition: u32, chip: usize) {
        let first = self.first(partition);
        let is_last = chip + 1 == first + self.chips_per_partition;
        self.cursors[partition as usize] = if is_last { first } else { chip + 1 };
    }

    #[inline]
    fn first(&self, partition: u32) -> usize {
        partition as usize * self.chips_per_partition
    }

    /// Notes that `tasks` are held at `chip`, and no others any more.
    #[cold]
    pub fn set(&mut self, chip: usize, tasks: u32) {
        for (task, word) in self.chips[chip / 64].iter_mut().enumerate() {
            let bit = u64::from(tasks >> task & 1);
            *word = *word & !(1 << (chip % 64)) | bit << (chip % 64);
        }
    }

    /// The first of `chips` at which one of `tasks` is held.
    #[inline]
    pub fn next(&self, chips: Range<usize>, tasks: u32) -> Option<usize> {
        let mut at = chips.start;
        while at < chips.end {
            let words = self.chips[at / 64].iter().enumerate();
            let chosen = words.map(|(task, &word)| if tasks >> task & 1 == 1 { word } else { 0 });
            let word = chosen.fold(0, |all, word| all | word) >> (at % 64);
            if word != 0 {
                let chip = at + word.trailing_zeros() as usize;
                return (chip < chips.end).then_some(chip);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_found_by_task_in_order_across_words() {
        let mut held = Held::new(200, 1);
        let (host, gc) = (1 << Task::Host as u32, 1 << Task::Gc as u32);
        for (chip, tasks) in [(3, host), (63, gc), (64, host | gc), (199, gc)] {
            held.set(chip, tasks);
        }
        let found = |held: &Held, tasks| {
            let mut chips = Vec::new();
            while let Some(chip) = held.next(chips.last().map_or(0, |chip| chip + 1)..200, tasks) {
                chips.push(chip);
            }
            chips
        };
        assert_eq!(found(&held, gc), [63, 64, 199]);
        assert_eq!(found(&held, host), [3, 64]);
        held.set(64, host);
        assert_eq!(found(&held, gc), [63, 199]);
        assert_eq!(held.next(0..3, host | gc), None);
        assert_eq!(held.next(4..63, host | gc), None);
    }

    #[test]
    fn each_partition_has_a_turn_of_its_own() {
        let mut held = Held::new(12, 3);
        held.pass(1, 5);
        held.pass(2, 10);
        assert_eq!(held.in_turn(0), [0..4, 0..0]);
        assert_eq!(held.in_turn(1), [6..8, 4..6]);
        assert_eq!(held.in_turn(2), [11..12, 8..11]);
        held.pass(2, 11);
        assert_eq!(held.in_turn(2), [8..12, 8..8]);
    }
}
