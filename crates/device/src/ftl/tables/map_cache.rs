//! The map cache: which map pages are in memory (DFTL's demand loading, with
//! LRU replacement; AutoSSD, §4.2).
//!
//! The map's contents are always at hand for the simulator; the cache decides
//! only what a look-up costs.

use super::Lane;
use crate::address::NONE;
use crate::sched::FlashOpId;

/// Index of a map page.
pub type MapPage = u32;

/// Logical pages translated by one 4 KiB map page of 32-bit addresses.
pub const LPNS_PER_MAP_PAGE: u32 = 1024;

/// Who waits for a map page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A request of the host.
    Request(u32),
    /// A job of garbage collection, once per moved page.
    Job(u32),
}

/// What memory holds of a map page that flash does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaved {
    /// The page, with changes.
    Changed,
    /// Changes to a page that is still being loaded.
    Loading,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Loading,
    /// In memory and in the LRU list.
    Cached,
    /// Evicted while dirty; in memory until it is programmed.
    Writing,
}

#[derive(Clone, Copy, Debug)]
struct PageState {
    state: State,
    dirty: bool,
    /// Touched again while it was being written.
    wanted: bool,
    newer: u32,
    older: u32,
    /// The last of those who wait for it; the first comes after that one.
    waiters: u32,
    /// While it is being loaded, the operation that reads it.
    loader: u32,
}

/// The cache of one partition.
#[derive(Clone, Debug)]
pub struct MapCache {
    pages: Vec<PageState>,
    capacity: u32,
    cached: u32,
    newest: u32,
    oldest: u32,
    /// Who waits, and who comes after: a ring for each page.
    waiters: Vec<(Waiter, u32)>,
    free_waiters: Vec<u32>,
    /// Evicted pages not yet programmed, by domain.
    pub lanes: Vec<Lane>,
}

impl MapCache {
    /// An empty cache of `capacity` out of `pages` map pages, in so many domains.
    pub fn new(pages: u32, capacity: u32, domains: u32) -> Self {
        let absent = PageState {
            state: State::Absent,
            dirty: false,
            wanted: false,
            newer: NONE,
            older: NONE,
            waiters: NONE,
            loader: NONE,
        };
        MapCache {
            pages: vec![absent; pages as usize],
            capacity: capacity.max(1),
            cached: 0,
            newest: NONE,
            oldest: NONE,
            waiters: Vec::new(),
            free_waiters: Vec::new(),
            lanes: vec![Lane::EMPTY; domains as usize],
        }
    }

    /// Uses a map page; true if it is in memory. `dirty` marks it as changed,
    /// now or, if it is being loaded, once it is there.
    pub fn touch(&mut self, page: MapPage, dirty: bool) -> bool {
        let page_state = &mut self.pages[page as usize];
        match page_state.state {
            State::Absent => return false,
            State::Loading => {
                page_state.dirty |= dirty;
                return false;
            }
            State::Writing => page_state.wanted = true,
            State::Cached => {
                if self.newest != page {
                    self.unlink(page);
                    self.link(page);
                }
            }
        }
        self.pages[page as usize].dirty |= dirty;
        true
    }

    /// Whether somebody is loading the page already; if not, the caller now is.
    pub fn begin_load(&mut self, page: MapPage) -> bool {
        let page_state = &mut self.pages[page as usize];
        debug_assert!(matches!(page_state.state, State::Absent | State::Loading));
        page_state.state == State::Loading || {
            page_state.state = State::Loading;
            false
        }
    }

    /// Notes which operation reads a page that is being loaded.
    pub fn set_loader(&mut self, page: MapPage, operation: FlashOpId) {
        self.pages[page as usize].loader = operation.0;
    }

    /// The operation that reads a page that is being loaded.
    pub fn loader(&self, page: MapPage) -> FlashOpId {
        debug_assert_eq!(self.pages[page as usize].state, State::Loading);
        FlashOpId(self.pages[page as usize].loader)
    }

    /// Lets `waiter` wait for a page that is being loaded.
    pub fn wait(&mut self, page: MapPage, waiter: Waiter) {
        let page_state = &mut self.pages[page as usize];
        debug_assert_eq!(page_state.state, State::Loading);
        let node = self.free_waiters.pop().unwrap_or(self.waiters.len() as u32);
        if node as usize == self.waiters.len() {
            self.waiters.push((waiter, node));
        }
        let first = match page_state.waiters {
            NONE => node,
            last => std::mem::replace(&mut self.waiters[last as usize].1, node),
        };
        self.waiters[node as usize] = (waiter, first);
        page_state.waiters = node;
    }

    /// The next of those who waited for a loaded page, in the order in which they
    /// came.
    pub fn next_waiter(&mut self, page: MapPage) -> Option<Waiter> {
        let page_state = &mut self.pages[page as usize];
        if page_state.waiters == NONE {
            return None;
        }
        let node = self.waiters[page_state.waiters as usize].1;
        let (waiter, next) = self.waiters[node as usize];
        if node == page_state.waiters {
            page_state.waiters = NONE;
        } else {
            self.waiters[page_state.waiters as usize].1 = next;
        }
        self.free_waiters.push(node);
        Some(waiter)
    }

    /// A page has arrived in memory.
    pub fn loaded(&mut self, page: MapPage) {
        let page_state = &mut self.pages[page as usize];
        debug_assert!(matches!(page_state.state, State::Loading | State::Absent));
        page_state.state = State::Cached;
        self.cached += 1;
        self.link(page);
    }

    /// Evicts the least recently used page if the cache is over its capacity.
    /// `Some((page, dirty))` tells which; a dirty one stays in memory until
    /// [`written`](Self::written).
    pub fn evict(&mut self) -> Option<(MapPage, bool)> {
        if self.cached <= self.capacity {
            return None;
        }
        let page = self.oldest;
        self.unlink(page);
        self.cached -= 1;
        let page_state = &mut self.pages[page as usize];
        let dirty = std::mem::take(&mut page_state.dirty);
        page_state.wanted = false;
        page_state.state = if dirty { State::Writing } else { State::Absent };
        Some((page, dirty))
    }

    /// An evicted page has been programmed. It goes back into the cache if it
    /// was used meanwhile.
    pub fn written(&mut self, page: MapPage) {
        let page_state = &mut self.pages[page as usize];
        debug_assert_eq!(page_state.state, State::Writing);
        if page_state.wanted {
            page_state.state = State::Cached;
            self.cached += 1;
            self.link(page);
        } else {
            page_state.state = State::Absent;
        }
    }

    /// What has to be programmed of a page so that flash holds its changes; those
    /// of a page in the cache are taken to be.
    pub fn save(&mut self, page: MapPage) -> Unsaved {
        let page_state = &mut self.pages[page as usize];
        match page_state.state {
            State::Loading => Unsaved::Loading,
            State::Writing => Unsaved::Changed,
            State::Cached if std::mem::take(&mut page_state.dirty) => Unsaved::Changed,
            State::Cached | State::Absent => Unsaved::Nothing,
        }
    }

    /// Map pages in all.
    pub fn pages(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Map pages the cache holds at most.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        self.pages.len() * size_of::<PageState>()
    }

    /// The cached pages, least recently used first.
    pub fn contents(&self) -> Vec<MapPage> {
        let next = |&page: &u32| Some(self.pages[page as usize].newer).filter(|&newer| newer != NONE);
        std::iter::successors(Some(self.oldest).filter(|&oldest| oldest != NONE), next).collect()
    }

    fn link(&mut self, page: MapPage) {
        let newest = self.newest;
        let page_state = &mut self.pages[page as usize];
        (page_state.newer, page_state.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = page,
            _ => self.pages[newest as usize].newer = page,
        }
        self.newest = page;
    }

    fn unlink(&mut self, page: MapPage) {
        let PageState { newer, older, .. } = self.pages[page as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.pages[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.pages[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_page_leaves_first() {
        let mut cache = MapCache::new(4, 2, 1);
        for page in [0, 1] {
            assert!(!cache.touch(page, false) && !cache.begin_load(page));
            cache.touch(page, page == 1);
            cache.loaded(page);
            assert_eq!(cache.evict(), None);
        }
        assert!(cache.touch(0, false));
        cache.begin_load(2);
        cache.loaded(2);
        assert_eq!(cache.evict(), Some((1, true)));
        // A dirty page stays in memory while it is written, and comes back if used.
        assert!(cache.touch(1, false));
        cache.written(1);
        assert_eq!(cache.evict(), Some((0, false)));
        assert!(!cache.touch(0, false));
    }

    #[test]
    fn waiters_are_told_once_and_in_order() {
        let mut cache = MapCache::new(2, 1, 1);
        let (request, job) = (Waiter::Request, Waiter::Job);
        for (page, waiter) in [(1, request(7)), (0, request(5)), (1, job(3)), (1, request(8))] {
            cache.begin_load(page);
            cache.wait(page, waiter);
        }
        for (page, waiters) in [(1, vec![request(7), job(3), request(8)]), (0, vec![request(5)])] {
            cache.loaded(page);
            let told: Vec<Waiter> = std::iter::from_fn(|| cache.next_waiter(page)).collect();
            assert_eq!(told, waiters);
        }
    }
}
