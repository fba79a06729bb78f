//! What the copies are asked.

use std::ops::Range;

use flashkeel_engine::{LOGICAL_PAGE_SECTORS, Lba, Operation, Payload, Request, RequestId, Time};

use super::read::Ended;

/// A request to a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub work: Work,
    pub copy: usize,
    pub begun: Time,
    pub is_read: bool,
    /// Whether a copy that takes no writes refuses it.
    pub is_change: bool,
    /// A buffer of the mirror's own.
    pub own: Payload,
}

impl Piece {
    pub fn ended(&self, now: Time) -> Ended {
        let Piece { copy, begun, is_read, .. } = *self;
        Ended { copy, is_read, begun, latency: now.since(begun) }
    }
}

/// What a request to a device is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Read(RequestId),
    Change(RequestId),
    /// Of the pages that are being made to agree.
    Agree,
    /// Of a page that not every copy had before a restart.
    Restore(u32),
    /// The same: no copy takes it, but some may have it.
    Compare(u32),
}

/// A request of the mirror's own for pages of what has copies.
pub(super) fn of_pages(operation: Operation, pages: Range<usize>) -> Request {
    let lba = Lba(pages.start as u64 * LOGICAL_PAGE_SECTORS);
    Request::new(RequestId(0), operation, lba, (pages.len() as u64 * LOGICAL_PAGE_SECTORS) as u32)
}
