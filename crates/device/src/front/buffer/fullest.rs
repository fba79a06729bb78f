//! Which lane of a buffer holds the most pages.

/// The lengths of lanes, and which is the longest: a tree of winners, so that finding it
/// takes no look at all of them.
#[derive(Clone, Debug)]
pub(crate) struct Fullest {
    /// A power of two of them; what is no lane is empty.
    lens: Vec<u32>,
    /// The longest below each node, the root at 1; the children of a node lie at twice its
    /// place and behind it. Of equals the last.
    winners: Vec<u32>,
}

impl Fullest {
    /// So many empty lanes.
    pub fn new(lanes: u32) -> Self {
        let leaves = lanes.next_power_of_two();
        let mut winners = vec![0; 2 * leaves as usize];
        (0..leaves).for_each(|lane| winners[(leaves + lane) as usize] = lane);
        (1..leaves as usize).rev().for_each(|node| winners[node] = winners[2 * node + 1]);
        Fullest { lens: vec![0; leaves as usize], winners }
    }

    /// The length of a lane has changed.
    #[inline]
    pub fn note(&mut self, lane: u32, len: u32) {
        self.lens[lane as usize] = len;
        let mut node = (self.lens.len() + lane as usize) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let is_right = self.lens[right as usize] >= self.lens[left as usize];
            self.winners[node] = if is_right { right } else { left };
            node /= 2;
        }
    }

    /// The longest lane, the last of equals, and its length. There is one that is not empty.
    #[inline]
    pub fn longest(&self) -> (u32, u32) {
        let lane = self.winners[1];
        (lane, self.lens[lane as usize])
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
