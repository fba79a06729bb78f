//! What the two devices are asked.

use flashkeel_engine::{Payload, RequestId, Time};

/// Why a page is read from the upper in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// To write it back.
    WriteBack,
    /// To write it back, and give the frame away.
    Evict,
    /// To offer it to the lower.
    Demote,
}

/// A request to a child. Pages and frames of one piece follow one another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    /// Changes nothing here.
    Plain {
        part: RequestId,
    },
    /// A read of pages of which some are damaged.
    DamagedRead {
        part: RequestId,
    },
    /// A read of pages that the upper may take, which were last changed before a change.
    LowerRead {
        part: RequestId,
        page: u64,
        pages: u64,
        sequence: u64,
        payload: Payload,
    },
    LowerWrite {
        part: RequestId,
        page: u64,
        pages: u64,
        sequence: u64,
        /// When it was given, if it is no trim or write of zeros.
        written: Option<Time>,
    },
    UpperRead {
        part: RequestId,
        frame: u32,
        pages: u32,
    },
    UpperWrite {
        part: RequestId,
        frame: u32,
        pages: u32,
        sequence: u64,
        group: Option<RequestId>,
    },
    /// A clean copy, of a request's or of what a read has found.
    Fill {
        part: Option<RequestId>,
        frame: u32,
        pages: u32,
        sequence: u64,
        uses: u8,
        payload: Payload,
    },
    Moved {
        frame: u32,
        sequence: u64,
        payload: Payload,
        reason: Reason,
    },
    WriteBack {
        frame: u32,
        sequence: u64,
        payload: Payload,
        reason: Reason,
        submitted: Time,
    },
    Demoted {
        payload: Payload,
    },
    Journal {
        payload: Payload,
    },
    Recovered {
        payload: Payload,
        sectors: u32,
    },
    /// A page that was found, to a frame, or to the lower.
    Restored {
        page: u32,
        frame: Option<u32>,
        payload: Payload,
    },
}
