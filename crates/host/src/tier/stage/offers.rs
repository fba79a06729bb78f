//! Clean copies that the upper is offered: what reads have found below, and what a tier
//! above gives up.

use std::ops::Range;

use flashkeel_engine::{
    Arena, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Operation, Outbox, Payload, Request, RequestId,
    Time,
};

use super::changes::pages_of;
use super::{Piece, Tier, at_once, background};
use crate::tier::admission::Offer;
use crate::tier::writeback::Happened;

/// Frames that are filled one after the other, from a page on.
#[derive(Clone, Copy)]
struct Fill {
    page: u64,
    frame: u32,
    pages: u32,
}

impl Tier {
    /// A read has found pages below that were last changed before change `sequence`.
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    pub(super) fn found(
        &mut self,
        now: Time,
        pages: Range<u64>,
        sequence: u64,
        payload: Payload,
        is_ok: bool,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let first = pages.start;
        let mut fill = None;
        for page in pages {
            let is_missing = is_ok && self.table.is_missing(page, sequence);
            if !is_missing || !self.admits(now, 1, data, outbox) {
                self.table.end_read(page);
                continue;
            }
            let frame = self.table.begin_fill_as_read(page);
            fill = self.fill_on(fill, page, frame, |tier, fill| {
                tier.copy_up(now, fill, sequence, first, payload, data, outbox);
            });
        }
        if let Some(fill) = fill {
            self.copy_up(now, fill, sequence, first, payload, data, outbox);
        }
    }

    /// Makes a fill longer by a frame; where it does not follow, `begin` gets the fill so
    /// far, and another begins.
    fn fill_on(
        &mut self,
        fill: Option<Fill>,
        page: u64,
        frame: u32,
        begin: impl FnOnce(&mut Tier, Fill),
    ) -> Option<Fill> {
        match fill {
            Some(fill) if fill.frame + fill.pages == frame && fill.page + u64::from(fill.pages) == page => {
                Some(Fill { pages: fill.pages + 1, ..fill })
            }
            other => {
                if let Some(fill) = other {
                    begin(self, fill);
                }
                Some(Fill { page, frame, pages: 1 })
            }
        }
    }

    /// Writes to the upper what a read of pages from `first` on has found.
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    fn copy_up(
        &mut self,
        now: Time,
        fill: Fill,
        sequence: u64,
        first: u64,
        found: Payload,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let Fill { page, frame, pages } = fill;
        let sectors = u64::from(pages) * LOGICAL_PAGE_SECTORS;
        let mut payload = Payload::NONE;
        if self.has_bytes && found.is_some() {
            payload = data.take(sectors as u32);
            data.copy(found.skip(((page - first) * LOGICAL_PAGE_SECTORS) as u32), payload, sectors as u32);
        }
        self.accounts.filled_bytes += u64::from(pages) * LOGICAL_PAGE_BYTES;
        let piece = Piece::Fill { part: None, frame, pages, sequence, uses: 1, payload };
        let write = background(Operation::Write, Lba(0), sectors, payload);
        self.give_upper(now, piece, &write, 0, frame, pages, outbox);
    }

    /// Whether the upper takes a clean copy, for which there is a frame then.
    #[inline(always)]
    fn admits(&mut self, now: Time, uses: u8, data: &mut Arena, outbox: &mut Outbox) -> bool {
        let has_room = self.table.free() > self.ahead;
        let offer = Offer { uses, has_room, clean: self.table.clean_uses() };
        if !self.admission.takes(offer) {
            return false;
        }
        self.make_room(now, 1, data, outbox);
        self.table.free() > 0
    }

    /// A tier above gives up pages, which the lower has.
    pub(super) fn demoted(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let uses = request.uses;
        let sequence = self.sequence;
        let mut whole = None;
        let mut fill = None;
        for page in pages_of(request) {
            if let Some(frame) = self.table.get(page) {
                self.table.raise_uses(frame, uses);
                continue;
            }
            let is_quiet = self.table.is_quiet(page, sequence);
            let is_admitted = is_quiet && self.admits(now, uses, data, outbox);
            self.writeback.hear(now, Happened::EvictMissed { is_admitted });
            if !is_admitted {
                continue;
            }
            let frame = self.table.begin_fill(page);
            let number = *whole.get_or_insert_with(|| self.parts.begin(submitted, submitted, request));
            fill = self.fill_on(fill, page, frame, |tier, fill| {
                tier.keep(now, number, fill, sequence, request, outbox);
            });
        }
        match (whole, fill) {
            (Some(whole), Some(fill)) => self.keep(now, whole, fill, sequence, request, outbox),
            _ => outbox.completions.push(at_once(request.id, now)),
        }
    }

    /// Writes to the upper what a demotion brings.
    fn keep(
        &mut self,
        now: Time,
        whole: RequestId,
        fill: Fill,
        sequence: u64,
        request: &Request,
        outbox: &mut Outbox,
    ) {
        let Fill { page, frame, pages } = fill;
        self.accounts.admitted_bytes += u64::from(pages) * LOGICAL_PAGE_BYTES;
        let part = Some(self.parts.add(whole));
        let piece = Piece::Fill { part, frame, pages, sequence, uses: request.uses, payload: Payload::NONE };
        let write = Request { operation: Operation::Write, uses: 0, ..*request };
        let from = (page * LOGICAL_PAGE_SECTORS - request.lba.0) as u32;
        self.give_upper(now, piece, &write, from, frame, pages, outbox);
    }
}
