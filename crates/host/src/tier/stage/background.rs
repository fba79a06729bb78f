//! What moves by itself: from the upper to the lower, and out of the upper.

use flashkeel_engine::{
    Arena, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Operation, Outbox, Payload, Request, Time,
};

use super::{Piece, Reason, Tier, Trouble, background};
use crate::tier::journal::Journal;
use crate::tier::table::List;
use crate::tier::writeback::View;

/// Frames on their way out at once, but for those that a request needs.
const EVICTIONS: u64 = 64;

impl Tier {
    /// Does what follows from what has just happened.
    #[inline(always)]
    pub(super) fn go_on(&mut self, now: Time, is_timer: bool, data: &mut Arena, outbox: &mut Outbox) {
        if self.recovery.is_some() {
            return;
        }
        if !self.held.is_empty() {
            self.change_held(now, outbox);
        }
        if !self.has_room(0) {
            self.make_room(now, 0, data, outbox);
        }
        if self.writes_back {
            let wanted = self.ask_writeback(now, is_timer);
            if wanted > 0 && self.trouble == Trouble::None {
                self.write_back(now, wanted, data, outbox);
            }
        }
        if self.journal.as_ref().is_some_and(Journal::is_due) {
            self.write_journal(now, data, outbox);
        }
    }

    /// Tries once more what waits for room.
    #[cold]
    fn change_held(&mut self, now: Time, outbox: &mut Outbox) {
        for _ in 0..self.held.len() {
            let Some((submitted, request)) = self.held.pop_front() else { break };
            self.change(now, submitted, &request, false, outbox);
        }
    }

    /// How many pages more are to be written back now.
    pub(super) fn ask_writeback(&mut self, now: Time, is_timer: bool) -> u64 {
        let view = View {
            is_timer,
            frames: self.table.len(),
            used: self.table.used(),
            modified: self.table.modified(),
            on_their_way: self.draining,
            reads: self.reads,
        };
        let wanted = self.writeback.wants(now, view);
        if self.asks_again.is_some() {
            self.asks_again = self.writeback.next_event();
        }
        wanted
    }

    fn buffer(&self, data: &mut Arena, pages: u64) -> Payload {
        if self.has_bytes { data.take((pages * LOGICAL_PAGE_SECTORS) as u32) } else { Payload::NONE }
    }

    /// Begins to write back so many pages, oldest first.
    pub(super) fn write_back(&mut self, now: Time, wanted: u64, data: &mut Arena, outbox: &mut Outbox) {
        let mut left = wanted;
        for _ in 0..self.table.count(List::Modified) {
            if left == 0 {
                return;
            }
            let Some((frame, sequence)) = self.table.begin_drain() else { continue };
            left -= 1;
            self.draining += 1;
            self.take_out(now, frame, sequence, Reason::WriteBack, data, outbox);
        }
    }

    /// Reads a frame to move its page.
    #[inline(always)]
    fn take_out(
        &mut self,
        now: Time,
        frame: u32,
        sequence: u64,
        reason: Reason,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let payload = self.buffer(data, 1);
        let read = background(Operation::Read, Lba(0), LOGICAL_PAGE_SECTORS, payload);
        self.give_upper(now, Piece::Moved { frame, sequence, payload, reason }, &read, 0, frame, 1, outbox);
    }

    /// Evicts until so many frames are free, and those that are kept so, or as many are
    /// on their way out.
    pub(super) fn make_room(&mut self, now: Time, needed: u64, data: &mut Arena, outbox: &mut Outbox) {
        // One that is busy goes to the end of its list, so that the search ends.
        let mut left = self.table.len();
        while !self.has_room(needed) && left > 0 && self.evict(now, data, outbox) {
            left -= 1;
        }
    }

    /// Whether so many frames are free and those that are kept so, or all are on their way
    /// out that may be.
    #[inline]
    fn has_room(&self, needed: u64) -> bool {
        let releasing = self.journal.as_ref().map_or(0, |journal| journal.releasing());
        let coming = self.evicting + releasing;
        self.table.free() + coming >= needed + self.ahead || coming >= EVICTIONS.max(needed)
    }

    /// Sets about to give the frame away that is the next to leave, if there is one.
    #[inline(never)]
    fn evict(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) -> bool {
        let clean = self.table.oldest(List::Clean);
        let modified = self.table.oldest(List::Modified);
        let stamp = |frame: Option<u32>| frame.map(|frame| self.table.stamp(frame));
        match self.eviction.victim(stamp(clean), stamp(modified)) {
            None => return false,
            Some(List::Clean) => {
                let frame = clean.expect("the victim's list has one");
                if self.table.is_changing(frame) {
                    // It may be getting what nobody else has.
                    self.table.put_back(frame);
                    return true;
                }
                self.accounts.evicted_clean += 1;
                if self.demotes {
                    self.table.begin_leaving(frame);
                    self.evicting += 1;
                    self.take_out(now, frame, self.sequence, Reason::Demote, data, outbox);
                } else {
                    self.table.drop_clean(frame);
                    self.release();
                }
            }
            Some(List::Modified) => {
                if self.trouble != Trouble::None {
                    return false;
                }
                let frame = modified.expect("the victim's list has one");
                if let Some((frame, sequence)) = self.table.begin_drain_of(frame) {
                    self.accounts.evicted_modified += 1;
                    self.evicting += 1;
                    self.take_out(now, frame, sequence, Reason::Evict, data, outbox);
                }
            }
        }
        true
    }

    /// A frame has been read to move its page, or could not be.
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    pub(super) fn moved(
        &mut self,
        now: Time,
        frame: u32,
        sequence: u64,
        payload: Payload,
        reason: Reason,
        is_ok: bool,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        if reason == Reason::Demote {
            let leaving = self.table.end_leaving(frame);
            self.evicting -= 1;
            self.release();
            let Some((page, uses)) = leaving.filter(|_| is_ok) else { return data.give_back(payload) };
            self.accounts.demoted_bytes += LOGICAL_PAGE_BYTES;
            let lba = Lba(page * LOGICAL_PAGE_SECTORS);
            let demotion =
                Request { uses, ..background(Operation::Demote, lba, LOGICAL_PAGE_SECTORS, payload) };
            return self.give_lower(now, Piece::Demoted { payload }, &demotion, outbox);
        }
        let page = if is_ok {
            self.table.begin_write_back(frame, sequence)
        } else {
            self.table.fail_drain(frame);
            None
        };
        let Some(page) = page else {
            data.give_back(payload);
            return self.end_move(reason);
        };
        let lba = Lba(page * LOGICAL_PAGE_SECTORS);
        let fua = self.must_force();
        let write = Request { fua, ..background(Operation::Write, lba, LOGICAL_PAGE_SECTORS, payload) };
        let piece = Piece::WriteBack { frame, sequence, payload, reason, submitted: now };
        self.give_lower(now, piece, &write, outbox);
    }

    /// The lower has taken a page, or has not.
    pub(super) fn written_back(&mut self, frame: u32, sequence: u64, reason: Reason, is_ok: bool) {
        if is_ok {
            self.accounts.drained_bytes += LOGICAL_PAGE_BYTES;
            let keeps = reason == Reason::WriteBack && self.keeps;
            if let Some(page) = self.table.end_write_back(frame, sequence, keeps) {
                self.hand_over(page);
            }
            self.release();
        } else {
            self.accounts.failed_writebacks += 1;
            self.table.fail_write_back(frame);
        }
        self.end_move(reason);
    }

    fn end_move(&mut self, reason: Reason) {
        match reason {
            Reason::WriteBack => self.draining -= 1,
            Reason::Evict | Reason::Demote => self.evicting -= 1,
        }
    }
}
