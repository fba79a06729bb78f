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
}

impl Calibration {
    pub fn new() -> Calibration {
        let odds = |step: usize| (step as f32 - 1.0) / 2.0 - MOST;
        let said = std::array::from_fn(|step| squash(odds(step).clamp(-MOST, MOST)));
        Calibration { beyond: [0.0; ROOM], seen: [SEEN; ROOM], said, parts: said }
    }

    /// The first of the steps that are near these odds, and how far they are from the second.
    #[inline]
    fn place(odds: f32) -> (usize, f32) {
        let place = (odds + (MOST + BEGIN)).to_bits();
        ((place >> 16) as usize % (ROOM / 2), (place & 0xffff) as i32 as f32 / 65_536.0)
    }

    /// The probability of being slow.
    #[inline]
    pub fn probability(&self, odds: f32) -> f32 {
        let (first, further) = Self::place(odds);
        let (below, above) = (self.parts[first + 1], self.parts[first + 2]);
        below + (above - below) * further
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
    }

    /// Learns from an outcome that came otherwise than these odds say by `error`, as if it had
    /// come so many times.
    #[inline]
    pub fn learn(&mut self, odds: f32, error: f32, times: f32) {
        let (first, further) = Self::place(odds);
        let near = first..first + NEAR;
        // A step two away learns nothing.
        let shares = [1.0 - further, 2.0 - further, 1.0 + further, further].map(|share| times / 2.0 * share);
        let (beyond, seen) = (&mut self.beyond[near.clone()], &mut self.seen[near.clone()]);
        let (said, parts) = (&self.said[near.clone()], &mut self.parts[near]);
        for (step, share) in shares.into_iter().enumerate() {
            let all = seen[step] + share;
            let is_full = all * parts[step] * (1.0 - parts[step]) > VARIANCE || all > MEMORY;
            let keeps = if is_full { 0.5 } else { 1.0 };
            seen[step] = all * keeps;
            beyond[step] = (beyond[step] + share * error) * keeps;
            parts[step] = part(said[step], beyond[step], seen[step]);
        }
    }
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
