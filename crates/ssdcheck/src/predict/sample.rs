//! Which outcomes are learnt from: all that are slow or were thought possible to be, and of those
//! that were sure to be normal and are one in a few, which stands for the others.

/// Probability of being slow from which on a request is not sure to be normal.
const SURE: f32 = 0.1;
/// Of those that are, one in so many.
const ONE_IN: u32 = 8;
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
        if self.turn < u32::MAX / ONE_IN { ONE_IN } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_learnt_from_stands_for_all() {
        let mut sample = Sample::default();
        assert_eq!((sample.times(0.0, true), sample.times(0.5, false)), (1, 1));
        let times: Vec<u32> = (0..1_000).map(|_| sample.times(0.01, false)).collect();
        assert!((980..=1_020).contains(&times.iter().sum::<u32>()));
        assert!(times.chunks_exact(13).all(|some| some.contains(&ONE_IN)), "they are spread evenly");
    }
}
