//! What the upper device holds: which page of the lower each of its frames has a
//! copy of, which copies are newer, and when a frame may be given away.
//!
//! At most 16 bytes a frame, whatever the size of the lower device; what is on its way
//! is kept beside, by as much as there are requests inside.

mod frame;
mod index;
mod moves;
mod oldest;
mod power_cut;
mod small;
#[cfg(test)]
mod tests;
mod uses;

use frame::{Frame, State};
use index::Index;
use oldest::{Oldest, Stamp};
use small::Small;
pub use uses::Uses;

/// No frame, and no page.
pub(super) const NONE: u32 = u32::MAX;
/// Frames that a table can have.
pub(crate) const MOST_FRAMES: u64 = index::MOST_FRAMES;

/// The lists that readable frames stand in, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Copies of what the lower has too.
    Clean,
    /// Newer than what the lower has.
    Modified,
}

/// What is on its way for a page.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    /// Those who need this entry.
    holders: u32,
    /// Whether there have been two of them at once.
    is_shared: bool,
    /// Writes on their way to the upper.
    upper: u32,
    /// Writes on their way to the lower.
    lower: u32,
    /// A copy from elsewhere is being written to the upper.
    is_filling: bool,
    /// The copy in the upper is being written to the lower.
    is_written_back: bool,
    /// The frame, and one more, that is getting its first copy where frames are written
    /// in place; 0 for none.
    first: u32,
    /// The newest write that the upper has got, by the order of submission.
    newest: u64,
    /// The newest change that was acknowledged.
    acknowledged: u64,
    /// The newest change that was submitted.
    touched: u64,
}

/// The frames of an upper device over the pages of a lower one.
#[derive(Clone)]
pub(crate) struct Table {
    /// Pages of the lower.
    lower_pages: u64,
    /// Whether a page that is written again is written to another frame, so that a cut
    /// leaves the old copy whole.
    copies: bool,
    index: Index,
    /// The page of each frame; of a free one, the next free frame.
    pages: Vec<u32>,
    /// When each frame came into its list, and which that is; some more than frames.
    stamps: Vec<Stamp>,
    frames: Vec<Frame>,
    clock: u32,
    oldest: [Oldest; 2],
    counts: [u32; 2],
    /// Of the frames on the clean list.
    clean_uses: Uses,
    first_free: u32,
    free: u32,
    /// Frames with a copy that the lower has not got.
    modified: u32,
    busy: Small<Busy>,
    /// Requests that stand on frames beside the first.
    pins: Small<u32>,
    /// Frames that the journal names and that are to be given away.
    releases: Vec<u32>,
}

impl Table {
    /// With so many frames. `copies` says that a page that is written again goes to
    /// another frame.
    pub fn new(lower_pages: u64, frames: u64, copies: bool) -> Table {
        assert!(frames <= MOST_FRAMES && lower_pages < u64::from(NONE), "sizes have been checked");
        let count = frames as u32;
        let mut table = Table {
            lower_pages,
            copies,
            index: Index::new(count),
            pages: vec![NONE; frames as usize],
            stamps: oldest::stamps(frames as usize),
            frames: vec![Frame::default(); frames as usize],
            clock: 0,
            oldest: [List::Clean, List::Modified].map(|list| Oldest::new(list as u32, frames as usize)),
            counts: [0; 2],
            clean_uses: Uses::default(),
            first_free: NONE,
            free: 0,
            modified: 0,
            busy: Small::default(),
            pins: Small::default(),
            releases: Vec::new(),
        };
        (0..count).rev().for_each(|frame| table.give(frame));
        table
    }

    /// Pages of the lower.
    pub fn lower_pages(&self) -> u64 {
        self.lower_pages
    }

    /// All frames.
    pub fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Frames in use.
    pub fn used(&self) -> u64 {
        self.len() - u64::from(self.free)
    }

    /// Frames that are free.
    pub fn free(&self) -> u64 {
        u64::from(self.free)
    }

    /// Frames with a copy that the lower has not got.
    pub fn modified(&self) -> u64 {
        u64::from(self.modified)
    }

    /// Frames in a list.
    pub fn count(&self, list: List) -> u64 {
        u64::from(self.counts[list as usize])
    }

    /// Bytes of all that is kept for each frame.
    pub fn bytes(&self) -> usize {
        let each = size_of::<u32>() + size_of::<Stamp>() + size_of::<Frame>();
        let oldest: usize = self.oldest.iter().map(Oldest::bytes).sum();
        self.index.bytes() + self.frames.len() * each + oldest
    }

    /// The frame to read a page from, if it is not the lower.
    #[inline]
    pub fn get(&self, page: u64) -> Option<u32> {
        self.index.get(page as u32, &self.pages)
    }

    /// The page of a frame in use.
    pub fn page(&self, frame: u32) -> u64 {
        u64::from(self.pages[frame as usize])
    }

    /// Whether a change of the page must go to the upper: the lower is getting the
    /// older copy, and two changes at once could end in either order.
    pub fn must_take(&self, page: u64) -> bool {
        self.busy.get(page as u32).is_some_and(|busy| busy.is_written_back)
    }

    /// Whether a write of the page to the upper needs a free frame.
    pub fn needs_room(&self, page: u64) -> bool {
        let has_own =
            || self.get(page).is_some() || self.busy.get(page as u32).is_some_and(|busy| busy.first != 0);
        self.copies || !has_own()
    }

    /// The oldest frame of a list.
    #[inline(always)]
    pub fn oldest(&mut self, list: List) -> Option<u32> {
        if self.counts[list as usize] == 0 {
            return None;
        }
        self.oldest[list as usize].find(&self.stamps, self.clock)
    }

    /// When a frame came into its list: one that came later has a larger number.
    pub fn stamp(&self, frame: u32) -> u32 {
        self.stamps[frame as usize].time()
    }

    /// The uses of the frames on the clean list.
    pub fn clean_uses(&self) -> &Uses {
        &self.clean_uses
    }

    /// How often a frame has been used.
    pub fn uses(&self, frame: u32) -> u8 {
        self.frames[frame as usize].uses
    }

    /// The frame has been used: it is the newest of its list.
    pub fn touch(&mut self, frame: u32) {
        let list = self.frames[frame as usize].list();
        if let Some(list) = list {
            self.leave(frame, list);
        }
        let uses = &mut self.frames[frame as usize].uses;
        *uses = uses.saturating_add(1);
        if let Some(list) = list {
            self.join(frame, list);
        }
    }

    /// The frame has been used at least so often above.
    pub fn raise_uses(&mut self, frame: u32, uses: u8) {
        let before = self.uses(frame);
        if uses > before {
            if self.frames[frame as usize].state() == State::Clean {
                self.clean_uses.take_off(before);
                self.clean_uses.add(uses);
            }
            self.frames[frame as usize].uses = uses;
        }
    }

    /// Somebody stands on the frame, which must not be given away meanwhile.
    #[inline(always)]
    pub fn pin(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        if state.is_pinned() {
            state.set_shared(true);
            *self.pins.entry(frame) += 1;
        }
        state.set_pinned(true);
    }

    /// And does not any more.
    #[inline(always)]
    pub fn unpin(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        assert!(state.is_pinned(), "it was pinned");
        if !state.is_shared() {
            state.set_pinned(false);
            return self.give_if_idle(frame);
        }
        let others = self.pins.get_mut(frame).expect("it is shared");
        *others -= 1;
        if *others == 0 {
            self.pins.remove(frame);
            state.set_shared(false);
        }
    }

    /// The journal names the frame's page, durably.
    pub fn journaled(&mut self, frame: u32) {
        self.frames[frame as usize].set_journaled(true);
    }

    /// Whether the journal names the frame's page, and the frame is not given away.
    pub fn is_journaled(&self, frame: u32) -> bool {
        let state = &self.frames[frame as usize];
        state.is_journaled() && state.state() != State::Orphan
    }

    /// Whether nobody will read the frame again.
    pub fn is_orphan(&self, frame: u32) -> bool {
        self.frames[frame as usize].state() == State::Orphan
    }

    /// Frames to be given away once the journal says so.
    pub fn releases(&mut self) -> &mut Vec<u32> {
        &mut self.releases
    }

    /// The journal does not name the frame any more.
    pub fn released(&mut self, frame: u32) {
        self.frames[frame as usize].set_journaled(false);
        self.give_if_idle(frame);
    }

    #[inline(always)]
    fn hold(&mut self, page: u32) -> &mut Busy {
        let busy = self.busy.entry(page);
        busy.is_shared |= busy.holders > 0;
        busy.holders += 1;
        busy
    }

    #[inline(always)]
    fn busy(&mut self, page: u32) -> &mut Busy {
        self.busy.get_mut(page).expect("somebody holds it")
    }

    #[inline(always)]
    fn let_go(&mut self, page: u32) {
        let busy = self.busy(page);
        busy.holders -= 1;
        if busy.holders == 0 {
            self.busy.remove(page);
        }
    }

    /// Takes a free frame for a page.
    #[inline(always)]
    fn take(&mut self, page: u32) -> u32 {
        let frame = self.first_free;
        assert_ne!(frame, NONE, "there was room");
        self.first_free = self.pages[frame as usize];
        self.free -= 1;
        self.pages[frame as usize] = page;
        self.frames[frame as usize] = Frame::new(State::Pending);
        frame
    }

    fn give(&mut self, frame: u32) {
        self.pages[frame as usize] = self.first_free;
        self.frames[frame as usize] = Frame::default();
        self.first_free = frame;
        self.free += 1;
    }

    #[inline(always)]
    fn give_if_idle(&mut self, frame: u32) {
        if self.frames[frame as usize].is_idle_orphan() {
            self.give(frame);
        }
    }

    /// The frame's copy is of no use any more.
    #[inline(always)]
    fn disown(&mut self, frame: u32) {
        let page = self.pages[frame as usize];
        self.index.remove(page, frame);
        self.set_state(frame, State::Orphan);
        if self.frames[frame as usize].is_journaled() {
            self.releases.push(frame);
        }
        self.give_if_idle(frame);
    }

    #[inline(always)]
    fn set_state(&mut self, frame: u32, state: State) {
        let before = self.frames[frame as usize];
        if let Some(list) = before.list() {
            self.leave(frame, list);
        }
        self.modified -= u32::from(before.state().is_modified());
        self.modified += u32::from(state.is_modified());
        self.frames[frame as usize].set_state(state);
        if let Some(list) = self.frames[frame as usize].list() {
            self.join(frame, list);
        }
    }

    #[inline(always)]
    fn leave(&mut self, frame: u32, list: List) {
        let stamp = &mut self.stamps[frame as usize];
        *stamp = stamp.out();
        self.counts[list as usize] -= 1;
        if list == List::Clean {
            self.clean_uses.take_off(self.uses(frame));
        }
    }

    /// The frame is the newest of the list.
    #[inline(always)]
    fn join(&mut self, frame: u32, list: List) {
        if self.clock == Stamp::LAST {
            self.renumber();
        }
        self.clock += 1;
        let stamp = Stamp::new(self.clock, list as u32);
        self.stamps[frame as usize] = stamp;
        self.oldest[list as usize].add(frame, stamp);
        self.counts[list as usize] += 1;
        if list == List::Clean {
            self.clean_uses.add(self.uses(frame));
        }
    }

    /// There are no stamps left: begins with small ones again, in the same order.
    #[cold]
    fn renumber(&mut self) {
        let mut order: Vec<u32> = (0..self.frames.len() as u32).collect();
        order.sort_unstable_by_key(|&frame| self.stamps[frame as usize].time());
        self.clock = order.len() as u32;
        self.oldest.iter_mut().for_each(Oldest::clear);
        for (time, frame) in (1..).zip(order) {
            let stamp = self.stamps[frame as usize].at(time);
            self.stamps[frame as usize] = stamp;
            if let Some(list) = self.frames[frame as usize].list() {
                self.oldest[list as usize].add(frame, stamp);
            }
        }
    }
}
