//! Which pages are written while flushes are watched for.

use flashkeel_engine::Stream;

/// Which pages are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Where {
    /// One over and over again, which fills a buffer that keeps what is written again, and
    /// leaves nothing for collection to move.
    One(u64),
    /// Random ones in which these bits are 0.
    Without(u64),
    /// Of those so many, in turn.
    Round(u64, u64),
}

/// Pages of [`Where::Without`], and the part of them that comes before one comes again: more
/// than a buffer holds. They are close together, for their part of the map to stay in memory.
const MANY: u64 = 2_048;
const APART: u64 = 3;

/// The pages of one run.
pub(super) struct Pages {
    place: Where,
    /// When each of many was written last, those with changed bits apart.
    last: [Vec<u64>; 2],
    /// How many of either were written: a buffer of their own fills with these alone.
    written: [u64; 2],
}

impl Pages {
    /// On a drive of so many pages.
    pub fn new(place: Where, pages: u64) -> Self {
        let many = match place {
            Where::One(_) => 0,
            Where::Without(mask) | Where::Round(mask, _) => many(mask, pages),
        };
        Pages { place, last: [vec![0; many as usize], vec![0; many as usize]], written: [many; 2] }
    }

    /// The next page, with the bits of `flip` changed.
    pub fn next(&mut self, random: &mut Stream, flip: u64) -> u64 {
        let side = usize::from(flip != 0);
        let (last, written) = (&mut self.last[side], &mut self.written[side]);
        match self.place {
            Where::One(page) => page ^ flip,
            Where::Without(mask) => {
                *written += 1;
                let many = last.len() as u64;
                let index = loop {
                    let index = random.below(many);
                    if last[index as usize] + many / APART <= *written {
                        break index;
                    }
                };
                last[index as usize] = *written;
                spread(index, mask, flip)
            }
            Where::Round(mask, of) => {
                *written += 1;
                spread(*written % of, mask, flip)
            }
        }
    }
}

/// The highest of [`Where::Without`] such bits on a drive of so many pages.
pub(super) fn highest(mask: u64, pages: u64) -> u64 {
    spread(many(mask, pages) - 1, mask, 0)
}

/// How many there are.
fn many(mask: u64, pages: u64) -> u64 {
    // One more bit may be flipped.
    MANY.min(pages >> (mask.count_ones() + 1))
}

/// The page of this number among those in which the bits of `mask` are 0 and those of `flip` 1.
fn spread(index: u64, mask: u64, flip: u64) -> u64 {
    let bits = (0..u64::BITS).filter(|bit| (mask | flip) >> bit & 1 == 1);
    let page = bits.fold(index * 8, |page, bit| {
        let below = page & ((1 << bit) - 1);
        (page - below) << 1 | below
    });
    page | flip
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once pages of both sides were counted together: of two buffers that keep the newest of
    /// each page, each saw some again before it was full.
    #[test]
    fn pages_of_two_buffers_do_not_come_again_before_either_is_full() {
        let mut random = Stream::new(1, "pages");
        let mut pages = Pages::new(Where::Without(0), 1 << 16);
        let mut written: [Vec<u64>; 2] = Default::default();
        for index in 0..40_000 {
            let side = usize::from(index / 1_200 % 2 == 1);
            written[side].push(pages.next(&mut random, side as u64 * (1 << 18)));
        }
        for side in written {
            let mut last = std::collections::BTreeMap::new();
            for (index, page) in side.into_iter().enumerate() {
                let before = last.insert(page, index);
                assert!(before.is_none_or(|before| index - before >= (MANY / APART) as usize), "{page}");
            }
        }
    }
}
