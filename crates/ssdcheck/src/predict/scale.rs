//! Steps of times and counts: so many to an octave, from a first one on.

use flashkeel_engine::Time;

use super::mixer::float;

/// A scale: from zero on steps rise with the logarithm of `least` and more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    least: f32,
    /// Where the last step begins.
    most: f32,
    /// Bits of a float below those that tell its step.
    shift: u32,
    first: u32,
}

impl Scale {
    /// `1 << fineness` steps to an octave, of which the first is `1 << octave` and what is below;
    /// so many in all.
    pub const fn new(fineness: u32, octave: u32, steps: u32) -> Scale {
        let shift = f32::MANTISSA_DIGITS - 1 - fineness;
        let least = (1_u64 << octave) as f32;
        let first = least.to_bits() >> shift;
        Scale { least, most: f32::from_bits((first + steps - 1) << shift), shift, first }
    }

    /// The step of a number.
    #[inline(always)]
    pub fn step(&self, of: u64) -> u32 {
        self.step_of(float(of))
    }

    /// The step of a number that is not below 0.
    #[inline(always)]
    pub fn step_of(&self, of: f32) -> u32 {
        let of = of + self.least;
        let of = if of < self.most { of } else { self.most };
        // Exponent and first bits of the fraction.
        (of.to_bits() >> self.shift) - self.first
    }

    /// The last step, and from which number on all are of it.
    pub const fn last(&self) -> u32 {
        (self.most.to_bits() >> self.shift) - self.first
    }

    pub const fn end(&self) -> u64 {
        (self.most - self.least) as u64
    }

    /// The step of the time from `then` to `now`; the first if `then` is still to come.
    #[inline(always)]
    pub fn since(&self, now: Time, then: Time) -> u32 {
        let of = now.0.wrapping_sub(then.0) as i64 as f32 + self.least;
        let of = if of > self.least { of } else { self.least };
        let of = if of < self.most { of } else { self.most };
        (of.to_bits() >> self.shift) - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_rise_with_the_logarithm_and_end_where_they_are_told_to() {
        let halves = Scale::new(1, 4, 10);
        assert_eq!([0, 7, 8, 15, 16, 48, 1 << 40].map(|of| halves.step(of)), [0, 0, 1, 1, 2, 4, 9]);
        let quarters = Scale::new(2, 16, 64);
        assert_eq!(quarters.step(0), 0);
        assert_eq!(quarters.step(65_536), 4);
        assert_eq!(quarters.step(131_072), 6);
        assert_eq!(quarters.step(1 << 60), 63);
        let (now, before) = (Time(1 << 40), [1 << 40, 0, (1 << 40) - 131_072, 1 << 41]);
        assert_eq!(before.map(|then| quarters.since(now, Time(then))), [0, 63, 6, 0]);
    }
}
