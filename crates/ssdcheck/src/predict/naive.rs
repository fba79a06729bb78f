//! How good it would be to go by the last latency of an operation, or by the mean of late ones,
//! and by nothing else.

use super::signals::{LASTS, MOST_MEANS};

/// Above all steps.
pub(super) const NEVER: usize = usize::MAX;

/// Slow requests, and normal ones.
type Counts = [f32; 2];

/// What became of requests, by steps of either.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    lasts: [Counts; LASTS],
    means: [Counts; MOST_MEANS],
}

impl Naive {
    pub fn new() -> Naive {
        Naive { lasts: [[0.0; 2]; LASTS], means: [[0.0; 2]; MOST_MEANS] }
    }

    /// Notes what became of a request at these steps, as if it had come so many times.
    #[inline]
    pub fn note(&mut self, [last, mean]: [usize; 2], is_slow: bool, times: f32) {
        self.lasts[last][usize::from(!is_slow)] += times;
        self.means[mean][usize::from(!is_slow)] += times;
    }

    /// This part remains of what has been seen.
    pub fn fade(&mut self, remains: f32) {
        self.lasts.iter_mut().chain(&mut self.means).flatten().for_each(|count| *count *= remains);
    }

    /// The greatest harmonic mean of recall and precision that either would have had, and the
    /// steps from which on it calls slow, none by the other.
    pub fn best(&self) -> (f32, [usize; 2]) {
        let [(by_last, last), (by_mean, mean)] = [best(&self.lasts), best(&self.means)];
        if by_last > by_mean { (by_last, [last, NEVER]) } else { (by_mean, [NEVER, mean]) }
    }
}

fn best(counts: &[Counts]) -> (f32, usize) {
    let slow: f32 = counts.iter().map(|&[slow, _]| slow).sum();
    let (mut found, mut missed, mut best) = (0.0, 0.0, (0.0, NEVER));
    for (step, &[slow_here, normal_here]) in counts.iter().enumerate().rev() {
        (found, missed) = (found + slow_here, missed + normal_here);
        // Where none is found the mean falls.
        if slow_here > 0.0 {
            let mean = 2.0 * found / (slow + found + missed).max(1.0);
            if mean > best.0 {
                best = (mean, step);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_of_the_two_counts_at_its_best() {
        let mut naive = Naive::new();
        assert_eq!(naive.best(), (0.0, [NEVER; 2]));
        for number in 0..100 {
            // The last latency tells all of it but one in ten, the mean nothing.
            let is_slow = number % 5 == 0;
            let last = if is_slow != (number % 10 == 5) { 12 } else { 3 };
            naive.note([last, 7], is_slow, 1.0);
        }
        let (found, called) = (10.0, 10.0);
        assert!((naive.best().0 - 2.0 * found / (20.0 + called)).abs() < 0.01, "{:?}", naive.best());
        assert_eq!(naive.best().1, [12, NEVER]);
        naive.fade(0.5);
        assert!((naive.best().0 - 2.0 * found / (20.0 + called)).abs() < 0.01);
    }
}
