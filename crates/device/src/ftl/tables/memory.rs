//! Memory for the bytes of pages.

use std::sync::Arc;

use super::Tables;
use super::medium::Page;

/// Memory that pages have left, for those that come. A page that lies in several places, as
/// one that is being moved does, is there once.
///
/// Given back to the system, memory would have to be asked for again page by page, which takes
/// longer than all that is done with a page; and a served drive is late meanwhile.
#[derive(Clone, Default)]
pub(super) struct Memory {
    left: Vec<Arc<Page>>,
}

/// So many pages are kept for what comes at once, such as writes that have waited for a buffer,
const READY: usize = 1024;
/// and so many are made at a time, in some ten microseconds.
const STEP: usize = 16;

impl Memory {
    /// Makes some pages that will be needed, unless there are enough.
    pub fn prepare(&mut self) -> bool {
        let lacks = self.left.len() < READY;
        if lacks {
            self.left.extend((0..STEP).map(|_| Arc::new([0; _])));
        }
        lacks
    }

    /// A page with such bytes.
    pub fn page(&mut self, bytes: &Page) -> Arc<Page> {
        let Some(mut page) = self.left.pop() else { return Arc::new(*bytes) };
        // A copy of the device may still hold it.
        match Arc::get_mut(&mut page) {
            Some(place) => place.copy_from_slice(bytes),
            None => page = Arc::new(*bytes),
        }
        page
    }

    /// A place has given up its page.
    pub fn give_back(&mut self, page: Arc<Page>) {
        if Arc::strong_count(&page) == 1 {
            self.left.push(page);
        }
    }
}

impl Tables {
    /// Makes memory for pages that will be written, unless there is enough or none is needed.
    pub fn prepare_memory(&mut self) -> bool {
        self.pages.as_mut().is_some_and(|pages| pages.memory.prepare())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_its_page_is_nowhere() {
        let mut memory = Memory::default();
        let page = memory.page(&[1; _]);
        let (place, moved) = (Arc::as_ptr(&page), page.clone());
        memory.give_back(page);
        let other = memory.page(&[2; _]);
        assert_ne!(Arc::as_ptr(&other), place, "it still lies where it was moved to");
        assert_eq!(moved[0], 1);
        memory.give_back(moved);
        let again = memory.page(&[3; _]);
        assert_eq!((Arc::as_ptr(&again), again[0]), (place, 3));
    }

    #[test]
    fn a_copy_of_a_device_keeps_its_bytes() {
        let mut memory = Memory::default();
        let page = memory.page(&[1; _]);
        memory.give_back(page);
        let mut copy = memory.clone();
        let (ours, theirs) = (memory.page(&[2; _]), copy.page(&[3; _]));
        assert_eq!((ours[0], theirs[0]), (2, 3));
    }

    #[test]
    fn what_is_prepared_is_bounded() {
        let mut memory = Memory::default();
        while memory.prepare() {}
        assert!((READY..READY + STEP).contains(&memory.left.len()));
    }
}
