//! Which frame a page is in: a hash table of fixed size, with the entries in the order of
//! the places that they hash to. Whoever looks for one stops where it would stand, and what
//! is taken out leaves no mark.

/// No entry.
const NONE: u32 = 0;
/// Bits of an entry that name the frame. Those above are its way: how far it stands from
/// where it hashes to, and one more.
const FRAME_BITS: u32 = 28;
/// The way of an entry that stands where it hashes to.
const NEAREST: u32 = 1 << FRAME_BITS;
/// That far, or farther.
const FAR: u32 = 15;
/// Frames that an index can name.
pub(super) const MOST_FRAMES: u64 = 1 << FRAME_BITS;

/// The frames of pages; `pages` of the calls is the page of each frame.
#[derive(Clone)]
pub(super) struct Index {
    /// Not more than three in four of them are taken.
    entries: Vec<u32>,
}

/// Spreads pages that follow one another over all places.
fn hash(page: u32) -> u64 {
    let mixed = (u64::from(page) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn entry(frame: u32, way: u32) -> u32 {
    frame | way.min(FAR) << FRAME_BITS
}

fn frame_of(entry: u32) -> u32 {
    entry & ((1 << FRAME_BITS) - 1)
}

impl Index {
    /// For so many frames.
    pub fn new(frames: u32) -> Index {
        Index { entries: vec![NONE; (u64::from(frames) * 4).div_ceil(3) as usize + 1] }
    }

    /// Where the search for a page begins.
    fn home(&self, page: u32) -> usize {
        (((hash(page) >> 32) * self.entries.len() as u64) >> 32) as usize
    }

    fn next(&self, place: usize) -> usize {
        if place + 1 == self.entries.len() { 0 } else { place + 1 }
    }

    /// The way of the entry at a place; 0 where none is.
    #[inline]
    fn way(&self, place: usize, pages: &[u32]) -> u32 {
        let way = self.entries[place] >> FRAME_BITS;
        if way == FAR { self.long_way(place, pages) } else { way }
    }

    #[cold]
    fn long_way(&self, place: usize, pages: &[u32]) -> u32 {
        let home = self.home(pages[frame_of(self.entries[place]) as usize]);
        let before = if home > place { self.entries.len() } else { 0 };
        (place + before - home) as u32 + 1
    }

    /// The place of a page; or where it would stand, and its way there.
    #[inline]
    fn find(&self, page: u32, pages: &[u32]) -> Result<usize, (usize, u32)> {
        let (mut place, mut way) = (self.home(page), 1);
        loop {
            let found = self.way(place, pages);
            if found < way {
                return Err((place, way));
            }
            // Others that hash to the same place have the same way.
            if found == way && pages[frame_of(self.entries[place]) as usize] == page {
                return Ok(place);
            }
            (place, way) = (self.next(place), way + 1);
        }
    }

    /// The frame of a page.
    #[inline]
    pub fn get(&self, page: u32, pages: &[u32]) -> Option<u32> {
        self.find(page, pages).ok().map(|place| frame_of(self.entries[place]))
    }

    /// The page, whose frame it is already, is in that frame from now on.
    pub fn insert(&mut self, page: u32, frame: u32, pages: &[u32]) {
        let (mut place, way) = match self.find(page, pages) {
            Ok(place) => {
                self.entries[place] = entry(frame, self.entries[place] >> FRAME_BITS);
                return;
            }
            Err(found) => found,
        };
        let mut moved = std::mem::replace(&mut self.entries[place], entry(frame, way));
        // Those from there on are a place farther.
        while moved != NONE {
            place = self.next(place);
            let farther = if moved >> FRAME_BITS == FAR { moved } else { moved + NEAREST };
            moved = std::mem::replace(&mut self.entries[place], farther);
        }
    }

    /// The page is not in that frame, if it was; those behind it are a place nearer.
    pub fn remove(&mut self, page: u32, frame: u32, pages: &[u32]) {
        let Ok(mut place) = self.find(page, pages) else { return };
        if frame_of(self.entries[place]) != frame {
            return;
        }
        loop {
            let next = self.next(place);
            let moved = self.entries[next];
            self.entries[place] = match moved >> FRAME_BITS {
                0 | 1 => break,
                FAR => entry(frame_of(moved), self.long_way(next, pages) - 1),
                _ => moved - NEAREST,
            };
            place = next;
        }
        self.entries[place] = NONE;
    }

    /// No page is in any frame.
    pub fn clear(&mut self) {
        self.entries.fill(NONE);
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<u32>()
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
    fn it_is_where_entries_stand_far_from_where_they_hash_to() {
        is_a_map(Index { entries: vec![NONE; 505] });
    }

    fn is_a_map(mut index: Index) {
        let mut random = Stream::new(1, "index");
        let frames = 500u32;
        let mut pages = vec![u32::MAX; frames as usize];
        let mut free: Vec<u32> = (0..frames).collect();
        let mut map = BTreeMap::new();
        for _ in 0..200_000 {
            let page = random.below(1500) as u32 * 64;
            match map.remove(&page) {
                Some(frame) => {
                    index.remove(page, frame, &pages);
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
            let other = random.below(1500) as u32 * 64;
            assert_eq!(index.get(other, &pages), map.get(&other).copied());
        }
        assert_eq!(index.entries.iter().filter(|&&entry| entry != NONE).count(), map.len());
    }
}
