//! The oldest member of a list, by stamps instead of links.
//!
//! A list that is linked through its members needs two links each, and touching one
//! touches its neighbours. A stamp that says when a member came needs half of that
//! and touches nothing else. The oldest are found a batch at a time, by a tree over groups
//! of frames that knows a bound for each: no member of the group is older. Stamps only
//! rise, so that a bound holds until it is looked at; then it is raised. Whoever comes
//! or comes again is newer than the batch, so that its oldest that is still there is the
//! oldest of all.

/// Frames of a group, and groups of the next.
const GROUP: usize = 64;
/// In how many batches all frames would leave: as few as the memory allows, as a look at the
/// groups costs nearly the same however many it finds.
const BATCHES: usize = 8;
/// Stamps that are looked at one by one where one of them is wanted.
const BLOCK: usize = 16;
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

/// The highest bit says whether a key is below a bound that is at most [`NEVER`]: of many, one
/// after the other, processors without wide comparisons do this at once.
#[inline(always)]
fn is_below(key: u32, bound: u32) -> u32 {
    key.wrapping_sub(bound) & !key
}

/// Whether the highest bit is set.
#[inline(always)]
fn is_any(bits: u32) -> bool {
    bits >> 31 != 0
}

/// The oldest of a list's members, and bounds for the others.
#[derive(Clone)]
pub(super) struct Oldest {
    /// What flips the bit of the list, so that its members are the least.
    own: u32,
    /// From groups of frames up to a single bound.
    levels: Vec<Vec<u32>>,
    /// Some that were members, the oldest last: all whose stamps are not above `until`.
    batch: Vec<u32>,
    until: u32,
    /// How far the next batch should go, from its least.
    stride: u32,
    /// Up to where bounds look ahead: if the next batch ends there, no group is looked at
    /// that has none of it.
    next: u32,
    /// Frames of a batch at most.
    most: usize,
}

impl Oldest {
    /// Of this list, over so many frames, none of which is a member.
    pub fn new(list: u32, frames: usize) -> Oldest {
        let mut levels = vec![vec![NEVER; frames.div_ceil(GROUP).max(1)]];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            levels.push(vec![NEVER; last.len().div_ceil(GROUP)]);
        }
        let most = (frames / BATCHES).max(GROUP);
        let (batch, stride) = (Vec::with_capacity(most), GROUP as u32);
        Oldest { own: list * Stamp::LIST, levels, batch, until: 0, stride, next: 0, most }
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
            while let Some(&frame) = self.batch.last() {
                if self.key(stamps[frame as usize]) <= self.until {
                    return Some(frame);
                }
                self.batch.pop();
            }
            if self.levels[self.levels.len() - 1][0] >= NEVER {
                return None;
            }
            self.gather(stamps, newest);
        }
    }

    /// Finds the next batch.
    #[inline(never)]
    fn gather(&mut self, stamps: &[Stamp], newest: u32) {
        let top = self.levels.len() - 1;
        let least = self.levels[top][0].max(self.until + 1);
        let mut until = least.saturating_add(self.stride).min(newest);
        if until.abs_diff(self.next) < self.stride / 4 {
            until = self.next;
        }
        self.until = until;
        self.next = until.saturating_add(self.stride).min(newest);
        self.visit(top, 0, stamps);
        if self.until < until {
            // Some have stayed out of groups whose bounds do not know it.
            let bound = self.until + 1;
            self.levels.iter_mut().flatten().for_each(|each| *each = bound.min(*each));
        }
        self.batch.sort_unstable_by_key(|&frame| std::cmp::Reverse(stamps[frame as usize].0));
        // A look at all groups costs the same however many it finds: the next one goes so
        // far that, at this density, it fills the batch but for an eighth.
        let (wanted, found) = (self.most as i64 * 7 / 8, self.batch.len().max(1) as i64);
        let span = i64::from((self.until + 1).saturating_sub(least).max(1));
        self.stride = (span * wanted / found).clamp(1, span * 4).min(i64::from(Stamp::LAST)) as u32;
    }

    /// Takes the members that come into the batch, and raises the bound, which it returns:
    /// above `next`, if there is no other up to there.
    fn visit(&mut self, level: usize, at: usize, stamps: &[Stamp]) -> u32 {
        let bound = match level.checked_sub(1) {
            None => self.take(at, stamps),
            Some(below) => self.visit_below(below, at, stamps),
        };
        self.levels[level][at] = bound;
        bound
    }

    fn visit_below(&mut self, level: usize, at: usize, stamps: &[Stamp]) -> u32 {
        let start = at * GROUP;
        let mut least = NEVER;
        for below in start..(start + GROUP).min(self.levels[level].len()) {
            let bound = self.levels[level][below];
            let bound = if bound <= self.until { self.visit(level, below, stamps) } else { bound };
            least = least.min(bound);
        }
        least
    }

    /// The same within a group.
    fn take(&mut self, at: usize, stamps: &[Stamp]) -> u32 {
        let (groups, _) = stamps.as_chunks::<GROUP>();
        let (blocks, _) = groups[at].as_chunks::<BLOCK>();
        let (now, next, own) = (self.until + 1, self.next + 1, self.own);
        let (mut comes, mut comes_next) = ([0; GROUP / BLOCK], 0);
        for (comes, block) in comes.iter_mut().zip(blocks) {
            for &stamp in block {
                let key = stamp.0 ^ own;
                let by_now = is_below(key, now);
                *comes |= by_now;
                comes_next |= is_below(key, next) & !by_now;
            }
        }
        for (number, _) in comes.iter().enumerate().filter(|&(_, &comes)| is_any(comes)) {
            let first = (at * GROUP + number * BLOCK) as u32;
            for (frame, stamp) in (first..).zip(&blocks[number]) {
                if stamp.0 ^ own < now {
                    self.push(frame, stamps);
                }
            }
        }
        if is_any(comes_next) {
            return now;
        }
        let comes_later = |&stamp: &Stamp| (next..NEVER).contains(&(stamp.0 ^ own));
        if groups[at].iter().any(comes_later) { next } else { NEVER }
    }

    /// Puts a frame into the batch, if it still belongs there; if that is full, the newer half
    /// stays out.
    fn push(&mut self, frame: u32, stamps: &[Stamp]) {
        if self.key(stamps[frame as usize]) > self.until {
            return;
        }
        if self.batch.len() == self.most {
            let half = self.most / 2;
            let (_, &mut last, _) =
                self.batch.select_nth_unstable_by_key(half, |&frame| stamps[frame as usize].0);
            self.until = self.key(stamps[last as usize]);
            self.batch.truncate(half + 1);
            if self.key(stamps[frame as usize]) > self.until {
                return;
            }
        }
        self.batch.push(frame);
    }

    /// No frame is a member; stamps may begin anew.
    pub fn clear(&mut self) {
        self.batch.clear();
        (self.until, self.next) = (0, 0);
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
