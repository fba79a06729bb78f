//! Where in its counter a volume really flushes: the calibrator's evidence.
//!
//! Flushes come every so many pages, but from which page on they are counted is
//! not known at first, and the count can slip. A flush shows in a slow read
//! right after the write that caused it, and in a write that has to wait. Such
//! a request speaks for every count that its write passed, a normal one against
//! them; what is slow for other reasons speaks for all counts alike.

/// Bound of what speaks for a count: so much must speak against it before
/// another may take its place.
const MOST: i8 = 48;
/// What a slow request speaks for its counts.
const FOR: i8 = 2;
/// What a normal request speaks against them: less, for a flush need not hold
/// up every read.
const AGAINST: i8 = 1;
/// By how much another count must be better.
const MARGIN: i8 = 8;

/// The evidence of one volume, by pages written modulo the buffer's.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    standing: Vec<i8>,
    /// The count at which the buffer is taken to be flushed.
    pub origin: u32,
}

impl Phase {
    /// No evidence, for a buffer of so many pages.
    pub fn new(pages: u32) -> Self {
        Phase { standing: vec![0; pages as usize], origin: 0 }
    }

    /// Whether the origin is more than a guess.
    pub fn is_sure(&self) -> bool {
        self.standing[self.origin as usize] >= MARGIN
    }

    /// The buffer was flushed, or not, while `pages` pages were written after
    /// `count`; true if the origin has moved for it.
    #[inline]
    pub fn tell(&mut self, count: u32, pages: u32, is_flushed: bool) -> bool {
        let buffer = self.standing.len();
        if pages == 0 || pages as usize >= buffer {
            // It speaks for no count, or for all of them.
            return false;
        }
        let mut index = count as usize % buffer;
        let (mut best, mut best_standing) = (self.origin as usize, i8::MIN);
        for _ in 0..pages {
            index = if index + 1 == buffer { 0 } else { index + 1 };
            let standing = &mut self.standing[index];
            *standing = (*standing + if is_flushed { FOR } else { -AGAINST }).max(-MOST);
            if *standing > best_standing {
                (best, best_standing) = (index, *standing);
            }
        }
        // Beyond the bound all others fall behind instead: of two counts there,
        // what speaks for one alone must still tell which it is.
        let excess = (best_standing - MOST).max(0);
        if excess > 0 {
            for standing in &mut self.standing {
                *standing = (*standing - excess).max(-MOST);
            }
        }
        let moves = is_flushed && self.standing[best] >= self.standing[self.origin as usize] + MARGIN;
        if moves {
            self.origin = best as u32;
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of one page to 24 and what a read after each takes, with the
    /// flush at `origin`.
    fn tell(phase: &mut Phase, origin: u32, writes: u32) {
        let (buffer, mut count) = (62, 0);
        for number in 0..writes {
            let pages = 1 + number * 7 % 24;
            let passes = (1..=pages).any(|page| (count + page) % buffer == origin);
            // One read in ten is slow or normal for another reason.
            phase.tell(count, pages, passes != (number % 10 == 3));
            count = (count + pages) % buffer;
        }
    }

    #[test]
    fn the_origin_is_where_slow_requests_begin() {
        let mut phase = Phase::new(62);
        tell(&mut phase, 40, 300);
        // Of two counts that few writes part, the evidence may be the same.
        assert!((39..=40).contains(&phase.origin), "{}", phase.origin);
        // It slips, and is found again.
        tell(&mut phase, 61, 600);
        assert!((60..=61).contains(&phase.origin), "{}", phase.origin);
    }

    #[test]
    fn of_counts_that_are_passed_together_the_one_that_is_passed_alone_wins() {
        let mut phase = Phase::new(62);
        let moves = (0..200).filter(|_| phase.tell(38, 2, true)).count();
        // Both are at the bound, and the first is taken.
        assert_eq!((moves, phase.origin), (1, 39));
        let moves: Vec<bool> = (0..4).map(|_| phase.tell(39, 1, true)).collect();
        assert_eq!((&moves[..], phase.origin), (&[false, false, false, true][..], 40));
    }

    #[test]
    fn the_smallest_buffers_are_no_trouble() {
        for pages in [1, 2, 3] {
            let mut phase = Phase::new(pages);
            for _ in 0..20 {
                phase.tell(0, 1, true);
            }
            assert!(phase.origin < pages);
        }
    }
}
