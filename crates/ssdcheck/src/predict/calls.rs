//! From which probability on a request is called slow.

use serde::{Deserialize, Serialize};

use super::mixer::fixed;

/// Steps of the root of a probability: finer where slow requests are rare.
const STEPS: usize = 128;
/// Outcomes after which the least probability is looked for again, and what remains then of
/// those before.
const ROUND: u32 = 512;
const REMAINS: f32 = 0.94;
/// What is called before anything is known.
const FIRST: f32 = 0.4;
/// Part of the normal requests that may be called slow in any case: the paper's drives have
/// 1.0 to 0.3 % (§V-B). Below the second a call is no help even so.
const FALSE_CALLS: f32 = 0.0085;
const LEAST: f32 = 0.08;

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
    left: u32,
    most_false: Option<f32>,
    /// The least probability that is called slow.
    pub least: f32,
}

impl Calls {
    /// With `most_false`, no greater part of the normal requests is called slow. Without, as
    /// many as give the greatest harmonic mean of recall and precision, or [`FALSE_CALLS`].
    pub fn new(most_false: Option<f32>) -> Calls {
        Calls { slow: [0.0; STEPS], normal: [0.0; STEPS], left: ROUND, most_false, least: FIRST }
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
        self.look();
    }

    /// Notes what became of a request that was given this probability, as if it had come so many times.
    #[inline]
    pub fn note(&mut self, probability: f32, is_slow: bool, times: u32) {
        let step = ((fixed(probability.sqrt()) as usize * STEPS) >> 16).min(STEPS - 1);
        let counts = if is_slow { &mut self.slow } else { &mut self.normal };
        counts[step] += times as i32 as f32;
        self.left = self.left.saturating_sub(times);
        if self.left == 0 {
            self.left = ROUND;
            self.look();
            for count in self.slow.iter_mut().chain(&mut self.normal) {
                *count *= REMAINS;
            }
        }
    }

    /// Looks for the least probability.
    #[cold]
    fn look(&mut self) {
        let [slow, normal] = [&self.slow, &self.normal].map(|counts| counts.iter().sum::<f32>());
        let most = self.most_false.unwrap_or(FALSE_CALLS) * normal;
        let (mut found, mut missed) = (0.0, 0.0);
        let (mut afforded, mut balanced, mut best) = (1.0f32, 1.0, 0.0);
        for step in (0..STEPS).rev() {
            found += self.slow[step];
            missed += self.normal[step];
            let probability = (step as f32 / STEPS as f32).powi(2);
            if missed <= most {
                afforded = probability;
            }
            let mean = 2.0 * found / (slow + found + missed).max(1.0);
            if mean > best {
                (best, balanced) = (mean, probability);
            }
        }
        let afforded = afforded.max(LEAST);
        self.least = if self.most_false.is_some() { afforded } else { afforded.min(balanced) };
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
                0 => calls.note(0.9, number / 100 % 10 != 0, 1),
                1..=10 => calls.note(0.5, number / 100 % 2 == 0, 1),
                _ => calls.note(0.01, number / 100 % 100 == 0, 1),
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
}
