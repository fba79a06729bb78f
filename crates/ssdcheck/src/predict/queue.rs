//! What the requests outstanding come to.

use super::mixer::SETS;

/// Numbers of writes and of reads told apart.
const NUMBERS: usize = 64;
/// Depths told apart, octaves of all that are outstanding.
pub(super) const DEPTHS: usize = SETS / 2;

/// What so many writes and reads come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub is_busy: bool,
    /// Which of [`DEPTHS`].
    pub depth: u8,
    /// Writes and reads each in half octaves, eight of the former and four of the latter.
    pub both: u8,
}

static QUEUES: [[Queue; NUMBERS]; NUMBERS] = queues();

const fn queues() -> [[Queue; NUMBERS]; NUMBERS] {
    let none = Queue { is_busy: false, depth: 0, both: 0 };
    let mut queues = [[none; NUMBERS]; NUMBERS];
    let mut writes = 0;
    while writes < NUMBERS {
        let mut reads = 0;
        while reads < NUMBERS {
            let all = writes + reads;
            queues[writes][reads] = Queue {
                is_busy: all > 0,
                depth: least((all + 1).ilog2(), DEPTHS as u32 - 1),
                both: (least(half_octaves(writes), 7) << 2) | least(half_octaves(reads), 3),
            };
            reads += 1;
        }
        writes += 1;
    }
    queues
}

const fn least(one: u32, other: u32) -> u8 {
    (if one < other { one } else { other }) as u8
}

/// Half octaves of one more than so many.
const fn half_octaves(number: usize) -> u32 {
    let shift = f32::MANTISSA_DIGITS - 2;
    (((number + 1) as f32).to_bits() >> shift) - (1.0_f32.to_bits() >> shift)
}

/// What so many writes and reads come to.
#[inline]
pub(super) fn queue([writes, reads]: [u32; 2]) -> &'static Queue {
    let number = |of: u32| (of as usize).min(NUMBERS - 1);
    &QUEUES[number(writes)][number(reads)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_as_the_most_that_are_told_apart() {
        let of = |writes, reads| {
            let queue = queue([writes, reads]);
            (queue.is_busy, queue.depth, queue.both)
        };
        assert_eq!(of(0, 0), (false, 0, 0));
        assert_eq!(of(3, 1), (true, 2, 4 << 2 | 2));
        assert_eq!(of(3, 4), (true, 3, 4 << 2 | 3));
        assert_eq!(of(1_000, 1_000), (true, 3, 31));
    }
}
