//! From which probability on a request is called slow.

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use serde::{Deserialize, Serialize};

use super::mixer::fixed;
use super::naive::{NEVER, Naive};

/// Steps of the root of a probability up to one half, and from there on of that of its complement:
/// finer where slow requests are rare, and where nearly all are.
const STEPS: usize = 191;
const WIDTH: f32 = SQRT_2 / STEPS as f32;
/// Outcomes after which the least probability is looked for again, and what remains then of
/// those before.
const ROUND: f32 = 512.0;
const REMAINS: f32 = 0.94;
/// What is called before anything is known.
const FIRST: f32 = 0.4;
/// Part of the normal requests that may be called slow in any case: the paper's drives have
/// 1.0 to 0.3 % (§V-B). Below the second step, a probability of 0.08, a call is no help even so.
const FALSE_CALLS: f32 = 0.0085;
const LEAST_STEP: usize = 39;
/// False calls that may be saved up, beyond those of a round; of what is afforded so much is
/// spent where none are.
const SAVED: f32 = 4.0;
const SPENT: f32 = 0.5;
/// More than any probability.
const NONE: f32 = 2.0;
/// By how much more a naive way has to reach, to be gone by.
const MARGIN: f32 = 0.01;

/// Bound of what is taken from a file.
const MOST: f32 = 1e9;

/// What became of requests, by steps of the probability that they were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Called {
    slow: Vec<f32>,
    normal: Vec<f32>,
}

/// What became of requests, by the probability that they were given.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    slow: [f32; STEPS],
    normal: [f32; STEPS],
    left: f32,
    most_false: Option<f32>,
    /// False calls that are afforded as yet, and the least probability where any is.
    saved: f32,
    afforded: f32,
    /// What going by latencies alone would have come to: not kept with a model, being found again soon.
    naive: Naive,
    /// The least probability that is called slow, and the least steps by which the naive ways do.
    least: f32,
    naive_least: [usize; 2],
    /// Whether it is gone by the latter.
    is_naive: bool,
}

impl Calls {
    /// With `most_false`, at no time a greater part of the normal requests has been called slow, but for
    /// those called at once. Without, as
    /// many as give the greatest harmonic mean of recall and precision, or [`FALSE_CALLS`] if
    /// that mean is no less than by a naive way; where it always is, slow is what that way calls so.
    pub fn new(most_false: Option<f32>) -> Calls {
        let (slow, normal) = ([0.0; STEPS], [0.0; STEPS]);
        Calls {
            slow,
            normal,
            left: ROUND,
            most_false,
            saved: 0.0,
            afforded: FIRST,
            naive: Naive::new(),
            least: if most_false.is_some() { NONE } else { FIRST },
            naive_least: [NEVER; 2],
            is_naive: false,
        }
    }

    /// Whether a request is called slow; `latencies` is where the naive ways put it, who know
    /// nothing of requests that go before it.
    #[inline]
    pub fn calls(&self, probability: f32, latencies: Option<[usize; 2]>) -> bool {
        match latencies {
            Some([last, mean]) if self.is_naive => last >= self.naive_least[0] || mean >= self.naive_least[1],
            _ => probability >= self.least,
        }
    }

    /// What became of requests.
    pub fn noted(&self) -> Called {
        Called { slow: self.slow.to_vec(), normal: self.normal.to_vec() }
    }

    /// Whether that can have become of them.
    pub fn holds(called: &Called) -> bool {
        let is_right =
            |counts: &[f32]| counts.len() == STEPS && counts.iter().all(|count| (0.0..MOST).contains(count));
        is_right(&called.slow) && is_right(&called.normal)
    }

    /// Takes over what became of others.
    pub fn recall(&mut self, called: &Called) {
        self.slow.copy_from_slice(&called.slow);
        self.normal.copy_from_slice(&called.normal);
        // After fewer whoever saved them had not looked either.
        if self.slow.iter().chain(&self.normal).sum::<f32>() >= ROUND * REMAINS {
            self.look();
        }
    }

    /// Notes what became of a request that was given this probability, as if it had come so many
    /// times, and was called slow or not; `latencies` is where the naive ways put it.
    #[inline]
    pub fn note(
        &mut self,
        probability: f32,
        is_called: bool,
        latencies: [usize; 2],
        is_slow: bool,
        times: f32,
    ) {
        let step = step(probability);
        let counts = if is_slow { &mut self.slow } else { &mut self.normal };
        counts[step] += times;
        self.naive.note(latencies, is_slow, times);
        if let Some(most) = self.most_false
            && !is_slow
        {
            let cost = if is_called { times } else { 0.0 };
            self.saved = (self.saved + most * times - cost).min(SAVED + most * ROUND);
            self.least = if self.saved >= 1.0 { self.afforded } else { NONE };
        }
        self.left -= times;
        if self.left <= 0.0 {
            self.left = ROUND;
            self.look();
            self.naive.fade(REMAINS);
            for counts in [&mut self.slow, &mut self.normal] {
                counts.iter_mut().for_each(|count| *count *= REMAINS);
            }
        }
    }

    /// Looks for the least probability.
    #[cold]
    fn look(&mut self) {
        let [slow, normal] = [&self.slow, &self.normal].map(|counts| counts.iter().sum::<f32>());
        let most = match self.most_false {
            Some(most) => {
                most * normal * (SPENT + (1.0 - SPENT) * self.saved.max(0.0) / (SAVED + most * ROUND))
            }
            None => FALSE_CALLS * normal,
        };
        let mean = |found: f32, missed: f32| 2.0 * found / (slow + found + missed).max(1.0);
        let steps = || self.slow.iter().zip(&self.normal).enumerate().rev();
        let (mut afforded, mut found, mut missed) = (STEPS, 0.0, 0.0);
        for (step, (&slow_here, &normal_here)) in steps().take(STEPS - LEAST_STEP) {
            if missed + normal_here > most {
                break;
            }
            (afforded, found, missed) = (step, found + slow_here, missed + normal_here);
        }
        let afforded_mean = mean(found, missed);
        let (mut balanced, mut best, mut found, mut missed) = (STEPS, 0.0, 0.0, 0.0);
        for (step, (&slow_here, &normal_here)) in steps() {
            found += slow_here;
            missed += normal_here;
            // Where none is found the mean falls.
            if slow_here > 0.0 {
                let here = mean(found, missed);
                if here > best {
                    (best, balanced) = (here, step);
                }
            }
        }
        let [afforded, balanced] = [afforded, balanced].map(begin);
        let (naive, naive_least) = self.naive.best();
        self.naive_least = naive_least;
        self.is_naive = self.most_false.is_none() && best + MARGIN < naive;
        self.afforded = afforded;
        self.least = match self.most_false {
            Some(_) if self.saved >= 1.0 => afforded,
            Some(_) => NONE,
            None if afforded_mean < naive => balanced,
            None => afforded.min(balanced),
        };
    }
}

/// The step of a probability.
#[inline]
fn step(probability: f32) -> usize {
    let root = probability.min(1.0 - probability).max(0.0).sqrt();
    let along = if probability < 0.5 { root } else { SQRT_2 - root };
    ((fixed(along * FRAC_1_SQRT_2) as usize * STEPS) >> 16).min(STEPS - 1)
}

/// The probability at which a step begins.
fn begin(step: usize) -> f32 {
    let along = step as f32 * WIDTH;
    if along < FRAC_1_SQRT_2 { along * along } else { 1.0 - (SQRT_2 - along).powi(2) }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    /// Outcomes of requests that are slow as often as they are thought to be: one in ten is
    /// given 0.5, one in a hundred 0.9, the others 0.01.
    fn calls(most_false: Option<f32>) -> Calls {
        let mut calls = Calls::new(most_false);
        for number in 0..20_000 {
            match number % 100 {
                0 => calls.note(0.9, false, [0; 2], number / 100 % 10 != 0, 1.0),
                1..=10 => calls.note(0.5, false, [0; 2], number / 100 % 2 == 0, 1.0),
                _ => calls.note(0.01, false, [0; 2], number / 100 % 100 == 0, 1.0),
            }
        }
        calls
    }

    #[test]
    fn who_affords_no_false_calls_hears_of_the_surest_only() {
        assert!((0.5..0.9).contains(&calls(Some(0.01)).least));
        assert!((0.08..0.5).contains(&calls(Some(0.2)).least));
        assert!((0.08..0.5).contains(&calls(None).least), "both halves of the mean gain by it");
        assert!(calls(Some(0.0)).least > 0.9, "none");
    }

    /// Once the surest were all of one step: where it held more normal requests than were afforded,
    /// none was called.
    #[test]
    fn among_the_surest_those_that_are_afforded_are_told_from_others() {
        let mut calls = Calls::new(Some(0.004));
        for number in 0..40_000 {
            // Most are surely slow; of those that are not quite, one in a hundred is normal.
            match number % 10 {
                0..4 => calls.note(0.999, false, [0; 2], number % 1_000 != 0, 1.0),
                4..6 => calls.note(0.99, false, [0; 2], number / 10 % 50 != 0, 1.0),
                _ => calls.note(0.01, false, [0; 2], false, 1.0),
            }
        }
        assert!(calls.calls(0.999, None) && !calls.calls(0.99, None), "{}", calls.least);
    }

    /// Once a third more were called than were afforded: what had been called least of late was taken
    /// for what is.
    #[test]
    fn no_more_false_calls_are_made_than_are_afforded() {
        for seed in 0..8 {
            for most in [0.0005, 0.002, 0.02] {
                let mut random = Stream::new(seed, "calls");
                let mut calls = Calls::new(Some(most));
                let (mut normal, mut wrong, mut right, mut slow) = (0.0, 0.0, 0, 0);
                for _ in 0..200_000 {
                    let probability = 1.0 - (random.unit() as f32).powi(2);
                    let is_slow = random.chance(f64::from(probability));
                    let is_called = calls.calls(probability, None);
                    normal += f32::from(u8::from(!is_slow));
                    wrong += f32::from(u8::from(is_called && !is_slow));
                    right += u32::from(is_called && is_slow);
                    slow += u32::from(is_slow);
                    calls.note(probability, is_called, [0; 2], is_slow, 1.0);
                }
                assert!(wrong <= most * normal, "seed {seed}: {wrong} of {normal} for {most}");
                assert!(wrong >= 0.5 * most * normal, "seed {seed}: {wrong} of {normal} for {most}");
                assert!(right > 0 && slow > right);
            }
        }
    }

    #[test]
    fn steps_are_finer_at_both_ends() {
        for at in 0..STEPS {
            assert_eq!(step(begin(at).midpoint(begin(at + 1))), at);
        }
        assert_eq!((step(0.0), step(1.0)), (0, STEPS - 1));
    }

    #[test]
    fn where_going_by_latencies_alone_reaches_more_that_is_done() {
        let mut calls = Calls::new(None);
        for number in 0..20_000 {
            // The last latency tells all, the probability next to nothing.
            let is_slow = number % 50 == 0;
            let probability = if number % 7 == 0 { 0.03 } else { 0.02 };
            calls.note(probability, false, [if is_slow { 12 } else { 3 }, 7], is_slow, 1.0);
        }
        assert!(calls.calls(0.02, Some([12, 7])) && !calls.calls(0.9, Some([3, 7])));
        assert!(calls.calls(0.9, None), "behind others it is told by probability");
        let mut calls = Calls::new(Some(0.01));
        (0..20_000).for_each(|number| calls.note(0.02, false, [12, 7], number % 50 == 0, 1.0));
        assert!(!calls.calls(0.02, Some([12, 7])), "who says what is afforded is told by probability");
    }

    #[test]
    fn false_calls_that_are_always_afforded_are_not_made_where_latencies_alone_reach_more() {
        let least = |last_tells: bool| {
            let mut calls = Calls::new(None);
            for number in 0..40_000 {
                // One in a hundred is slow and known to be, but for one in five of them.
                let (is_slow, is_known) = (number % 100 == 0, number % 500 != 0);
                let probability = match number % 200 {
                    _ if is_slow && is_known => 0.9,
                    7 => 0.5,
                    _ => 0.1,
                };
                let last = if is_slow && last_tells && number % 400 != 0 { 12 } else { 3 };
                calls.note(probability, false, [last, 7], is_slow, 1.0);
            }
            calls.least
        };
        assert!(least(false) < 0.6, "{}", least(false));
        assert!(least(true) > 0.8, "{}", least(true));
    }
}
