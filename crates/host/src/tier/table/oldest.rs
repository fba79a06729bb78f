//! The oldest member of a list, by stamps instead of links.
//!
//! A list that is linked through its members needs two links each, and touching one
//! touches its neighbours. A stamp that says when a member came needs half of that
//! and touches nothing else. The oldest are found a batch at a time: those that came within
//! a span of time, each in the place that its stamp says, so that nothing is sorted. A tree
//! over groups of frames knows a bound for each: no member of the group that is not in the
//! batch is older. Stamps only rise, so that a bound holds until it is looked at; then it is
//! raised. Whoever comes or comes again is newer than the batch, so that its oldest that is
//! still there is the oldest of all.

/// Frames of a group, and groups of the next.
const GROUP: usize = 64;
/// In how many batches all frames would leave that came one after the other. Each costs a look
/// at all groups, but what a longer one would take in memory does more for the index.
const BATCHES: usize = 16;
/// Above all members, as a list sees stamps.
const NEVER: u32 = 1 << 30;

/// When a frame came into its list, and which that is.
///
/// The highest bit is set where it is in none, the next one is the number of the list, and
/// the others are the time. With that bit flipped by its number a list sees its own
/// members below all others, in their order: the oldest is the least, and nobody asks
/// which are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u32);

impl Stamp {
    /// The latest time that a stamp can have; the earliest is 1.
    pub const LAST: u32 = Self::LIST - 1;
    /// Of a frame that has been in no list.
    pub const NONE: Stamp = Stamp(Self::NOWHERE);
    const LIST: u32 = 1 << 30;
    const NOWHERE: u32 = 1 << 31;

    pub fn new(time: u32, list: u32) -> Stamp {
        Stamp((list * Self::LIST) | time)
    }

    pub fn time(self) -> u32 {
        self.0 & Self::LAST
    }

    /// The same at another time.
    pub fn at(self, time: u32) -> Stamp {
        Stamp(self.0 & !Self::LAST | time)
    }

    /// The same in no list.
    pub fn out(self) -> Stamp {
        Stamp(self.0 | Self::NOWHERE)
    }
}

/// Stamps of so many frames, in whole groups.
pub(super) fn stamps(frames: usize) -> Vec<Stamp> {
    vec![Stamp::NONE; frames.next_multiple_of(GROUP)]
}

/// The oldest of a list's members, and bounds for the others.
#[derive(Clone)]
pub(super) struct Oldest {
    /// What flips the bit of the list, so that its members are the least.
    own: u32,
    /// From groups of frames up to a single bound.
    levels: Vec<Vec<u32>>,
    /// Who came at each time from `first` on, as the list sees stamps; a place whose member has
    /// left means nothing, as does the last one.
    batch: Vec<u32>,
    first: u32,
    /// Places that are over, and that there are.
    at: usize,
    end: usize,
}

impl Oldest {
    /// Of this list, over so many frames, none of which is a member.
    pub fn new(list: u32, frames: usize) -> Oldest {
        let mut levels = vec![vec![NEVER; frames.div_ceil(GROUP).max(1)]];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(vec![NEVER; last.len().div_ceil(GROUP)]);
        }
        let most = (frames / BATCHES).max(GROUP);
        Oldest { own: list * Stamp::LIST, levels, batch: vec![0; most + 1], first: 0, at: 0, end: 0 }
    }

    /// A stamp as the list sees it.
    #[inline(always)]
    fn key(&self, stamp: Stamp) -> u32 {
        stamp.0 ^ self.own
    }

    /// A frame has become a member, with a stamp above all others.
    #[inline]
    pub fn add(&mut self, frame: u32, stamp: Stamp) {
        let (mut at, key) = (frame as usize, self.key(stamp));
        for level in &mut self.levels {
            at /= GROUP;
            if level[at] <= key {
                return;
            }
            level[at] = key;
        }
    }

    /// The oldest member; none came after `newest`.
    #[inline]
    pub fn find(&mut self, stamps: &[Stamp], newest: u32) -> Option<u32> {
        loop {
            while self.at < self.end {
                let frame = self.batch[self.at];
                if self.key(stamps[frame as usize]) == self.first + self.at as u32 {
                    return Some(frame);
                }
                self.at += 1;
            }
            let least = self.levels[self.levels.len() - 1][0];
            if least >= NEVER {
                return None;
            }
            // Whoever comes from now on is not in this batch.
            self.first = least;
            self.at = 0;
            self.end = (self.batch.len() - 1).min((newest + 1 - least) as usize);
            self.batch[..self.end].fill(0);
            self.gather(self.levels.len() - 1, 0, stamps);
        }
    }

    /// Puts the members that belong there into the batch, and raises the bound of the others,
    /// which it returns.
    #[inline(never)]
    fn gather(&mut self, level: usize, at: usize, stamps: &[Stamp]) -> u32 {
        let bound = match level.checked_sub(1) {
            None => self.take(at, stamps),
            Some(below) => {
                let groups = at * GROUP..((at + 1) * GROUP).min(self.levels[below].len());
                let bounds = groups.map(|group| {
                    let bound = self.levels[below][group];
                    if bound < self.after() { self.gather(below, group, stamps) } else { bound }
                });
                bounds.min().expect("there are groups")
            }
        };
        self.levels[level][at] = bound;
        bound
    }

    /// The first stamp after the batch.
    fn after(&self) -> u32 {
        self.first + self.end as u32
    }

    /// The same within a group of frames.
    fn take(&mut self, at: usize, stamps: &[Stamp]) -> u32 {
        let group = &stamps.as_chunks::<GROUP>().0[at];
        let (own, first, after) = (self.own, self.first, self.after());
        // How much later than the batch each came; who came before or has left is above all. With
        // the highest bit flipped, as any processor compares such numbers at once.
        let later = |stamp: &Stamp| (stamp.0 ^ own).wrapping_add((1 << 31) - after).cast_signed();
        let least = group.iter().map(later).fold(i32::MAX, i32::min).cast_unsigned() ^ (1 << 31);
        let places = &mut self.batch[..=self.end];
        for (frame, stamp) in (at * GROUP..).zip(group) {
            // Those that do not belong there meet in the last place: to ask would cost more.
            let place = (stamp.0 ^ own).wrapping_sub(first) as usize;
            places[place.min(places.len() - 1)] = frame as u32;
        }
        least.saturating_add(after).min(NEVER)
    }

    /// No frame is a member; stamps may begin anew.
    pub fn clear(&mut self) {
        self.end = 0;
        self.levels.iter_mut().for_each(|level| level.fill(NEVER));
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let bounds: usize = self.levels.iter().map(|level| level.len() * size_of::<u32>()).sum();
        bounds + self.batch.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    /// With members that come anywhere, or only in front, as where few are touched again.
    #[test]
    fn the_oldest_is_found_whoever_comes_and_goes() {
        for frames in [1usize, 63, 64, 65, 5000, 20_000] {
            for (adds, finds, range) in
                [(0.7, 0.2, frames), (0.7, 0.001, frames), (0.5, 0.6, frames / 40 + 1)]
            {
                let mut random = Stream::new(frames as u64, "oldest");
                let mut stamps = stamps(frames);
                let mut oldest = Oldest::new(1, frames);
                for time in 1..=20_000 {
                    let frame = random.below(range as u64) as usize;
                    // Some are in the other list.
                    let list = u32::from(random.chance(0.8));
                    if random.chance(adds) {
                        stamps[frame] = Stamp::new(time, list);
                        if list == 1 {
                            oldest.add(frame as u32, stamps[frame]);
                        }
                    } else {
                        stamps[frame] = stamps[frame].out();
                    }
                    if random.chance(finds) || time == 20_000 {
                        let found = oldest.find(&stamps, time);
                        let first = stamps
                            .iter()
                            .filter(|&&stamp| oldest.key(stamp) < NEVER)
                            .min_by_key(|stamp| stamp.0);
                        assert_eq!(found.map(|frame| &stamps[frame as usize]), first);
                    }
                }
            }
        }
    }

    #[test]
    fn all_leave_in_order_whatever_the_gaps_between_their_stamps() {
        let frames = 10_000;
        for gap in [1, 3, 40, 5000] {
            let mut stamps = stamps(frames);
            let mut oldest = Oldest::new(0, frames);
            let mut time = 0;
            let order: Vec<u32> = (0..frames as u32).map(|number| number * 7919 % frames as u32).collect();
            for (number, &frame) in order.iter().enumerate() {
                time += if number % 100 == 0 { gap } else { 1 };
                stamps[frame as usize] = Stamp::new(time, 0);
                oldest.add(frame, stamps[frame as usize]);
            }
            for frame in order {
                assert_eq!(oldest.find(&stamps, time), Some(frame));
                stamps[frame as usize] = stamps[frame as usize].out();
            }
            assert_eq!(oldest.find(&stamps, time), None);
        }
    }
}
