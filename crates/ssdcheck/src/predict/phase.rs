//! Where in its counter a volume really flushes: the calibrator's evidence.
//!
//! Flushes come every so many pages, but from which page on they are counted is
//! not known at first, and the count can slip. A flush shows in slow requests
//! right after it. Each slow request votes for the count at which it came; other
//! reasons for being slow spread their votes evenly.

/// Counts after a flush in which its slow requests come.
const SPREAD: usize = 3;
/// Votes kept before older ones begin to fade.
const MEMORY: u32 = 96;
/// By how many votes another count must be better.
const MARGIN: i32 = 3;

/// The votes of one volume, by pages written modulo the buffer's.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    votes: Vec<u16>,
    total: u32,
    /// The count at which the buffer is taken to be flushed.
    pub origin: u32,
}

impl Phase {
    /// No votes, for a buffer of so many pages.
    pub fn new(pages: u32) -> Self {
        Phase { votes: vec![0; pages as usize], total: 0, origin: 0 }
    }

    /// A slow request came at `count` with so much weight; true if the origin
    /// has moved for it.
    pub fn vote(&mut self, count: u32, weight: u16) -> bool {
        if self.total > MEMORY {
            self.votes.iter_mut().for_each(|votes| *votes /= 2);
            self.total = self.votes.iter().map(|&votes| u32::from(votes)).sum();
        }
        self.votes[count as usize] += weight;
        self.total += u32::from(weight);
        // Only counts near the vote can have become better.
        let pages = self.votes.len();
        let near = (0..=SPREAD).map(|back| (count as usize + pages - back % pages) % pages);
        let best = near.map(|origin| (self.standing(origin), origin)).max_by_key(|&(standing, origin)| {
            // Of equals the latest: nothing before it was slow.
            (standing, (origin + pages - count as usize + SPREAD) % pages)
        });
        match best {
            Some((standing, origin))
                if origin != self.origin as usize
                    && standing >= self.standing(self.origin as usize) + MARGIN =>
            {
                self.origin = origin as u32;
                true
            }
            _ => false,
        }
    }

    /// Votes right after `origin` less those right before it.
    fn standing(&self, origin: usize) -> i32 {
        let pages = self.votes.len();
        let votes = |index: usize| i32::from(self.votes[index % pages]);
        let spread = SPREAD.min(pages / 2);
        let after: i32 = (0..spread).map(|step| votes(origin + step)).sum();
        let before: i32 = (1..=spread).map(|step| votes(origin + pages - step)).sum();
        after - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_where_slow_requests_begin() {
        let mut phase = Phase::new(62);
        let mut noise = 0;
        for round in 0..60 {
            phase.vote(40 + [0, 0, 1, 2][round % 4], 1);
            noise = (noise * 29 + 17) % 62;
            phase.vote(noise, 1);
        }
        assert_eq!(phase.origin, 40);
        // It slips, and is found again.
        for round in 0..200 {
            phase.vote([61, 61, 0, 1][round % 4], 1);
        }
        assert_eq!(phase.origin, 61);
    }

    #[test]
    fn the_smallest_buffers_are_no_trouble() {
        for pages in [1, 2, 3] {
            let mut phase = Phase::new(pages);
            for _ in 0..20 {
                phase.vote(0, 4);
            }
            assert!(phase.origin < pages);
        }
    }
}
