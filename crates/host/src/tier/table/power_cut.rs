//! What a power cut leaves of the table.

use super::frame::{Frame, State};
use super::{List, NONE, Oldest, Table, Uses};

impl Table {
    /// Power is cut: nothing is on its way any more, and frames are kept where
    /// `keeps_modified` or the journal names them.
    pub fn cut_power(&mut self, keeps_modified: bool) {
        let kept = |frame: Frame| match frame.state() {
            State::Modified | State::Draining => keeps_modified || frame.is_journaled(),
            State::Clean | State::Leaving => frame.is_journaled(),
            State::Free | State::Pending | State::Orphan => false,
        };
        let found = self.frames.iter().zip(&self.pages);
        let found = found.map(|(&frame, &page)| if kept(frame) { page } else { NONE }).collect::<Vec<_>>();
        let is_journaled = !keeps_modified;
        self.rebuild(&found, is_journaled);
    }

    /// Begins anew with the pages of frames that were found, as modified; `is_journaled`
    /// says that the journal names them.
    pub fn rebuild(&mut self, found: &[u32], is_journaled: bool) {
        self.busy.clear();
        self.pins.clear();
        self.releases.clear();
        self.index.clear();
        self.oldest.iter_mut().for_each(Oldest::clear);
        self.counts = [0; 2];
        self.clean_uses = Uses::default();
        (self.modified, self.first_free, self.free) = (0, NONE, 0);
        self.stamps.iter_mut().for_each(|stamp| *stamp = stamp.out());
        let mut kept = Vec::new();
        for (frame, &page) in (0..self.frames.len() as u32).zip(found).rev() {
            if page == NONE {
                self.give(frame);
                continue;
            }
            self.pages[frame as usize] = page;
            self.frames[frame as usize] = Frame::new(State::Modified);
            self.frames[frame as usize].set_journaled(is_journaled);
            self.index.insert(page, frame, &self.pages);
            self.modified += 1;
            kept.push(frame);
        }
        // Those that were in no list may have the stamps of others.
        kept.sort_unstable_by_key(|&frame| (self.stamp(frame), frame));
        for frame in kept {
            self.join(frame, List::Modified);
        }
    }
}
