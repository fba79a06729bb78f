//! Requests and completions, as they cross every boundary of the data path.

use crate::{Ledger, Payload, SECTOR_BYTES, Time};

/// A logical block address: an index of 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// Identifies a request to whoever submitted it; never reused within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    /// No request.
    pub const NONE: RequestId = RequestId(u64::MAX);
}

/// Whose request it is: an index into the tenants of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u16);

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Read the range.
    Read,
    /// Write the range.
    Write,
    /// Deallocate the range (TRIM).
    Trim,
    /// Make every write acknowledged before durable.
    Flush,
    /// Make the range read as zeros.
    WriteZeroes,
    /// Here is what the range holds already: whoever asks gives its copy up, and
    /// offers it to what is below, which may keep one that is quicker to read. What
    /// has no such place completes it at once (DEMOTE of Wong and Wilkes, "My Cache or
    /// Yours?", USENIX ATC 2002).
    Demote,
}

impl Operation {
    /// Whether what a range holds may be another after the operation.
    #[inline]
    pub const fn is_change(self) -> bool {
        matches!(self, Operation::Write | Operation::Trim | Operation::WriteZeroes)
    }
}

/// What travels with a request from end to end for whoever on its way is
/// configured to use it: a class of service, a class of deadlines, a stream of
/// placement. 0 where nobody gave one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hint(pub u16);

/// One request of a host, or of one stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the request in its completion.
    pub id: RequestId,
    /// The request of the workload that it is, or is a part of, under whatever number it has
    /// come here; [`RequestId::NONE`] where whoever asks does so by itself.
    pub origin: RequestId,
    /// What is asked.
    pub operation: Operation,
    /// Who asks; the first where there is only one.
    pub tenant: TenantId,
    /// First sector; 0 for a flush.
    pub lba: Lba,
    /// Length in sectors; 0 for a flush only.
    pub sectors: u32,
    /// Whether a write is acknowledged only once it is durable (force unit
    /// access).
    pub fua: bool,
    /// Said by whoever asks, for whoever serves.
    pub hint: Hint,
    /// How often the copy that a demotion gives up was used, up to 255; 0 of any other
    /// operation.
    pub uses: u8,
    /// Whether it may wait behind others' requests, and a read has no claim to a
    /// deterministic window: whoever serves may do so where background work is done.
    pub is_unhurried: bool,
    /// The bytes of a write, or where those of a read go.
    pub payload: Payload,
}

impl Request {
    /// A request of the first tenant, without origin, bytes, hint or flags.
    #[inline]
    pub fn new(id: RequestId, operation: Operation, lba: Lba, sectors: u32) -> Request {
        Request {
            id,
            origin: RequestId::NONE,
            operation,
            tenant: TenantId(0),
            lba,
            sectors,
            fua: false,
            hint: Hint(0),
            uses: 0,
            is_unhurried: false,
            payload: Payload::NONE,
        }
    }

    /// The part that begins `from` sectors behind the beginning, of `sectors`
    /// sectors and their bytes, for another address and under another number.
    #[inline]
    pub fn part(&self, id: RequestId, from: u32, lba: Lba, sectors: u32) -> Request {
        Request { id, lba, sectors, payload: self.payload.skip(from), ..*self }
    }

    /// Length in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done as asked.
    Ok,
    /// Refused: range outside the device, or not aligned to its mapping unit.
    Invalid,
    /// Data that it asked for is lost: more of the flash has failed than parity
    /// makes up for.
    Lost,
    /// Refused: the device takes no writes.
    ReadOnly,
    /// There is no room for what it would write.
    NoSpace,
    /// The medium failed; nothing follows for other requests.
    MediaError,
    /// The device is not there any more.
    Gone,
    /// Given up on its way, such as by a power cut; a write may have been done
    /// or not.
    Aborted,
}

impl Status {
    /// Every status, in order.
    pub const ALL: [Status; 8] = [
        Status::Ok,
        Status::Invalid,
        Status::Lost,
        Status::ReadOnly,
        Status::NoSpace,
        Status::MediaError,
        Status::Gone,
        Status::Aborted,
    ];

    /// The name used in results: lower case with underscores.
    pub const fn label(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Invalid => "invalid",
            Status::Lost => "lost",
            Status::ReadOnly => "read_only",
            Status::NoSpace => "no_space",
            Status::MediaError => "media_error",
            Status::Gone => "gone",
            Status::Aborted => "aborted",
        }
    }
}

/// The end of one request. There is exactly one per accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request that ended.
    pub id: RequestId,
    /// When it ended; at or before the `now` of the call that reported it.
    pub time: Time,
    /// How it ended.
    pub status: Status,
    /// Who owned each nanosecond between submission and completion.
    pub ledger: Ledger,
}
