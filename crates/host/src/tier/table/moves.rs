//! How copies come, change and go.

use super::frame::State;
use super::{List, Table};

impl Table {
    /// The frame that a write of the page goes to.
    pub fn begin_write(&mut self, page: u64, sequence: u64) -> u32 {
        let page = page as u32;
        let readable = self.get(u64::from(page));
        let busy = self.hold(page);
        (busy.newest, busy.touched) = (sequence, sequence);
        busy.upper += 1;
        let own = readable.or(busy.first.checked_sub(1));
        let frame = match own {
            Some(frame) if !self.copies => frame,
            _ => {
                let frame = self.take(page);
                if !self.copies {
                    self.busy(page).first = frame + 1;
                }
                frame
            }
        };
        self.pin(frame);
        frame
    }

    /// The upper has done it, durably if it has to.
    pub fn end_write(&mut self, frame: u32, sequence: u64) {
        let page = self.pages[frame as usize];
        let copies = self.copies;
        let busy = self.busy(page);
        busy.upper -= 1;
        let is_old = copies && busy.acknowledged > sequence;
        let is_written_back = busy.is_written_back;
        if self.is_orphan(frame) {
            self.let_go(page);
            return self.unpin(frame);
        }
        if is_old {
            self.disown(frame);
        } else {
            let busy = self.busy(page);
            busy.acknowledged = busy.acknowledged.max(sequence);
            busy.first = 0;
            let former = self.get(u64::from(page));
            // A write is a use too.
            let uses = former.map_or(1, |former| self.uses(former));
            if let Some(former) = former.filter(|&former| former != frame) {
                // What the journal says of the newer one takes it off the older.
                self.frames[former as usize].set_journaled(false);
                self.disown(former);
            }
            if former != Some(frame) {
                self.index.insert(page, frame, &self.pages);
                self.frames[frame as usize].uses = uses;
            }
            let state = self.frames[frame as usize].state();
            if !is_written_back && state != State::Modified {
                self.set_state(frame, State::Modified);
            } else if is_written_back && state != State::Draining {
                // It joins the list when what is older has got to the lower.
                self.set_state(frame, State::Draining);
            }
        }
        self.let_go(page);
        self.unpin(frame);
    }

    /// The upper has not done it: the frame holds what it held, or what it should have
    /// got.
    pub fn fail_write(&mut self, frame: u32, sequence: u64) {
        let page = self.pages[frame as usize];
        let copies = self.copies;
        let busy = self.busy(page);
        busy.upper -= 1;
        if busy.newest == sequence {
            busy.newest = busy.acknowledged;
        }
        let is_last = copies || busy.upper == 0;
        if is_last && self.frames[frame as usize].state() == State::Pending {
            self.busy(page).first = 0;
            self.disown(frame);
        }
        self.let_go(page);
        self.unpin(frame);
    }

    /// The lower gets a change of the page.
    pub fn begin_lower(&mut self, page: u64, sequence: u64) {
        let busy = self.hold(page as u32);
        busy.lower += 1;
        busy.touched = sequence;
    }

    /// It has done it: an older copy here is of no use any more. Returns whether that is what
    /// is read from now on.
    pub fn end_lower(&mut self, page: u64, sequence: u64) -> bool {
        let page = page as u32;
        let busy = self.busy(page);
        busy.lower -= 1;
        let (newest, first) = (busy.newest, busy.first.checked_sub(1));
        let is_newest = !busy.is_written_back && busy.acknowledged <= sequence;
        if is_newest {
            busy.acknowledged = sequence;
            let readable = self.get(u64::from(page));
            match readable.or(first) {
                Some(frame) if !self.copies && newest > sequence => {
                    // What it holds is old; what it is getting is newer.
                    if readable.is_some() {
                        self.index.remove(page, frame);
                        self.set_state(frame, State::Pending);
                    }
                    self.busy(page).first = frame + 1;
                }
                Some(frame) => {
                    self.busy(page).first = 0;
                    self.disown(frame);
                }
                None => {}
            }
        }
        self.let_go(page);
        is_newest
    }

    /// It has not: it has the old copy, or the new one.
    pub fn fail_lower(&mut self, page: u64) {
        self.busy(page as u32).lower -= 1;
        self.let_go(page as u32);
    }

    /// Takes the oldest modified frame off its list, to read it for the lower;
    /// returns it with its sequence. `None` if it is busy and thus put back.
    pub fn begin_drain(&mut self) -> Option<(u32, u64)> {
        let frame = self.oldest(List::Modified)?;
        self.begin_drain_of(frame)
    }

    /// The same for this frame.
    pub fn begin_drain_of(&mut self, frame: u32) -> Option<(u32, u64)> {
        let page = self.pages[frame as usize];
        let busy = self.busy.get(page).copied().unwrap_or_default();
        if busy.upper > 0 || busy.lower > 0 || busy.is_written_back {
            self.set_state(frame, State::Modified);
            return None;
        }
        self.set_state(frame, State::Draining);
        self.pin(frame);
        let newest = self.hold(page).newest;
        Some((frame, newest))
    }

    /// The copy has been read; returns the page to write it to, unless there are newer
    /// changes, which decide.
    pub fn begin_write_back(&mut self, frame: u32, sequence: u64) -> Option<u64> {
        let page = self.pages[frame as usize];
        let is_own = self.get(u64::from(page)) == Some(frame);
        let busy = self.busy(page);
        if is_own && busy.newest == sequence && busy.lower == 0 {
            busy.is_written_back = true;
            return Some(u64::from(page));
        }
        if is_own {
            self.relist(frame);
        }
        self.let_go(page);
        self.unpin(frame);
        None
    }

    /// The copy cannot be read now.
    pub fn fail_drain(&mut self, frame: u32) {
        self.relist(frame);
        self.let_go(self.pages[frame as usize]);
        self.unpin(frame);
    }

    /// The lower has not taken the copy: the frame keeps it.
    pub fn fail_write_back(&mut self, frame: u32) {
        let page = self.pages[frame as usize];
        self.busy(page).is_written_back = false;
        if let Some(own) = self.get(u64::from(page)) {
            self.relist(own);
        }
        self.let_go(page);
        self.unpin(frame);
    }

    /// The lower has the copy. Unless the page was written again, the frame is clean if
    /// `keeps`, and free otherwise. Returns the page that the lower has then.
    pub fn end_write_back(&mut self, frame: u32, sequence: u64, keeps: bool) -> Option<u64> {
        let page = self.pages[frame as usize];
        let busy = self.busy(page);
        busy.is_written_back = false;
        let is_newest = busy.newest == sequence;
        let own = self.get(u64::from(page));
        let is_below = own == Some(frame) && is_newest;
        match own {
            Some(_) if is_below && keeps => self.set_state(frame, State::Clean),
            Some(_) if is_below => self.disown(frame),
            Some(own) => self.relist(own),
            None => {}
        }
        self.let_go(page);
        self.unpin(frame);
        is_below.then_some(u64::from(page))
    }

    /// A readable frame with something newer than the lower stands in the list again.
    fn relist(&mut self, frame: u32) {
        if self.frames[frame as usize].state() == State::Draining {
            self.set_state(frame, State::Modified);
        }
    }

    /// Whether a change of the frame's page is on its way.
    #[inline(always)]
    pub fn is_changing(&self, frame: u32) -> bool {
        let busy = self.busy.get(self.pages[frame as usize]);
        busy.is_some_and(|busy| busy.upper > 0 || busy.lower > 0)
    }

    /// The clean frame is the newest of its list.
    #[inline(always)]
    pub fn put_back(&mut self, frame: u32) {
        self.set_state(frame, State::Clean);
    }

    /// Gives the clean frame away.
    #[inline(always)]
    pub fn drop_clean(&mut self, frame: u32) {
        debug_assert!(matches!(self.frames[frame as usize].state(), State::Clean | State::Leaving));
        self.disown(frame);
    }

    /// Takes a clean frame off its list, to read it and offer it to the lower.
    pub fn begin_leaving(&mut self, frame: u32) {
        self.set_state(frame, State::Leaving);
        self.pin(frame);
    }

    /// The copy has been read; returns its page and uses, unless it is old by now.
    pub fn end_leaving(&mut self, frame: u32) -> Option<(u64, u8)> {
        let page = self.pages[frame as usize];
        let uses = self.uses(frame);
        let is_leaving = self.frames[frame as usize].state() == State::Leaving;
        let leaves = is_leaving && !self.is_changing(frame);
        if leaves {
            self.disown(frame);
        } else if is_leaving {
            self.set_state(frame, State::Clean);
        }
        self.unpin(frame);
        leaves.then_some((u64::from(page), uses))
    }

    /// Somebody reads the page from the lower, and may keep what is found.
    pub fn begin_read(&mut self, page: u64) {
        self.hold(page as u32);
    }

    /// And has.
    pub fn end_read(&mut self, page: u64) {
        self.let_go(page as u32);
    }

    /// Whether a change of the page to the lower would leave an older copy here.
    pub fn has_copy(&self, page: u64) -> bool {
        self.get(page).is_some() || self.busy.get(page as u32).is_some_and(|busy| busy.upper > 0)
    }

    /// Whether what the lower held after change `sequence`, when somebody
    /// [began to read](Self::begin_read) the page there, is what it holds, and is not here, nor
    /// on its way.
    #[inline(always)]
    pub fn is_missing(&self, page: u64, sequence: u64) -> bool {
        let is_alone = self.busy.get(page as u32).is_some_and(|busy| !busy.is_shared);
        // Whatever comes of a page holds its entry.
        is_alone || self.is_quiet(page, sequence) && self.get(page).is_none()
    }

    /// The same of a page that is not here.
    #[inline]
    pub fn is_quiet(&self, page: u64, sequence: u64) -> bool {
        self.busy.get(page as u32).is_none_or(|busy| {
            busy.touched <= sequence && busy.upper == 0 && busy.lower == 0 && !busy.is_filling
        })
    }

    /// The frame that gets a copy of what the lower holds of a page that
    /// [`is_missing`](Self::is_missing).
    pub fn begin_fill(&mut self, page: u64) -> u32 {
        self.hold(page as u32);
        self.begin_fill_as_read(page)
    }

    /// The same once somebody has read it, who does not end that otherwise.
    #[inline(always)]
    pub fn begin_fill_as_read(&mut self, page: u64) -> u32 {
        self.busy(page as u32).is_filling = true;
        let frame = self.take(page as u32);
        self.pin(frame);
        frame
    }

    /// The upper has it, if `is_ok`: it is clean, and was used so often, unless the page
    /// has changed since change `sequence`.
    #[inline(always)]
    pub fn end_fill(&mut self, frame: u32, sequence: u64, uses: u8, is_ok: bool) {
        let page = self.pages[frame as usize];
        let busy = self.busy(page);
        busy.is_filling = false;
        if busy.touched > sequence || !is_ok {
            self.disown(frame);
        } else {
            self.index.insert(page, frame, &self.pages);
            self.frames[frame as usize].uses = uses;
            self.set_state(frame, State::Clean);
        }
        self.let_go(page);
        self.unpin(frame);
    }
}
