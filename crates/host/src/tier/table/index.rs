//! Which frame a page is in: a hash table of fixed size. A page stands in one of two groups
//! that it hashes to, so that nothing moves when another is taken out.

/// No entry.
const NONE: u32 = 0;
/// Frames that an index can name.
pub(super) const MOST_FRAMES: u64 = 1 << 28;
/// Entries of a group.
const GROUP: usize = 4;
/// Entries that move on to their other groups at most to make room for one.
const MOVES: usize = 64;

/// The frames of pages; `pages` of the calls is the page of each frame.
#[derive(Clone)]
pub(super) struct Index {
    /// Not more than three in four entries are taken.
    groups: Vec<[u32; GROUP]>,
    /// Entries for which there was no room in time: hardly ever any.
    others: Vec<u32>,
    /// A power of two above all frames. The bits of an entry from there on are a mark of its page,
    /// never 0, by which others are told from it without a look at theirs: nearly all of them
    /// where frames are few.
    end: u32,
}

/// Where a page may stand.
#[derive(Clone, Copy)]
struct Stand {
    groups: [usize; 2],
    mark: u32,
    end: u32,
}

/// Spreads pages that follow one another over all groups.
fn hash(page: u32) -> u64 {
    let mixed = (u64::from(page) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl Stand {
    /// The entry of the page in a frame.
    fn entry(self, frame: u32) -> u32 {
        self.mark | frame
    }

    /// The place in a group of the entry that has the mark, and names a frame of which `is_it`.
    #[inline(always)]
    fn find(self, group: &[u32; GROUP], is_it: impl Fn(usize) -> bool) -> Option<usize> {
        group.iter().position(|&entry| {
            let frame = entry ^ self.mark;
            frame < self.end && is_it(frame as usize)
        })
    }
}

impl Index {
    /// For so many frames.
    pub fn new(frames: u32) -> Index {
        let entries = (u64::from(frames) * 4).div_ceil(3) as usize;
        let end = frames.next_power_of_two();
        Index { groups: vec![[NONE; GROUP]; entries / GROUP + 1], others: Vec::new(), end }
    }

    #[inline(always)]
    fn stand(&self, page: u32) -> Stand {
        let (hash, count, end) = (hash(page), self.groups.len() as u64, self.end);
        let group = |part: u64| ((part * count) >> 32) as usize;
        let mark = (hash as u32).wrapping_mul(end).max(end);
        Stand { groups: [group(hash >> 32), group(hash & 0xffff_ffff)], mark, end }
    }

    #[inline(always)]
    fn frame_of(&self, entry: u32) -> u32 {
        entry & (self.end - 1)
    }

    /// The frame of a page.
    #[inline]
    pub fn get(&self, page: u32, pages: &[u32]) -> Option<u32> {
        let stand = self.stand(page);
        let is_it = |frame: usize| pages[frame] == page;
        for group in stand.groups {
            let group = &self.groups[group];
            if let Some(place) = stand.find(group, is_it) {
                return Some(self.frame_of(group[place]));
            }
        }
        self.others.iter().map(|&entry| self.frame_of(entry)).find(|&frame| is_it(frame as usize))
    }

    /// The page, which is in no frame, is in this one from now on.
    #[inline(always)]
    pub fn insert(&mut self, page: u32, frame: u32, pages: &[u32]) {
        debug_assert_eq!(self.get(page, pages), None);
        let stand = self.stand(page);
        let [first, second] = stand.groups;
        if !self.put(first, stand.entry(frame)) && !self.put(second, stand.entry(frame)) {
            self.push_in(first, stand.entry(frame), pages);
        }
    }

    /// Puts an entry into a group, if it has room.
    #[inline(always)]
    fn put(&mut self, group: usize, entry: u32) -> bool {
        let free = self.groups[group].iter_mut().find(|entry| **entry == NONE);
        free.map(|free| *free = entry).is_some()
    }

    /// Puts an entry into a group that is full: another one moves on to its other group, and
    /// so on.
    #[cold]
    fn push_in(&mut self, mut group: usize, mut entry: u32, pages: &[u32]) {
        for turn in 0..MOVES {
            std::mem::swap(&mut self.groups[group][turn % GROUP], &mut entry);
            let [first, second] = self.stand(pages[self.frame_of(entry) as usize]).groups;
            group = if group == first { second } else { first };
            if self.put(group, entry) {
                return;
            }
        }
        self.others.push(entry);
    }

    /// The page is not in that frame, if it was.
    #[inline(always)]
    pub fn remove(&mut self, page: u32, frame: u32) {
        let stand = self.stand(page);
        let own = stand.entry(frame);
        for group in stand.groups {
            if let Some(place) = self.groups[group].iter().position(|&entry| entry == own) {
                self.groups[group][place] = NONE;
                return;
            }
        }
        self.others.retain(|&entry| entry != own);
    }

    /// No page is in any frame.
    pub fn clear(&mut self) {
        self.groups.fill([NONE; GROUP]);
        self.others.clear();
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.groups.len() * size_of::<[u32; GROUP]>() + self.others.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn the_index_is_a_map_whatever_goes_in_and_out() {
        is_a_map(Index::new(500));
    }

    #[test]
    fn it_is_where_it_is_so_full_that_not_all_find_room() {
        let most = is_a_map(Index { groups: vec![[NONE; GROUP]; 126], ..Index::new(500) });
        assert!(most > 0, "all have found room");
    }

    /// Returns how many at once had found no room.
    fn is_a_map(mut index: Index) -> usize {
        let mut most = 0;
        let mut random = Stream::new(1, "index");
        let frames = 500u32;
        let mut pages = vec![u32::MAX; frames as usize];
        let mut free: Vec<u32> = (0..frames).collect();
        let mut map = BTreeMap::new();
        for _ in 0..200_000 {
            let page = random.below(1500) as u32 * 64;
            match map.remove(&page) {
                Some(frame) => {
                    index.remove(page, frame);
                    free.push(frame);
                }
                None if free.is_empty() => assert_eq!(index.get(page, &pages), None),
                None => {
                    let frame = free.pop().expect("not empty");
                    pages[frame as usize] = page;
                    index.insert(page, frame, &pages);
                    map.insert(page, frame);
                }
            }
            most = most.max(index.others.len());
            let other = random.below(1500) as u32 * 64;
            assert_eq!(index.get(other, &pages), map.get(&other).copied());
        }
        assert_eq!(
            index.groups.as_flattened().iter().chain(&index.others).filter(|&&entry| entry != NONE).count(),
            map.len()
        );
        most
    }
}
