//! The oldest member of a list, by stamps instead of links.
//!
//! A list that is linked through its members needs two links each, and touching one
//! touches its neighbours. A stamp that says when a member came needs half of that
//! and touches nothing else. The oldest are found a batch at a time, by a tree over groups
//! of frames that knows a bound for each: no member of the group is older. Stamps only
//! rise, so that a bound holds until it is looked at; then it is made exact. Whoever comes
//! or comes again is newer than the batch, so that its oldest that is still there is the
//! oldest of all.

/// Frames of a group, and groups of the next.
const GROUP: usize = 64;
/// Stamps that are compared at a time.
const BLOCK: usize = 8;
/// Above all stamps.
const NEVER: i32 = i32::MAX;

/// When a frame came into its list, and which list that is: the time times four and the
/// number of the list, or one that is none's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(pub i32);

impl Stamp {
    /// The latest time that a stamp can have.
    pub const LAST: i32 = NEVER / 4 - 1;
    /// Of a frame that has been in no list.
    pub const NONE: Stamp = Stamp(Self::NOWHERE);
    /// The bits that name the list.
    pub const LIST: i32 = 3;
    const NOWHERE: i32 = 2;

    pub fn new(time: i32, list: i32) -> Stamp {
        Stamp(time << 2 | list)
    }

    pub fn time(self) -> i32 {
        self.0 >> 2
    }

    /// The same at another time.
    pub fn at(self, time: i32) -> Stamp {
        Stamp::new(time, self.0 & Self::LIST)
    }

    /// The same in no list.
    pub fn out(self) -> Stamp {
        Stamp(self.0 & !Self::LIST | Self::NOWHERE)
    }

    #[inline(always)]
    fn is_in(self, list: i32) -> bool {
        self.0 & Self::LIST == list
    }
}

/// Stamps of so many frames, in whole groups.
pub(super) fn stamps(frames: usize) -> Vec<Stamp> {
    vec![Stamp::NONE; frames.next_multiple_of(GROUP)]
}

/// The oldest of a list's members, and bounds for the others.
#[derive(Clone)]
pub(super) struct Oldest {
    /// The number of the list.
    list: i32,
    /// From groups of frames up to a single bound.
    levels: Vec<Vec<i32>>,
    /// Some that were members, the oldest last: all whose stamps are not above `until`.
    batch: Vec<u32>,
    until: i32,
    /// How far the next batch goes.
    stride: i32,
    /// Frames of a batch at most.
    most: usize,
}

impl Oldest {
    /// Of this list, over so many frames, none of which is a member.
    pub fn new(list: i32, frames: usize) -> Oldest {
        let mut levels = vec![vec![NEVER; frames.div_ceil(GROUP).max(1)]];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(vec![NEVER; last.len().div_ceil(GROUP)]);
        }
        let most = (frames / GROUP).max(GROUP);
        Oldest { list, levels, batch: Vec::with_capacity(most), until: -1, stride: GROUP as i32, most }
    }

    /// A frame has become a member, with a stamp above all others.
    #[inline]
    pub fn add(&mut self, frame: u32, stamp: Stamp) {
        let mut at = frame as usize;
        for level in &mut self.levels {
            at /= GROUP;
            if level[at] <= stamp.0 {
                return;
            }
            level[at] = stamp.0;
        }
    }

    /// The oldest member; no stamp is above `newest`.
    #[inline]
    pub fn find(&mut self, stamps: &[Stamp], newest: Stamp) -> Option<u32> {
        loop {
            while let Some(&frame) = self.batch.last() {
                let stamp = stamps[frame as usize];
                if stamp.is_in(self.list) && stamp.0 <= self.until {
                    return Some(frame);
                }
                self.batch.pop();
            }
            if self.levels[self.levels.len() - 1][0] == NEVER {
                return None;
            }
            self.gather(stamps, newest);
        }
    }

    /// Finds the next batch.
    #[inline(never)]
    fn gather(&mut self, stamps: &[Stamp], newest: Stamp) {
        let top = self.levels.len() - 1;
        let least = self.levels[top][0].max(self.until + 1);
        self.until = least.saturating_add(self.stride).min(newest.0);
        self.visit(top, 0, stamps);
        self.batch.sort_unstable_by_key(|&frame| std::cmp::Reverse(stamps[frame as usize]));
        // A look at all groups costs the same however many it finds: the next one goes so
        // far that, at this density, it fills the batch but for an eighth.
        let (wanted, found) = (self.most as i64 * 7 / 8, self.batch.len().max(1) as i64);
        let span = i64::from((self.until - least + 1).max(1));
        self.stride = (span * wanted / found).clamp(1, span * 4).min(i64::from(NEVER)) as i32;
    }

    /// Takes the members below a bound that come into the batch; makes the bound exact, and
    /// returns it.
    fn visit(&mut self, level: usize, at: usize, stamps: &[Stamp]) -> i32 {
        let bound = if level == 0 { self.take(at, stamps) } else { self.visit_below(level - 1, at, stamps) };
        self.levels[level][at] = bound;
        bound
    }

    fn visit_below(&mut self, level: usize, at: usize, stamps: &[Stamp]) -> i32 {
        let start = at * GROUP;
        let mut least = NEVER;
        for below in start..(start + GROUP).min(self.levels[level].len()) {
            let bound = self.levels[level][below];
            least = least.min(if bound <= self.until { self.visit(level, below, stamps) } else { bound });
        }
        least
    }

    /// The same within a group.
    fn take(&mut self, at: usize, stamps: &[Stamp]) -> i32 {
        let (groups, _) = stamps.as_chunks::<GROUP>();
        let (blocks, _) = groups[at].as_chunks::<BLOCK>();
        let mut least = [NEVER; BLOCK];
        for (number, block) in blocks.iter().enumerate() {
            let own = block.map(|stamp| if stamp.is_in(self.list) { stamp.0 } else { NEVER });
            least = std::array::from_fn(|place| least[place].min(own[place]));
            if !own.iter().fold(false, |is_any, &stamp| is_any | (stamp <= self.until)) {
                continue;
            }
            let first = (at * GROUP + number * BLOCK) as u32;
            for (frame, stamp) in (first..).zip(own) {
                if stamp <= self.until {
                    self.push(frame, stamps);
                }
            }
        }
        least.into_iter().fold(NEVER, i32::min)
    }

    /// Puts a frame into the batch; if that is full, the newer half stays out.
    fn push(&mut self, frame: u32, stamps: &[Stamp]) {
        if self.batch.len() == self.most {
            let half = self.most / 2;
            let (_, &mut last, _) =
                self.batch.select_nth_unstable_by_key(half, |&frame| stamps[frame as usize]);
            self.until = stamps[last as usize].0;
            self.batch.truncate(half + 1);
            if stamps[frame as usize].0 > self.until {
                return;
            }
        }
        self.batch.push(frame);
    }

    /// No frame is a member; stamps may begin anew.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.until = -1;
        self.levels.iter_mut().for_each(|level| level.fill(NEVER));
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let bounds: usize = self.levels.iter().map(|level| level.len() * size_of::<i32>()).sum();
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
                for time in 0..20_000 {
                    let frame = random.below(range as u64) as usize;
                    // Some are in the other list.
                    let list = i32::from(random.chance(0.8));
                    if random.chance(adds) {
                        stamps[frame] = Stamp::new(time, list);
                        if list == 1 {
                            oldest.add(frame as u32, stamps[frame]);
                        }
                    } else {
                        stamps[frame] = stamps[frame].out();
                    }
                    if random.chance(finds) || time == 19_999 {
                        let found = oldest.find(&stamps, Stamp::new(time, 3));
                        let first = stamps.iter().filter(|stamp| stamp.is_in(1)).min();
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
                assert_eq!(oldest.find(&stamps, Stamp::new(time, 3)), Some(frame));
                stamps[frame as usize] = stamps[frame as usize].out();
            }
            assert_eq!(oldest.find(&stamps, Stamp::new(time, 3)), None);
        }
    }
}
