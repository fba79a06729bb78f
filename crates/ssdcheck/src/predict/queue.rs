//! What the requests outstanding come to.

use flashkeel_engine::Time;

use super::mixer::SETS;
use super::scale::Scale;
use super::signals::QUEUE_TABLE;

/// Numbers of writes and of reads told apart.
const NUMBERS: usize = 64;
/// Depths told apart, octaves of all that are outstanding.
pub(super) const DEPTHS: usize = SETS / 2;

/// Half octaves of the time since the oldest was submitted.
const WAITED: Scale = Scale::new(1, 12, 32);

/// What so many writes and reads come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Which of [`DEPTHS`].
    depth: u8,
    /// Writes and reads each in half octaves, eight of the former and four of the latter.
    both: u8,
}

impl Queue {
    /// Which of [`DEPTHS`].
    #[inline]
    pub fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// Where a request stands behind these, of which the oldest was submitted then.
    #[inline]
    pub fn place(&self, now: Time, oldest: Time) -> u32 {
        QUEUE_TABLE + (u32::from(self.both) << 5) + WAITED.since(now, oldest)
    }
}

static QUEUES: [[Queue; NUMBERS]; NUMBERS] = queues();

const fn queues() -> [[Queue; NUMBERS]; NUMBERS] {
    let none = Queue { depth: 0, both: 0 };
    let mut queues = [[none; NUMBERS]; NUMBERS];
    let mut writes = 0;
    while writes < NUMBERS {
        let mut reads = 0;
        while reads < NUMBERS {
            let all = writes + reads;
            queues[writes][reads] = Queue {
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
            (queue.depth, queue.both)
        };
        assert_eq!(of(0, 0), (0, 0));
        assert_eq!(of(3, 1), (2, 4 << 2 | 2));
        assert_eq!(of(3, 4), (3, 4 << 2 | 3));
        assert_eq!(of(1_000, 1_000), (3, 31));
    }
}
