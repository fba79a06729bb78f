//! Which frame a page is in: a hash table of fixed size, with the entries in the
//! places nearest to where they hash to. What is taken out leaves no mark.

/// No frame.
const NONE: u32 = u32::MAX;
/// Bits of an entry that name the frame; those above repeat a part of the hash, so
/// that another page's frame is rarely looked at.
const FRAME_BITS: u32 = 28;
/// Frames that an index can name.
pub(super) const MOST_FRAMES: u64 = (1 << FRAME_BITS) - 1;

/// The frames of pages; `pages` of the calls is the page of each frame.
#[derive(Clone)]
pub(super) struct Index {
    /// Not more than 0.72 of them are taken.
    entries: Vec<u32>,
}

/// Spreads pages that follow one another over all places.
fn hash(page: u32) -> u64 {
    let mixed = (u64::from(page) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn entry(page: u32, frame: u32) -> u32 {
    frame | (hash(page) as u32) << FRAME_BITS
}

fn frame_of(entry: u32) -> u32 {
    entry & ((1 << FRAME_BITS) - 1)
}

impl Index {
    /// For so many frames.
    pub fn new(frames: u32) -> Index {
        Index { entries: vec![NONE; (u64::from(frames) * 25).div_ceil(18) as usize + 1] }
    }

    /// Where the search for a page begins.
    fn home(&self, page: u32) -> usize {
        (((hash(page) >> 32) * self.entries.len() as u64) >> 32) as usize
    }

    fn next(&self, place: usize) -> usize {
        if place + 1 == self.entries.len() { 0 } else { place + 1 }
    }

    /// The place of a page, or where it would stand.
    #[inline]
    fn find(&self, page: u32, pages: &[u32]) -> Result<usize, usize> {
        let tag = entry(page, 0);
        let mut place = self.home(page);
        loop {
            match self.entries.get(place) {
                None => place = 0,
                Some(&NONE) => return Err(place),
                Some(&found) => {
                    if (found ^ tag) >> FRAME_BITS == 0 && pages[frame_of(found) as usize] == page {
                        return Ok(place);
                    }
                    place += 1;
                }
            }
        }
    }

    /// The frame of a page.
    #[inline]
    pub fn get(&self, page: u32, pages: &[u32]) -> Option<u32> {
        self.find(page, pages).ok().map(|place| frame_of(self.entries[place]))
    }

    /// The page, whose frame it is already, is in that frame from now on.
    pub fn insert(&mut self, page: u32, frame: u32, pages: &[u32]) {
        let place = match self.find(page, pages) {
            Ok(place) | Err(place) => place,
        };
        self.entries[place] = entry(page, frame);
    }

    /// The page is not in that frame, if it was; those behind it move up.
    pub fn remove(&mut self, page: u32, frame: u32, pages: &[u32]) {
        let Ok(mut hole) = self.find(page, pages) else { return };
        if frame_of(self.entries[hole]) != frame {
            return;
        }
        // How far the hole is before the place that is looked at.
        let mut distance = 0;
        let mut place = hole;
        loop {
            (place, distance) = (self.next(place), distance + 1);
            let moved = self.entries[place];
            if moved == NONE {
                break;
            }
            // One that hashes behind the hole would not be found in it.
            let home = self.home(pages[frame_of(moved) as usize]);
            let way = if home <= place { place - home } else { place + self.entries.len() - home };
            if way >= distance {
                self.entries[hole] = moved;
                (hole, distance) = (place, 0);
            }
        }
        self.entries[hole] = NONE;
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
        let mut random = Stream::new(1, "index");
        let frames = 500u32;
        let mut pages = vec![NONE; frames as usize];
        let mut index = Index::new(frames);
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
