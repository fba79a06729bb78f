//! What was kept of the upper, brought back after a restart: every page that only the upper
//! had is written there again. Nothing else is known of what the upper holds, so that it
//! begins without clean copies.

use flashkeel_engine::{
    Arena, Durable, LOGICAL_PAGE_SECTORS, Lba, Operation, Outbox, PageBytes, Payload, Request, Time,
};

use super::{Piece, Tier, background};
use crate::tier::table::NONE;

/// Pages that are written at once.
const AT_ONCE: usize = 64;

/// What has been found, and what has become of it.
#[derive(Clone)]
pub(super) struct Restoring {
    /// Still to be written.
    pages: Vec<(u32, Box<PageBytes>)>,
    /// The pages of the frames, as far as they have been written.
    frames: Vec<u32>,
    /// The next frame that gets one.
    next: u32,
    /// On their way.
    left: usize,
}

impl Restoring {
    /// Into so many frames.
    pub fn new(pages: Vec<(u32, Box<PageBytes>)>, frames: u64) -> Restoring {
        Restoring { pages, frames: vec![NONE; frames as usize], next: 0, left: 0 }
    }
}

impl Tier {
    /// Writes more of what was found; where all has been, requests are served.
    pub(super) fn restore(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        loop {
            let Some(restoring) = self.recovery.as_mut().and_then(|recovery| recovery.restoring()) else {
                return;
            };
            if restoring.left == AT_ONCE {
                return;
            }
            let Some((page, bytes)) = restoring.pages.pop() else { break };
            // There may be more than fit: what was on its way to the lower, or just there.
            let frame = ((restoring.next as usize) < restoring.frames.len()).then_some(restoring.next);
            restoring.next += u32::from(frame.is_some());
            restoring.left += 1;
            let payload = data.take(LOGICAL_PAGE_SECTORS as u32);
            data.write(payload, LOGICAL_PAGE_SECTORS as u32).expect("a buffer").copy_from_slice(&*bytes);
            self.restore_page(now, page, frame, payload, outbox);
        }
        let Some(restoring) = self.recovery.as_mut().and_then(|recovery| recovery.restoring()) else {
            return;
        };
        if restoring.left == 0 {
            let frames = std::mem::take(&mut restoring.frames);
            self.end_restoring(now, &frames, data, outbox);
        }
    }

    fn restore_page(
        &mut self,
        now: Time,
        page: u32,
        frame: Option<u32>,
        payload: Payload,
        outbox: &mut Outbox,
    ) {
        let lba = Lba(u64::from(page) * LOGICAL_PAGE_SECTORS);
        let fua = self.lower_durable == Durable::Flushed;
        let write = Request { fua, ..background(Operation::Write, lba, LOGICAL_PAGE_SECTORS, payload) };
        let piece = Piece::Restored { page, frame, payload };
        match frame {
            Some(frame) => self.give_upper(now, piece, &write, 0, frame, 1, outbox),
            None => self.give_lower(now, piece, &write, outbox),
        }
    }

    /// A page has been written, or has not.
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    pub(super) fn restored(
        &mut self,
        now: Time,
        page: u32,
        frame: Option<u32>,
        payload: Payload,
        is_ok: bool,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let Some(restoring) = self.recovery.as_mut().and_then(|recovery| recovery.restoring()) else {
            return;
        };
        match frame {
            Some(frame) if is_ok => restoring.frames[frame as usize] = page,
            // An upper that takes no writes any more: there is still the lower.
            Some(_) => return self.restore_page(now, page, None, payload, outbox),
            None if is_ok => self.hand_over(u64::from(page)),
            // It stays where it is kept.
            None => {}
        }
        data.give_back(payload);
        if let Some(restoring) = self.recovery.as_mut().and_then(|recovery| recovery.restoring()) {
            restoring.left -= 1;
        }
        self.restore(now, data, outbox);
    }

    fn end_restoring(&mut self, now: Time, frames: &[u32], data: &mut Arena, outbox: &mut Outbox) {
        self.table.rebuild(frames, self.journal.is_some());
        if let Some(journal) = &mut self.journal {
            // What it said before lies in an upper that has begun anew.
            let found = (0..).zip(frames).filter(|(_, page)| **page != NONE);
            found.for_each(|(frame, &page)| journal.add(frame, u64::from(page), true));
        }
        let held = self.recovery.take().map_or(Vec::new(), |recovery| recovery.into_held());
        for (submitted, request) in held {
            self.start(now, submitted, &request, data, outbox);
        }
    }
}
