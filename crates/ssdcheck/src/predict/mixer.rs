//! From what each circumstance says to one probability: a logistic mixture whose weights are
//! learnt on the drive at hand, as compressors mix the predictions of their contexts
//! (Mahoney, Adaptive Weighing of Context Models for Lossless Data Compression, 2005).

use serde::{Deserialize, Serialize};

/// What is mixed: what is a request's own, each followed by what those of an operation have in common.
pub(super) const INPUTS: usize = 8;
/// Sets of weights, one of which a request chooses.
pub(super) const SETS: usize = 8;

/// Greatest logarithm of odds, base 2.
pub(super) const MOST: f32 = 12.0;
/// From one power of two to the next in the bits of a number.
const ONE: f32 = (1 << 23) as f32;
/// Step of the weights, over the root of the squares of their gradients.
const STEP: f32 = 0.1;
/// Those squares that are presumed, and what remains of them after each outcome.
const PRESUMED: f32 = 3.0;
const FADE: f32 = 0.9999;
/// The most that is saved of them. Whoever begins with these weights, on another specimen under
/// another load, has to find out soon which of them still serve.
const MOST_SAVED: f32 = 30.0;
/// What never moves a weight leaves this much, above all that is slow to reckon with.
const LEAST_SQUARE: f32 = 1e-6;
/// Bounds of what is taken from a file.
const MOST_WEIGHT: f32 = 1e4;
const MOST_SQUARE: f32 = 1e9;

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
pub(super) fn squash(odds: f32) -> f32 {
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

    /// The weights of a set.
    #[inline]
    pub fn weights(&self, set: usize) -> &[f32; INPUTS] {
        &self.weights[set % SETS]
    }

    /// What it has learnt, for another to begin with.
    pub fn mixed(&self) -> Vec<Mixed> {
        let sets = self.weights.iter().zip(&self.squares);
        sets.map(|(&weights, squares)| Mixed {
            weights,
            squares: squares.map(|square| square.min(MOST_SAVED)),
        })
        .collect()
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

    /// Learns from an outcome that came otherwise than it was thought to by `error`, as if it had
    /// come so many times.
    #[inline]
    pub fn learn(&mut self, set: usize, inputs: &[f32; INPUTS], error: f32, times: f32) {
        let (weights, squares) = (&mut self.weights[set], &mut self.squares[set]);
        for ((weight, square), input) in weights.iter_mut().zip(squares).zip(inputs) {
            let gradient = error * input;
            let sum = *square * FADE + times * gradient * gradient;
            *square = if sum > LEAST_SQUARE { sum } else { LEAST_SQUARE };
            *weight += STEP * times * gradient / square.sqrt();
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

    fn mix(mixer: &Mixer, set: usize, inputs: &[f32; INPUTS]) -> f32 {
        bounded(mixer.weights(set).iter().zip(inputs).map(|(weight, input)| weight * input).sum(), MOST)
    }

    #[test]
    fn the_input_that_tells_is_found_among_those_that_do_not() {
        let mut mixer = Mixer::new([0.0; INPUTS]);
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
            let odds = mix(&mixer, 1, &inputs);
            mixer.learn(1, &inputs, f32::from(u8::from(is_slow)) - squash(odds), 1.0);
        }
        let at = |sign: f32| {
            let inputs = std::array::from_fn(|input| if input == 5 { sign } else { 0.0 });
            squash(mix(&mixer, 1, &inputs))
        };
        assert!(
            (0.8..0.95).contains(&at(1.0)) && (0.05..0.2).contains(&at(-1.0)),
            "{} {}",
            at(1.0),
            at(-1.0)
        );
        assert_eq!(mix(&mixer, 0, &[1.0; INPUTS]), 0.0, "other weights learn nothing");
    }

    #[test]
    fn who_begins_with_what_was_saved_unlearns_it_sooner() {
        let inputs = [1.0; INPUTS];
        let mut former = Mixer::new([0.0; INPUTS]);
        (0..20_000).for_each(|_| former.learn(0, &inputs, 0.5, 1.0));
        let mut next = Mixer::new([0.0; INPUTS]);
        next.recall(&former.mixed());
        assert_eq!(next.weights(0), former.weights(0));
        let [by_next, by_former] = [&mut next, &mut former].map(|mixer| {
            let before = mixer.weights(0)[0];
            mixer.learn(0, &inputs, -0.5, 1.0);
            before - mixer.weights(0)[0]
        });
        assert!(by_next > 4.0 * by_former, "{by_next} {by_former}");
    }
}
