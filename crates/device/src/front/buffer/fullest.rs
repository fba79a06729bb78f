//! Which lane of a buffer holds the most pages.

/// The lengths of lanes, and which is the longest: a tree of winners, so that finding it
/// takes no look at all of them.
#[derive(Clone, Debug)]
pub(crate) struct Fullest {
    /// The greatest key below each node, the root at 1; the children of a node lie at twice
    /// its place and behind it. A lane's key is its length, then its number, so that of
    /// equals the last wins. There is a power of two of leaves; what is no lane is empty.
    keys: Vec<u64>,
}

#[inline]
fn key_of(lane: u32, len: u32) -> u64 {
    u64::from(len) << 32 | u64::from(lane)
}

impl Fullest {
    /// So many empty lanes.
    pub fn new(lanes: u32) -> Self {
        let leaves = lanes.next_power_of_two();
        let mut keys = vec![0; 2 * leaves as usize];
        (0..leaves).for_each(|lane| keys[(leaves + lane) as usize] = key_of(lane, 0));
        (1..leaves as usize).rev().for_each(|node| keys[node] = keys[2 * node].max(keys[2 * node + 1]));
        Fullest { keys }
    }

    /// The length of a lane has changed.
    #[inline]
    pub fn note(&mut self, lane: u32, len: u32) {
        let mut node = self.keys.len() / 2 + lane as usize;
        let mut key = key_of(lane, len);
        self.keys[node] = key;
        while node > 1 {
            key = key.max(self.keys[node ^ 1]);
            node /= 2;
            self.keys[node] = key;
        }
    }

    /// The longest lane, the last of equals, and its length. There is one that is not empty.
    #[inline]
    pub fn longest(&self) -> (u32, u32) {
        let longest = self.keys[1];
        (longest as u32, (longest >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn the_longest_lane_is_the_last_of_the_longest() {
        let mut random = Stream::new(1, "lanes");
        for lanes in [1, 2, 3, 8, 13] {
            let (mut fullest, mut lens) = (Fullest::new(lanes), vec![0; lanes as usize]);
            for _ in 0..1_000 {
                let lane = random.below(lanes.into()) as usize;
                lens[lane] = random.below(6) as u32;
                fullest.note(lane as u32, lens[lane]);
                let longest = (0..lanes).zip(&lens).max_by_key(|&(_, len)| len).expect("a lane");
                if *longest.1 > 0 {
                    assert_eq!(fullest.longest(), (longest.0, *longest.1));
                }
            }
        }
    }
}
