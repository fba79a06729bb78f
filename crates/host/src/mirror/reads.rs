//! Reads of a mirror: one copy is asked, and another if that one fails or takes
//! long.

use std::cmp::Reverse;

use flashkeel_engine::{
    Arena, Completion, LOGICAL_PAGE_SECTORS, Lba, Ledger, Outbox, Payload, Request, RequestId, Span, Status,
    Time,
};

use super::held::Held;
use super::homes::Home;
use super::layout::Located;
use super::pieces::{Piece, Work};
use super::read::Copies;
use super::stage::{Destination, Mirror, behind_other};

/// A part of a read, until every copy that was asked has answered.
#[derive(Clone, Debug)]
pub(super) struct Read {
    part: RequestId,
    /// In the addresses of the devices; with the host's buffer.
    request: Request,
    destination: Destination,
    submitted: Time,
    /// Copies that have been asked, a bit each, and those that have not answered.
    asked: u8,
    outstanding: u8,
    /// The copy that was asked first.
    first: usize,
    /// The host has its answer.
    pub is_over: bool,
}

impl Mirror {
    /// Copies that a part may be read from.
    fn candidates(&self, destination: &Destination) -> u8 {
        if destination.single != 0 {
            destination.single
        } else {
            self.agreement.valid_all(destination.pages())
        }
    }

    /// A device that has what is at `from`, where, and how many of `sectors` go on like that;
    /// `None` while the copies have to agree, and where nobody has it.
    pub(super) fn whereabouts(&self, from: Lba, sectors: u32) -> Option<(usize, Lba, u32)> {
        let (place, run) = self.layout.place(from);
        let sectors = run.min(u64::from(sectors)) as u32;
        let (copy, lba, sectors) = match place {
            Located::Single(device, lba) => (device, lba, sectors),
            Located::Copied(lba) => {
                let page = (lba.0 / LOGICAL_PAGE_SECTORS) as usize;
                let end = lba.0 + u64::from(sectors);
                let pages =
                    page..page + self.agreement.run(page..end.div_ceil(LOGICAL_PAGE_SECTORS) as usize);
                let valid = self.agreement.valid_all(pages.clone());
                if valid == 0 || self.agreement.is_in_doubt(pages.clone()) {
                    return None;
                }
                let alike = (pages.end as u64 * LOGICAL_PAGE_SECTORS).min(end) - lba.0;
                (valid.trailing_zeros() as usize, lba, alike as u32)
            }
        };
        let Home { device, base, .. } = self.homes.of(copy);
        Some((device, Lba(lba.0 + base), sectors))
    }

    #[expect(clippy::too_many_arguments, reason = "the request, where it lies, and who serves it")]
    pub(super) fn read(
        &mut self,
        now: Time,
        part: RequestId,
        request: &Request,
        destination: Destination,
        submitted: Time,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let candidates = self.candidates(&destination);
        let is_lacking = candidates == 0 && self.agreement.is_locked(destination.pages());
        if is_lacking || self.agreement.is_in_doubt(destination.pages()) {
            // The copies are about to get it, or to agree.
            self.held.push(Held::new(submitted, part, request, destination, RequestId(0)));
            return;
        }
        if candidates == 0 {
            let status = if self.agreement.present() == 0 { Status::Gone } else { Status::Lost };
            return self.land(now, part, status, Ledger::ZERO, outbox);
        }
        let (request, outstanding) = (*request, 0);
        let read =
            Read { part, request, destination, submitted, asked: 0, outstanding, first: 0, is_over: false };
        let id = self.reads.take_off(read);
        let first = self.ask(now, id, candidates, data, outbox);
        self.reads.get_mut(id).expect("it has just begun").first = first;
        if candidates.count_ones() > 1
            && let Some(delay) = self.hedge.as_mut().and_then(|hedge| hedge.delay())
        {
            self.hedges.push(Reverse((now + delay, id.0)));
        }
    }

    /// Asks one of the candidates; returns which.
    fn ask(
        &mut self,
        now: Time,
        id: RequestId,
        candidates: u8,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> usize {
        let read = self.reads.get_mut(id).expect("it is not over");
        let deterministic = self.windowing.deterministic();
        let copies = Copies { candidates, queued: &self.queued, deterministic };
        let copy = self.reader.choose(now, &read.request, &copies);
        read.asked |= 1 << copy;
        read.outstanding |= 1 << copy;
        let request = read.request;
        // Whoever answers last would write into a buffer that has been given back.
        let is_shared = self.hedge.is_some() && request.payload.is_some();
        let own = if is_shared { data.take(request.sectors) } else { Payload::NONE };
        self.give(now, copy, Work::Read(id), &request, own, outbox);
        copy
    }

    /// The first copy has taken long.
    pub(super) fn ask_another(&mut self, now: Time, id: RequestId, data: &mut Arena, outbox: &mut Outbox) {
        let Some(read) = self.reads.get_mut(id).filter(|read| !read.is_over) else { return };
        let (asked, destination, bytes) = (read.asked, read.destination, read.request.bytes());
        let waited = now.since(read.submitted);
        let candidates = self.candidates(&destination) & !asked;
        if candidates == 0 {
            return;
        }
        if self.hedge.as_mut().is_some_and(|hedge| hedge.may_ask()) {
            self.report.hedged_reads += 1;
            self.report.hedged_bytes += bytes;
            self.ask(now, id, candidates, data, outbox);
        } else {
            // Those that wait longest are the first to be asked twice again.
            self.hedges.push(Reverse((now + waited.max(Span::from_us(1)), id.0)));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the completion and whose it is")]
    pub(super) fn read_ended(
        &mut self,
        now: Time,
        copy: usize,
        id: RequestId,
        piece: &Piece,
        completion: &Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let read = self.reads.get_mut(id).expect("a read stays until every copy has answered");
        read.outstanding &= !(1 << copy);
        let Read { part, destination, request, submitted, asked, outstanding, first, is_over } = *read;
        let ledger = behind_other(completion.ledger, piece.begun.since(submitted));
        if completion.status == Status::Ok {
            read.is_over = true;
            if let Some(hedge) = self.hedge.as_mut().filter(|_| copy == first) {
                hedge.answered(now.since(piece.begun));
            }
            if !is_over {
                self.report.hedges_won += u64::from(copy != first && outstanding >> first & 1 == 1);
                data.copy(piece.own, request.payload, request.sectors);
                self.books.iter_mut().for_each(|books| books.shown(destination.pages()));
                self.land(now, part, Status::Ok, ledger, outbox);
            }
        } else {
            if matches!(completion.status, Status::MediaError | Status::Lost) {
                self.repair(&destination, copy);
            }
            let candidates = self.candidates(&destination) & !asked;
            if !is_over && candidates != 0 {
                self.report.retried_reads += 1;
                self.ask(now, id, candidates, data, outbox);
            } else if !is_over && outstanding == 0 {
                self.reads.get_mut(id).expect("not over").is_over = true;
                if self.agreement.is_locked(destination.pages()) {
                    // Another copy is about to get it.
                    self.held.push(Held::new(submitted, part, &request, destination, RequestId(0)));
                } else {
                    self.land(now, part, completion.status, ledger, outbox);
                }
            }
        }
        if self.reads.get_mut(id).is_some_and(|read| read.is_over && read.outstanding == 0) {
            let _ = self.reads.land(id);
        }
    }

    /// A copy has lost pages: it gets them again from another that has them.
    fn repair(&mut self, destination: &Destination, copy: usize) {
        for page in destination.pages() {
            if self.agreement.valid(page) & !(1 << copy) != 0 && !self.agreement.is_locked(page..page + 1) {
                self.agreement.behind(page..page + 1, 1 << copy);
                self.resync.try_again();
            }
        }
    }
}
