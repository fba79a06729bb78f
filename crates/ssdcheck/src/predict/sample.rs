//! Which outcomes are learnt from: all that are slow or were thought possible to be; of the others
//! the fewer the surer they were, each of which stands for those that are left out.

/// Probability of being slow from which on a request is not sure to be normal.
const SURE: f32 = 0.12;
/// Of those in the first octave below that one in two is learnt from, in the next one in four, and
/// so on, as far as so many octaves.
const MOST: u32 = 5;
/// Below this all are in the last of them.
const LEAST: f32 = SURE / (1 << (MOST - 1)) as f32;
/// The golden section of all that a `u32` counts: its multiples are spread evenly, and fall in
/// step with nothing that a drive does.
const STEP: u32 = 0x9E37_79B9;

/// Counts those that are left out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    turn: u32,
}

impl Sample {
    /// How many outcomes this one stands for; 0 where nothing is learnt from it.
    #[inline]
    pub fn times(&mut self, chance: f32, is_slow: bool) -> u32 {
        if is_slow || chance > SURE {
            return 1;
        }
        self.turn = self.turn.wrapping_add(STEP);
        if self.turn > u32::MAX >> 1 {
            return 0;
        }
        let chance = if chance > LEAST { chance } else { LEAST };
        // Exponents of two in the bits of the numbers.
        let octaves = ((SURE.to_bits() - chance.to_bits()) >> 23) + 1;
        if self.turn <= u32::MAX >> octaves { 1 << octaves } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learnt_from_stands_for_all() {
        let mut sample = Sample::default();
        assert_eq!((sample.times(0.0, true), sample.times(0.5, false)), (1, 1));
        for (chance, one_in) in [(0.11, 2), (0.05, 4), (0.01, 16), (0.001, 32), (0.0, 32)] {
            let times: Vec<u32> = (0..4_000).map(|_| sample.times(chance, false)).collect();
            assert!((3_900..=4_100).contains(&times.iter().sum::<u32>()), "{chance}");
            assert!(times.iter().all(|&times| times == 0 || times == one_in), "{chance}");
            let mut spread = times.chunks_exact(2 * one_in as usize);
            assert!(spread.all(|some| some.iter().any(|&times| times > 0)), "{chance}: spread evenly");
        }
    }
}
