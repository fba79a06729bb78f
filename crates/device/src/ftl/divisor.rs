//! Division by a number known only at run time, without dividing.

/// A divisor of 32-bit numbers. Each write and each moved page asks for the
/// block of a physical page, and a division costs as much as all the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    /// 2^64 over the divisor, rounded up (Lemire, Kaser and Kurz, "Faster
    /// remainder by direct computation", 2019, §3.1); 0 stands for dividing by 1.
    reciprocal: u64,
}

impl Divisor {
    /// Divides by `divisor`, which is not 0.
    pub fn new(divisor: u32) -> Self {
        let reciprocal = if divisor == 1 { 0 } else { u64::MAX / u64::from(divisor) + 1 };
        Divisor { reciprocal }
    }

    /// `number` over the divisor, rounded down.
    #[inline]
    pub fn divide(self, number: u32) -> u32 {
        if self.reciprocal == 0 {
            return number;
        }
        ((u128::from(self.reciprocal) * u128::from(number)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn it_divides_exactly() {
        let mut random = Stream::new(1, "divisor");
        for round in 0..200_000 {
            let divisor = match round % 3 {
                0 => 1 << (round / 3 % 32),
                1 => random.between(1, 40_000) as u32,
                _ => random.between(1, u64::from(u32::MAX)) as u32,
            };
            let exact = Divisor::new(divisor);
            let multiple = (u32::MAX / divisor).wrapping_mul(divisor);
            for number in [
                0,
                1,
                divisor - 1,
                divisor,
                multiple,
                multiple.wrapping_sub(1),
                u32::MAX,
                random.word() as u32,
            ] {
                assert_eq!(exact.divide(number), number / divisor, "{number} / {divisor}");
            }
        }
    }
}
