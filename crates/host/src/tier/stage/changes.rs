//! What requests read and change.

use std::ops::Range;

use flashkeel_engine::{
    Arena, Completion, Durable, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Operation, Outbox, Request,
    RequestId, Status, Time,
};

use super::latency::Medium;
use super::{LOWER, Piece, Tier, UPPER};
use crate::tier::journal::Waiter;
use crate::tier::table::Table;
use crate::tier::writeback::Happened;

/// Pages of a request that go to the same place.
#[derive(Clone, Copy)]
struct Run {
    page: u64,
    pages: u64,
    /// The first frame; `None` for the lower.
    frame: Option<u32>,
}

impl Run {
    /// Whether the next page of the request belongs to it.
    fn goes_on_with(&self, frame: Option<u32>) -> bool {
        match (self.frame, frame) {
            (None, None) => true,
            (Some(first), Some(frame)) => u64::from(frame) == u64::from(first) + self.pages,
            _ => false,
        }
    }
}

/// The pieces of a change in the upper, which the journal names together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Pieces on their way.
    left: u32,
    written: Vec<Written>,
}

/// A piece that has been written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    frame: u32,
    pages: u32,
    sequence: u64,
    part: RequestId,
    completion: Completion,
}

/// The pages of a request.
pub(super) fn pages_of(request: &Request) -> Range<u64> {
    let first = request.lba.0 / LOGICAL_PAGE_SECTORS;
    first..first + u64::from(request.sectors) / LOGICAL_PAGE_SECTORS
}

impl Tier {
    /// Splits a request into runs and sends them off.
    fn split(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        group: Option<RequestId>,
        outbox: &mut Outbox,
        mut frame_of: impl FnMut(&mut Table, u64) -> Option<u32>,
    ) {
        let pages = pages_of(request);
        let mut whole = None;
        let mut run = Run { page: pages.start, pages: 1, frame: frame_of(&mut self.table, pages.start) };
        for page in pages.start + 1..pages.end {
            let frame = frame_of(&mut self.table, page);
            if run.goes_on_with(frame) {
                run.pages += 1;
            } else {
                let whole = *whole.get_or_insert_with(|| self.parts.begin(submitted, submitted, request));
                let part = self.parts.add(whole);
                self.send(now, part, request, run, group, outbox);
                run = Run { page, pages: 1, frame };
            }
        }
        let part = match whole {
            Some(whole) => self.parts.add(whole),
            None => self.parts.whole(submitted, submitted, request),
        };
        self.send(now, part, request, run, group, outbox);
    }

    #[inline(always)]
    fn send(
        &mut self,
        now: Time,
        part: RequestId,
        request: &Request,
        run: Run,
        group: Option<RequestId>,
        outbox: &mut Outbox,
    ) {
        let Run { page, pages, frame } = run;
        let lba = Lba(page * LOGICAL_PAGE_SECTORS);
        let from = (lba.0 - request.lba.0) as u32;
        let is_read = request.operation == Operation::Read;
        let sequence = self.sequence;
        if let Some(frame) = frame {
            let count = pages as u32;
            let piece = if is_read {
                self.reads += 1;
                self.accounts.pages_read_from_upper += pages;
                Piece::UpperRead { part, frame, pages: count }
            } else {
                if request.operation == Operation::Write {
                    self.accounts.host_bytes_to_upper += pages * LOGICAL_PAGE_BYTES;
                }
                if let Some(group) = group.and_then(|group| self.groups.get_mut(group)) {
                    group.left += 1;
                }
                Piece::UpperWrite { part, frame, pages: count, sequence, group }
            };
            return self.give_upper(now, piece, request, from, frame, count, outbox);
        }
        let sectors = (pages * LOGICAL_PAGE_SECTORS) as u32;
        let mut below = request.part(request.id, from, lba, sectors);
        if is_read {
            self.reads += 1;
            self.accounts.pages_read_from_lower += pages;
            if self.is_damaged(lba, sectors) {
                return self.give_lower(now, Piece::DamagedRead { part }, &below, outbox);
            }
            let pages = if self.may_fill(page..page + pages) { pages } else { 0 };
            let piece = Piece::LowerRead { part, page, pages, sequence, payload: below.payload };
            return self.give_lower(now, piece, &below, outbox);
        }
        if request.operation == Operation::Write {
            self.accounts.host_bytes_to_lower += pages * LOGICAL_PAGE_BYTES;
        }
        // An older copy in the upper may be all that a power cut would leave.
        let is_older = |page| self.table.has_copy(page);
        below.fua |= self.must_force() && (self.journal.is_some() || (page..page + pages).any(is_older));
        let written = (request.operation == Operation::Write).then_some(now);
        let piece = Piece::LowerWrite { part, page, pages, sequence, written };
        self.give_lower(now, piece, &below, outbox);
    }

    /// Whether the lower keeps a write only when it is flushed, or forces unit access, and the
    /// upper would have kept it.
    pub(super) fn must_force(&self) -> bool {
        self.lower_durable == Durable::Flushed && self.upper_durable != Durable::Never
    }

    /// Which device has the newest acknowledged copy of what is at `from`, where, and how many
    /// of `sectors` go on like that.
    pub(super) fn newest(&self, from: Lba, sectors: u32) -> (usize, Lba, u32) {
        let (page, within) = (from.0 / LOGICAL_PAGE_SECTORS, from.0 % LOGICAL_PAGE_SECTORS);
        let end = from.0 + u64::from(sectors);
        let until = |page: u64| ((page * LOGICAL_PAGE_SECTORS).min(end) - from.0) as u32;
        match self.table.get(page) {
            Some(frame) => (UPPER, Lba(u64::from(frame) * LOGICAL_PAGE_SECTORS + within), until(page + 1)),
            None => {
                let pages = page + 1..end.div_ceil(LOGICAL_PAGE_SECTORS);
                let (mut others, last) = (pages.clone(), pages.end);
                let next = others.find(|&page| self.table.get(page).is_some());
                (LOWER, from, until(next.unwrap_or(last.max(page + 1))))
            }
        }
    }

    /// Whether the upper may take what is read of pages of the lower, whose read begins then.
    fn may_fill(&mut self, pages: Range<u64>) -> bool {
        let sequence = self.sequence;
        // They are not here, or would be read here.
        if !self.fills || !pages.clone().all(|page| self.table.is_quiet(page, sequence)) {
            return false;
        }
        pages.for_each(|page| self.table.begin_read(page));
        true
    }

    /// Whether a request is the lower's alone: it has no pages, or is refused there.
    pub(super) fn is_plain(&self, request: &Request) -> bool {
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        request.operation == Operation::Flush
            || request.sectors == 0
            || !request.lba.0.is_multiple_of(LOGICAL_PAGE_SECTORS)
            || !u64::from(request.sectors).is_multiple_of(LOGICAL_PAGE_SECTORS)
            || end.is_none_or(|end| end > self.table.lower_pages() * LOGICAL_PAGE_SECTORS)
    }

    pub(super) fn read(&mut self, now: Time, submitted: Time, request: &Request, outbox: &mut Outbox) {
        let touches = self.keeps;
        self.split(now, submitted, request, None, outbox, |table, page| {
            let frame = table.get(page)?;
            table.pin(frame);
            if touches {
                table.touch(frame);
            }
            Some(frame)
        });
    }

    pub(super) fn write(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        self.placement.came(request);
        let pages = pages_of(request);
        let missed = pages.clone().filter(|&page| self.table.get(page).is_none()).count() as u64;
        if missed > 0 {
            self.writeback.hear(now, Happened::WriteMissed { pages: missed });
        }
        let mut is_taken = self.takes_any && self.prefers_upper(now, request);
        // Nothing leaves for a write that goes to the lower.
        if is_taken {
            let needs_room =
                |table: &Table| pages.clone().filter(|&page| table.needs_room(page)).count() as u64;
            let needed = needs_room(&self.table);
            if needed <= self.table.len() {
                self.make_room(now, needed, data, outbox);
            }
            // What has left may have been of the same pages.
            is_taken = needs_room(&self.table) <= self.table.free();
            self.accounts.writes_without_room += u64::from(!is_taken);
        }
        self.change(now, submitted, request, is_taken, outbox);
    }

    /// Whether a write belongs to the upper, by its placement and by what may be written to each.
    fn prefers_upper(&mut self, now: Time, request: &Request) -> bool {
        let is_upper = self.placement.takes(now, request);
        let (own, other) =
            if is_upper { (Medium::Upper, Medium::Lower) } else { (Medium::Lower, Medium::Upper) };
        if self.accounts.allows(now, own, request.bytes()) {
            return is_upper;
        }
        let is_free = self.accounts.allows(now, other, request.bytes());
        is_upper != self.overflow.policy().goes_elsewhere(is_free)
    }

    /// Changes pages: in the upper if that takes them or has to, else in the lower.
    pub(super) fn change(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        is_taken: bool,
        outbox: &mut Outbox,
    ) {
        let mut takes_hits =
            self.takes_any && request.operation == Operation::Write && self.placement.takes_hits();
        if self.journal.is_some() && !is_taken {
            // Each page needs a frame of its own.
            let count = |table: &Table, takes_hits: bool| {
                let goes_up = |&page: &u64| table.must_take(page) || takes_hits && table.get(page).is_some();
                pages_of(request).filter(goes_up).count() as u64
            };
            takes_hits &= count(&self.table, true) <= self.table.free();
            if count(&self.table, takes_hits) > self.table.free() {
                return self.held.push_back((submitted, *request));
            }
        }
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(books) = &mut self.books {
            books.begin(sequence, request);
        }
        let group = self.journal.is_some().then(|| {
            let written = self.spare.pop().unwrap_or_default();
            self.groups.take_off(Group { left: 0, written })
        });
        let touches = self.keeps;
        self.split(now, submitted, request, group, outbox, |table, page| {
            let hit = if takes_hits || touches { table.get(page) } else { None };
            if is_taken || table.must_take(page) || takes_hits && hit.is_some() {
                if let Some(frame) = hit.filter(|_| touches) {
                    table.touch(frame);
                }
                return Some(table.begin_write(page, sequence));
            }
            table.begin_lower(page, sequence);
            None
        });
        if let Some(group) = group
            && self.groups.get_mut(group).is_some_and(|group| group.left == 0)
        {
            let Group { written, .. } = self.groups.land(group);
            self.spare.push(written);
        }
    }

    /// The lower has served a change, or has not; returns the part that ends with that.
    pub(super) fn lower_written(
        &mut self,
        pages: Range<u64>,
        sequence: u64,
        part: RequestId,
        completion: &Completion,
        data: &Arena,
    ) -> Option<RequestId> {
        let is_ok = completion.status == Status::Ok;
        for page in pages.clone() {
            if !is_ok {
                self.table.fail_lower(page);
            } else if self.table.end_lower(page, sequence) {
                self.keep_below(page, sequence, data);
            }
        }
        self.note_ended(sequence, pages.end - pages.start);
        self.release();
        // What the journal still says of an older copy would come back after a power cut.
        if let Some(journal) = self.journal.as_mut().filter(|journal| journal.releasing() > 0) {
            journal.wait(Waiter::Ended { part, completion: *completion });
            return None;
        }
        Some(part)
    }

    /// The upper has served a change, or has not; returns the part that ends with that.
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    pub(super) fn upper_written(
        &mut self,
        frame: u32,
        pages: u32,
        sequence: u64,
        part: RequestId,
        group: Option<RequestId>,
        completion: &Completion,
        data: &Arena,
        outbox: &mut Outbox,
    ) -> Option<RequestId> {
        let Some(number) = group else {
            self.end_written(frame, pages, sequence, completion.status == Status::Ok, data);
            return Some(part);
        };
        let group = self.groups.get_mut(number).expect("its pieces belong to it");
        group.left -= 1;
        group.written.push(Written { frame, pages, sequence, part, completion: *completion });
        if group.left > 0 {
            return None;
        }
        let Group { mut written, .. } = self.groups.land(number);
        let is_ok = written.iter().all(|each| each.completion.status == Status::Ok);
        let last = written.last().map(|last| last.frame + last.pages - 1);
        for &Written { frame, pages, .. } in written.iter().filter(|_| is_ok) {
            for frame in frame..frame + pages {
                let page = self.table.page(frame);
                let journal = self.journal.as_mut().expect("only it has groups");
                journal.add(frame, page, Some(frame) == last);
            }
        }
        let is_quiet = self.is_quiet();
        for Written { frame, pages, sequence, part, mut completion } in written.drain(..) {
            if is_ok {
                let waiter = Waiter::Written { frame, pages, sequence, part, completion };
                self.journal.as_mut().expect("only it has groups").wait(waiter);
            } else {
                self.end_written(frame, pages, sequence, false, data);
                let covered = completion.ledger.total();
                if self.end_part(part, covered, UPPER, is_quiet, &mut completion) {
                    outbox.completions.push(completion);
                }
            }
        }
        self.spare.push(written);
        None
    }

    /// Frames have got what was written to them, or have not.
    pub(super) fn end_written(&mut self, frame: u32, pages: u32, sequence: u64, is_ok: bool, data: &Arena) {
        for frame in frame..frame + pages {
            if is_ok {
                let page = self.table.page(frame);
                self.table.end_write(frame, sequence);
                self.keep_written(frame, page, sequence, data);
            } else {
                self.table.fail_write(frame, sequence);
            }
        }
        self.note_ended(sequence, pages.into());
    }
}
