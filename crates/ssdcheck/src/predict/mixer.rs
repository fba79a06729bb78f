//! From what each circumstance says to one probability: a logistic mixture whose weights are
//! learnt on the drive at hand, as compressors mix the predictions of their contexts
//! (Mahoney, Adaptive Weighing of Context Models for Lossless Data Compression, 2005), and a
//! calibration after it.

use serde::{Deserialize, Serialize};

/// What is mixed.
pub(super) const INPUTS: usize = 8;
/// Sets of weights, one of which a request chooses.
pub(super) const SETS: usize = 8;

/// Inputs that are worked on at once.
const LANES: usize = 4;
/// Greatest logarithm of odds, base 2.
const MOST: f32 = 12.0;
/// From one power of two to the next in the bits of a number.
const ONE: f32 = (1 << 23) as f32;
/// Step of the weights, over the root of the squares of their gradients.
const STEP: f32 = 0.06;
/// Those squares that are presumed, and what remains of them after each outcome.
const PRESUMED: f32 = 3.0;
const FADE: f32 = 0.9999;
/// What never moves a weight leaves this much, above all that is slow to reckon with.
const LEAST_SQUARE: f32 = 1e-6;
/// Bounds of what is taken from a file.
const MOST_WEIGHT: f32 = 1e4;
const MOST_SQUARE: f32 = 1e9;
/// Steps of the calibration, each of half a doubling of the odds.
const STEPS: usize = 49;
const ROOM: usize = STEPS.next_power_of_two();
/// Outcomes that a step of it is taken to have seen, and after which older ones fade.
const SEEN: f32 = 16.0;
const MEMORY: f32 = 512.0;

/// The logarithm of the ratio of two positive numbers, base 2 and by chords between powers of
/// two, which is a twelfth off at most; of `slow` and `normal` that of the odds.
#[inline]
pub(super) fn stretch(slow: f32, normal: f32) -> f32 {
    (slow.to_bits() as i32 - normal.to_bits() as i32) as f32 / ONE
}

/// A number of nanoseconds or pages, as processors convert it.
#[inline]
pub(super) fn float(of: u64) -> f32 {
    debug_assert!(of <= i64::MAX as u64);
    of as i64 as f32
}

/// A number below 128 that is not below 0, in parts of 65,536.
#[inline]
pub(super) fn fixed(of: f32) -> u32 {
    debug_assert!((0.0..128.0).contains(&of));
    // The last bit of numbers from 128 on is worth that part.
    (of + 128.0).to_bits() & 0x7f_ffff
}

/// `of` kept between `-most` and `most`. Unlike the library's, this is no more than the least
/// and the greatest of two, which processors find of several at once.
#[inline]
pub(super) fn bounded(of: f32, most: f32) -> f32 {
    let of = if of < most { of } else { most };
    if of > -most { of } else { -most }
}

/// The probability whose odds these are the logarithm of, within [`MOST`], by the same chords.
#[inline]
fn squash(odds: f32) -> f32 {
    // A number's bits rise by as much from one power of two to the next as this in 128 steps.
    let ratio = f32::from_bits((127 + MOST as u32) * (1 << 23) - fixed(odds + MOST) * 128);
    1.0 / (1.0 + ratio)
}

/// Weights that a set has learnt, and the squares of their gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mixed {
    weights: [f32; INPUTS],
    squares: [f32; INPUTS],
}

/// Slow requests and all of them at a step of the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step(f32, f32);

/// The mixture.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    weights: [[f32; INPUTS]; SETS],
    squares: [[f32; INPUTS]; SETS],
}

impl Mixer {
    pub fn new(weights: [f32; INPUTS]) -> Mixer {
        Mixer { weights: [weights; SETS], squares: [[PRESUMED; INPUTS]; SETS] }
    }

    /// The logarithm of the odds that the inputs come to, below [`MOST`]. Never put into another function, where they
    /// would be kept one by one instead of being read several at once.
    #[inline(never)]
    pub fn mix(&self, set: usize, inputs: &[f32; INPUTS]) -> f32 {
        // In so many sums as are added at once.
        let mut sums = [0.0; LANES];
        for (weights, inputs) in self.weights[set].chunks_exact(LANES).zip(inputs.chunks_exact(LANES)) {
            for ((sum, weight), input) in sums.iter_mut().zip(weights).zip(inputs) {
                *sum += weight * input;
            }
        }
        bounded(sums.iter().sum(), MOST - 0.01)
    }

    /// What it has learnt.
    pub fn mixed(&self) -> Vec<Mixed> {
        let sets = self.weights.iter().zip(&self.squares);
        sets.map(|(&weights, &squares)| Mixed { weights, squares }).collect()
    }

    /// Whether a mixture can have learnt that.
    pub fn holds(mixed: &[Mixed]) -> bool {
        let is_right = |set: &Mixed| {
            set.weights.iter().all(|weight| weight.abs() < MOST_WEIGHT)
                && set.squares.iter().all(|square| (LEAST_SQUARE..MOST_SQUARE).contains(square))
        };
        mixed.len() == SETS && mixed.iter().all(is_right)
    }

    /// Takes over what another has learnt.
    pub fn recall(&mut self, mixed: &[Mixed]) {
        for (set, Mixed { weights, squares }) in mixed.iter().enumerate() {
            (self.weights[set], self.squares[set]) = (*weights, *squares);
        }
    }

    /// Learns from an outcome that was thought to have these odds, as if it had come so many times.
    #[inline]
    pub fn learn(&mut self, set: usize, inputs: &[f32; INPUTS], odds: f32, is_slow: bool, times: u32) {
        let times = times as i32 as f32;
        let error = f32::from(u8::from(is_slow)) - squash(odds);
        let (weights, squares) = (&mut self.weights[set], &mut self.squares[set]);
        for ((weight, square), input) in weights.iter_mut().zip(squares).zip(inputs) {
            let gradient = error * input;
            let sum = *square * FADE + times * gradient * gradient;
            *square = if sum > LEAST_SQUARE { sum } else { LEAST_SQUARE };
            *weight += STEP * times * gradient / square.sqrt();
        }
    }
}

/// What became of requests that the mixture gave like odds.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    /// Slow ones, and all.
    steps: [(f32, f32); STEPS],
    /// The former over the latter, in room for which a place need not be checked.
    parts: [f32; ROOM],
}

impl Calibration {
    pub fn new() -> Calibration {
        let odds = |step: usize| (step as f32 - (STEPS / 2) as f32) / 2.0;
        let parts = std::array::from_fn(|step| squash(odds(step)));
        Calibration { steps: std::array::from_fn(|step| (SEEN * parts[step], SEEN)), parts }
    }

    /// The step below these odds, and how far they are from it.
    #[inline]
    fn place(odds: f32) -> (usize, f32) {
        let place = fixed((odds + MOST) * 2.0);
        ((place >> 16) as usize, (place & 0xffff) as i32 as f32 / 65_536.0)
    }

    /// The probability of being slow.
    #[inline]
    pub fn probability(&self, odds: f32) -> f32 {
        let (step, further) = Self::place(odds);
        let [below, above] = [step, step + 1].map(|step| self.parts[step % ROOM]);
        below + (above - below) * further
    }

    /// What became of requests at each step.
    pub fn noted(&self) -> Vec<Step> {
        self.steps.iter().map(|&(slow, all)| Step(slow, all)).collect()
    }

    /// Whether that can have become of requests.
    pub fn holds(noted: &[Step]) -> bool {
        let is_right =
            |&Step(slow, all): &Step| (0.0..=all).contains(&slow) && (1.0..=MEMORY + 1.0).contains(&all);
        noted.len() == STEPS && noted.iter().all(is_right)
    }

    /// Takes over what became of others.
    pub fn recall(&mut self, noted: &[Step]) {
        for ((step, part), &Step(slow, all)) in self.steps.iter_mut().zip(&mut self.parts).zip(noted) {
            (*step, *part) = ((slow, all), slow / all);
        }
    }

    /// Learns from an outcome as if it had come so many times.
    #[inline]
    pub fn learn(&mut self, odds: f32, is_slow: bool, times: u32) {
        let (step, further) = Self::place(odds);
        let (outcome, times) = (f32::from(u8::from(is_slow)), times as i32 as f32);
        for (step, share) in [(step, times * (1.0 - further)), (step + 1, times * further)] {
            let (slow, all) = &mut self.steps[step];
            *slow += share * outcome;
            *all += share;
            if *all > MEMORY {
                (*slow, *all) = (*slow / 2.0, *all / 2.0);
            }
            self.parts[step] = *slow / *all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_and_probabilities_are_each_others_inverse() {
        for probability in [0.001_f32, 0.1, 0.5, 0.9, 0.999] {
            // The chords are a twelfth of a doubling off, each.
            let back = squash(stretch(probability, 1.0 - probability));
            assert!((stretch(back, 1.0 - back) - stretch(probability, 1.0 - probability)).abs() < 0.2);
        }
        assert_eq!([1.0, 8.0, 0.25].map(|of| stretch(of, 1.0)), [0.0, 3.0, -2.0]);
        for of in [-20.0_f32, -12.0, -3.5, 0.0, 11.9, 12.0, 20.0] {
            assert_eq!(bounded(of, MOST), of.clamp(-MOST, MOST));
        }
    }

    #[test]
    fn what_was_learnt_is_taken_over_with_the_parts_that_follow_from_it() {
        let mut learned = Calibration::new();
        (0..100).for_each(|number| learned.learn(1.3, number % 3 == 0, 1));
        let mut other = Calibration::new();
        other.recall(&learned.noted());
        for odds in [-11.9, 0.0, 1.0, 1.3, 11.9] {
            assert_eq!(other.probability(odds), learned.probability(odds));
        }
    }

    #[test]
    fn the_input_that_tells_is_found_among_those_that_do_not() {
        let mut mixer = Mixer::new([0.0; INPUTS]);
        let mut calibration = Calibration::new();
        for number in 0..4_000_u32 {
            // One input says how it will be nine times in ten, the others whatever.
            let says = number.wrapping_mul(2_654_435_761) >> 31 == 1;
            let is_slow = says != (number % 10 == 3);
            let inputs: [f32; INPUTS] = std::array::from_fn(|input| match input {
                0 => 1.0,
                5 => {
                    if says {
                        1.0
                    } else {
                        -1.0
                    }
                }
                _ => ((number >> (input % 7)) & 1) as f32 - 0.5,
            });
            let odds = mixer.mix(1, &inputs);
            mixer.learn(1, &inputs, odds, is_slow, 1);
            calibration.learn(odds, is_slow, 1);
        }
        let at = |sign: f32| {
            let inputs = std::array::from_fn(|input| if input == 5 { sign } else { 0.0 });
            calibration.probability(mixer.mix(1, &inputs))
        };
        assert!(
            (0.85..0.95).contains(&at(1.0)) && (0.05..0.15).contains(&at(-1.0)),
            "{} {}",
            at(1.0),
            at(-1.0)
        );
        assert_eq!(mixer.mix(0, &[1.0; INPUTS]), 0.0, "other weights learn nothing");
    }

    #[test]
    fn what_is_thought_too_likely_is_put_right() {
        let mut calibration = Calibration::new();
        (0..2_000).for_each(|number| calibration.learn(4.0, number % 4 == 0, 1));
        assert!((0.2..0.3).contains(&calibration.probability(4.0)));
    }
}
