//! From the odds that the mixture gives to a probability that comes true: what became of requests
//! with like odds, beyond what these say.

use serde::{Deserialize, Serialize};

use super::mixer::{MOST, squash};

/// Steps, each of half a doubling of the odds: those that the odds may have, and one before and
/// two after them, which learn with their neighbours.
const STEPS: usize = 52;
/// Room beyond them, so that whatever is read of a number lies within.
const ROOM: usize = 128;
/// A number from which on the last bit of the fraction is worth a part of 131,072.
const BEGIN: f32 = 64.0;
/// Steps that learn of an outcome: those less than two away. One alone sees few outcomes on a
/// drive of which most is sure.
const NEAR: usize = 4;
/// Outcomes that a step is taken to have seen that came as often as was said.
const SEEN: f32 = 12.0;
/// What a step has seen fades by half where its variance, in outcomes of a fair coin times four,
/// is above the first of these: where slow requests are rare, it takes more to tell how rare they
/// are; and where there are more of them than the second.
const VARIANCE: f32 = 16.0;
const MEMORY: f32 = 4_096.0;
/// Nothing is surer than this.
const LEAST: f32 = 0.0002;

/// By how much more requests at a step were slow than was said, in all, and how many there were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step(f32, f32);

/// What became of requests that the mixture gave like odds.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    /// As in [`Step`].
    beyond: [f32; ROOM],
    seen: [f32; ROOM],
    /// What the mixture says at each step, and the part that is slow.
    said: [f32; ROOM],
    parts: [f32; ROOM],
    /// The straight line from the step after each to the one after that: what it is at even odds, and
    /// what each doubling adds.
    at_even: [f32; ROOM],
    slopes: [f32; ROOM],
}

impl Calibration {
    pub fn new() -> Calibration {
        let said = std::array::from_fn(|step| squash(odds(step).clamp(-MOST, MOST)));
        let none = [0.0; ROOM];
        let mut calibration =
            Calibration { beyond: none, seen: [SEEN; ROOM], said, parts: said, at_even: none, slopes: none };
        calibration.draw::<STEPS>(0);
        calibration
    }

    /// The first of the steps that are near these odds.
    #[inline]
    fn place(odds: f32) -> usize {
        ((odds + (MOST + BEGIN)).to_bits() >> 16) as usize % (ROOM / 2)
    }

    /// Draws so many lines anew, from the one of this step on.
    #[inline(always)]
    fn draw<const LINES: usize>(&mut self, first: usize) {
        let [below, above] = [1, 2].map(|next| some::<LINES>(&self.parts, first + next));
        let slopes: [f32; LINES] = std::array::from_fn(|line| 2.0 * (above[line] - below[line]));
        let begins = odds(first + 1);
        let at_even: [f32; LINES] =
            std::array::from_fn(|line| below[line] - slopes[line] * (begins + line as f32 / 2.0));
        self.slopes[first..first + LINES].copy_from_slice(&slopes);
        self.at_even[first..first + LINES].copy_from_slice(&at_even);
    }

    /// The probability of being slow.
    #[inline]
    pub fn probability(&self, odds: f32) -> f32 {
        let first = Self::place(odds);
        self.at_even[first] + self.slopes[first] * odds
    }

    /// What became of requests at each step.
    pub fn noted(&self) -> Vec<Step> {
        self.beyond[..STEPS].iter().zip(&self.seen).map(|(&beyond, &seen)| Step(beyond, seen)).collect()
    }

    /// Whether that can have become of requests.
    pub fn holds(noted: &[Step]) -> bool {
        let is_right =
            |&Step(beyond, seen): &Step| beyond.abs() <= seen && (1.0..2.0 * MEMORY).contains(&seen);
        noted.len() == STEPS && noted.iter().all(is_right)
    }

    /// Takes over what became of others.
    pub fn recall(&mut self, noted: &[Step]) {
        for (step, &Step(beyond, seen)) in noted.iter().enumerate() {
            (self.beyond[step], self.seen[step]) = (beyond, seen);
            self.parts[step] = part(self.said[step], beyond, seen);
        }
        self.draw::<STEPS>(0);
    }

    /// Learns from an outcome that came otherwise than these odds said by `error`, as if it had
    /// come so many times.
    #[inline]
    pub fn learn(&mut self, said: f32, error: f32, times: f32) {
        let first = Self::place(said);
        let further = 2.0 * (said - odds(first + 1));
        // A step two away learns nothing.
        let shares = [1.0 - further, 2.0 - further, 1.0 + further, further].map(|share| times / 2.0 * share);
        let [beyond, seen, said, parts] =
            [&self.beyond, &self.seen, &self.said, &self.parts].map(|of| some::<NEAR>(of, first));
        let all: [f32; NEAR] = std::array::from_fn(|step| seen[step] + shares[step]);
        let keeps: [f32; NEAR] = std::array::from_fn(|step| {
            let variance = all[step] * parts[step] * (1.0 - parts[step]);
            if variance > VARIANCE || all[step] > MEMORY { 0.5 } else { 1.0 }
        });
        let seen: [f32; NEAR] = std::array::from_fn(|step| all[step] * keeps[step]);
        let beyond: [f32; NEAR] =
            std::array::from_fn(|step| (beyond[step] + shares[step] * error) * keeps[step]);
        let parts: [f32; NEAR] = std::array::from_fn(|step| part(said[step], beyond[step], seen[step]));
        self.seen[first..first + NEAR].copy_from_slice(&seen);
        self.beyond[first..first + NEAR].copy_from_slice(&beyond);
        self.parts[first..first + NEAR].copy_from_slice(&parts);
        // The lines that begin or end at one of these.
        self.draw::<{ NEAR + 1 }>(first.saturating_sub(2));
    }
}

/// Some of what there is of each step.
#[inline(always)]
fn some<const STEPS: usize>(of: &[f32; ROOM], first: usize) -> [f32; STEPS] {
    of[first..first + STEPS].try_into().expect("so many")
}

/// The odds at a step.
#[inline]
fn odds(step: usize) -> f32 {
    (step as f32 - 1.0) / 2.0 - MOST
}

#[inline]
fn part(said: f32, beyond: f32, seen: f32) -> f32 {
    let part = said + beyond / seen;
    let part = if part < 1.0 - LEAST { part } else { 1.0 - LEAST };
    if part > LEAST { part } else { LEAST }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(calibration: &mut Calibration, odds: f32, is_slow: bool) {
        calibration.learn(odds, f32::from(u8::from(is_slow)) - squash(odds), 1.0);
    }

    #[test]
    fn what_was_learnt_is_taken_over_with_the_parts_that_follow_from_it() {
        let mut learned = Calibration::new();
        (0..100).for_each(|number| learn(&mut learned, 1.3, number % 3 == 0));
        let mut other = Calibration::new();
        other.recall(&learned.noted());
        for odds in [-11.9, 0.0, 1.0, 1.3, 11.9] {
            assert_eq!(other.probability(odds), learned.probability(odds));
        }
    }

    #[test]
    fn what_is_thought_too_likely_is_put_right_and_what_is_near_it() {
        let mut calibration = Calibration::new();
        (0..2_000).for_each(|number| learn(&mut calibration, 4.0, number % 4 == 0));
        assert!((0.2..0.3).contains(&calibration.probability(4.0)));
        assert!(calibration.probability(3.5) < 0.6, "half a doubling away");
        assert!((0.88..0.9).contains(&calibration.probability(3.0)), "what is further away is as before");
    }

    #[test]
    fn what_nothing_has_been_seen_of_is_as_said_to_the_ends() {
        let calibration = Calibration::new();
        for odds in [-11.98_f32, -3.0, 0.0, 0.25, 7.5, 11.98] {
            let off = calibration.probability(odds) - squash(odds);
            assert!(off.abs() < 0.005, "{odds} {off}");
        }
    }
}
