//! Interval distributions, counted in flushes: how soon something that a flush
//! brings about comes again.

/// Longest interval told apart.
const LONGEST: usize = 1_024;
/// Intervals remembered before older ones begin to fade.
const MEMORY: u32 = 1_024;
/// What is thought of an interval that has not been seen: so many that ended
/// there, of so many.
const PRIOR: (f32, f32) = (0.1, 2.0);
/// Levels are found anew after each of the first intervals, and after so many later on.
const SOON: u32 = 16;
const ROUND: u32 = 16;
/// Probabilities that divide the levels of [`Intervals::level`].
const BOUNDS: [f32; LEVELS - 1] = [0.06, 0.2, 0.5];
/// Levels of the probability that an interval ends.
pub(super) const LEVELS: usize = 4;

/// How many flushes lay between events of one kind.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    counts: Vec<u16>,
    total: u32,
    /// One more than the longest interval that came.
    longest: usize,
    /// The level of each interval.
    levels: Vec<u8>,
}

/// What recurs on a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Recurring {
    /// Between collections.
    pub collections: Intervals,
    /// Between flushes in whose wake requests were slow for longer than a flush takes.
    pub wakes: Intervals,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals { counts: vec![0; LONGEST], total: 0, longest: 0, levels: vec![0; LONGEST] }
    }
}

impl Intervals {
    /// How likely the flush that is number `since` since the last event is to
    /// bring the next, in steps.
    #[inline]
    pub fn level(&self, since: u32) -> usize {
        usize::from(self.levels[(since as usize).min(LONGEST - 1)])
    }

    /// Whether the next event is likelier than not.
    #[inline]
    pub fn expects(&self, since: u32) -> bool {
        self.level(since) == LEVELS - 1
    }

    /// An event came after `since` flushes.
    pub fn note(&mut self, since: u32) {
        if self.total == MEMORY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().map(|&count| u32::from(count)).sum();
            self.longest = longest(&self.counts);
        }
        let since = (since as usize).min(LONGEST - 1);
        self.counts[since] += 1;
        self.longest = self.longest.max(since + 1);
        self.total += 1;
        if self.total <= SOON || self.total.is_multiple_of(ROUND) {
            self.find_levels();
        }
    }

    fn find_levels(&mut self) {
        let mut left = self.total;
        // Beyond the longest that came nothing is left, and what is presumed makes the lowest level.
        let seen = self.longest;
        self.levels[seen..].fill(0);
        for (&count, level) in self.counts[..seen].iter().zip(&mut self.levels) {
            let probability = (f32::from(count) + PRIOR.0) / (left as f32 + PRIOR.1);
            *level = BOUNDS.iter().map(|&bound| u8::from(probability > bound)).sum();
            left -= u32::from(count);
        }
    }

    /// How often each interval came, up to the longest that did.
    pub fn noted(&self) -> Vec<u16> {
        self.counts[..self.longest].to_vec()
    }

    /// Whether intervals can have come so often.
    pub fn holds(counts: &[u16]) -> bool {
        counts.len() <= LONGEST && counts.iter().map(|&count| u32::from(count)).sum::<u32>() <= MEMORY
    }

    /// Takes over how often others came.
    pub fn recall(&mut self, counts: &[u16]) {
        self.counts[..counts.len()].copy_from_slice(counts);
        self.total = counts.iter().map(|&count| u32::from(count)).sum();
        self.longest = longest(&self.counts);
        self.find_levels();
    }

    /// Forgets all of it: the drive is used in another way now.
    pub fn reset(&mut self) {
        *self = Intervals::default();
    }
}

/// One more than the longest interval that came.
fn longest(counts: &[u16]) -> usize {
    counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recurs_is_expected_and_the_rest_is_not() {
        let mut intervals = Intervals::default();
        assert!(!intervals.expects(5), "nothing is known");
        for round in 0..40 {
            intervals.note(if round % 10 == 0 { 3 } else { 5 });
        }
        assert!(intervals.expects(5) && !intervals.expects(3) && !intervals.expects(4));
        assert_eq!((intervals.level(4), intervals.level(3)), (0, 1));
        // What lasts longer than any interval falls together.
        intervals.note(5_000);
        assert!(!intervals.expects(6_000) || intervals.level(6_000) == intervals.level(5_000));
        intervals.reset();
        assert!(!intervals.expects(5));
    }
}
