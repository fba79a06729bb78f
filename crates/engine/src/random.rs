//! Named, seeded random streams with value-stable distributions.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One component's private source of random numbers.
///
/// A stream is made from the run's seed and the component's name, so adding a
/// component or drawing more numbers in one never changes another. The
/// distributions are written here because results must stay the same, to the
/// bit, whatever version a library has.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of component `name` in the run with this `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then over the seed's bytes.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes().chain(seed.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(hash))
    }

    /// A uniform 64-bit word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform integer in `0..bound`. The bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform integer in `low..=high`; no number is drawn when they are equal.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high);
        if low == high {
            return low;
        }
        low + self.below(high - low + 1)
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An exponentially distributed number with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit() lies in (0, 1], so the logarithm is finite. The standard
        // library's differs between platforms in the last bit.
        -mean * libm::log(1.0 - self.unit())
    }

    /// Whether an event of the given probability happens.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let words = |seed, name| {
            let mut stream = Stream::new(seed, name);
            [stream.word(), stream.word()]
        };
        assert_eq!(words(1, "gc"), words(1, "gc"));
        assert_ne!(words(1, "gc"), words(2, "gc"));
        assert_ne!(words(1, "gc"), words(1, "host"));
    }

    #[test]
    fn values_are_stable_across_versions() {
        let mut stream = Stream::new(42, "golden");
        let got: Vec<u64> = (0..3).map(|_| stream.below(1_000_000)).collect();
        assert_eq!(got, [720_399, 327_619, 815_461]);
    }

    #[test]
    fn means_are_right() {
        let mut stream = Stream::new(7, "means");
        let n = 1_000_000;
        let uniform: u64 = (0..n).map(|_| stream.between(500, 1000)).sum();
        let exponential: f64 = (0..n).map(|_| stream.exponential(3.0)).sum();
        assert!((uniform as f64 / f64::from(n) - 750.0).abs() < 1.0);
        assert!((exponential / f64::from(n) - 3.0).abs() < 0.02);
    }
}
