//! From which probability on a request is called slow.

use serde::{Deserialize, Serialize};

use super::mixer::fixed;
use super::naive::{NEVER, Naive};

/// Steps of the root of a probability: finer where slow requests are rare.
const STEPS: usize = 128;
/// Outcomes after which the least probability is looked for again, and what remains then of
/// those before.
const ROUND: f32 = 512.0;
const REMAINS: f32 = 0.94;
/// What is called before anything is known.
const FIRST: f32 = 0.4;
/// Part of the normal requests that may be called slow in any case: the paper's drives have
/// 1.0 to 0.3 % (§V-B). Below the second step, a probability of 0.08, a call is no help even so.
const FALSE_CALLS: f32 = 0.0085;
const LEAST_STEP: usize = 37;
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
    /// What going by latencies alone would have come to: not kept with a model, being found again soon.
    naive: Naive,
    /// The least probability that is called slow, and the least steps by which the naive ways do.
    least: f32,
    naive_least: [usize; 2],
    /// Whether it is gone by the latter.
    is_naive: bool,
}

impl Calls {
    /// With `most_false`, no greater part of the normal requests is called slow. Without, as
    /// many as give the greatest harmonic mean of recall and precision, or [`FALSE_CALLS`] if
    /// that mean is no less than by a naive way; where it always is, slow is what that way calls so.
    pub fn new(most_false: Option<f32>) -> Calls {
        let (slow, normal) = ([0.0; STEPS], [0.0; STEPS]);
        Calls {
            slow,
            normal,
            left: ROUND,
            most_false,
            naive: Naive::new(),
            least: FIRST,
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
    /// times; `latencies` is where the naive ways put it.
    #[inline]
    pub fn note(&mut self, probability: f32, latencies: [usize; 2], is_slow: bool, times: f32) {
        let step = ((fixed(probability.sqrt()) as usize * STEPS) >> 16).min(STEPS - 1);
        let counts = if is_slow { &mut self.slow } else { &mut self.normal };
        counts[step] += times;
        self.naive.note(latencies, is_slow, times);
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
        let most = self.most_false.unwrap_or(FALSE_CALLS) * normal;
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
        let [afforded, balanced] = [afforded, balanced].map(|step| (step as f32 / STEPS as f32).powi(2));
        let (naive, naive_least) = self.naive.best();
        self.naive_least = naive_least;
        self.is_naive = self.most_false.is_none() && best + MARGIN < naive;
        self.least = match self.most_false {
            Some(_) => afforded,
            None if afforded_mean < naive => balanced,
            None => afforded.min(balanced),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes of requests that are slow as often as they are thought to be: one in ten is
    /// given 0.5, one in a hundred 0.9, the others 0.01.
    fn calls(most_false: Option<f32>) -> Calls {
        let mut calls = Calls::new(most_false);
        for number in 0..20_000 {
            match number % 100 {
                0 => calls.note(0.9, [0; 2], number / 100 % 10 != 0, 1.0),
                1..=10 => calls.note(0.5, [0; 2], number / 100 % 2 == 0, 1.0),
                _ => calls.note(0.01, [0; 2], number / 100 % 100 == 0, 1.0),
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

    #[test]
    fn where_going_by_latencies_alone_reaches_more_that_is_done() {
        let mut calls = Calls::new(None);
        for number in 0..20_000 {
            // The last latency tells all, the probability next to nothing.
            let is_slow = number % 50 == 0;
            let probability = if number % 7 == 0 { 0.03 } else { 0.02 };
            calls.note(probability, [if is_slow { 12 } else { 3 }, 7], is_slow, 1.0);
        }
        assert!(calls.calls(0.02, Some([12, 7])) && !calls.calls(0.9, Some([3, 7])));
        assert!(calls.calls(0.9, None), "behind others it is told by probability");
        let mut calls = Calls::new(Some(0.01));
        (0..20_000).for_each(|number| calls.note(0.02, [12, 7], number % 50 == 0, 1.0));
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
                calls.note(probability, [last, 7], is_slow, 1.0);
            }
            calls.least
        };
        assert!(least(false) < 0.6, "{}", least(false));
        assert!(least(true) > 0.8, "{}", least(true));
    }
}
