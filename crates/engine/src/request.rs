//! Requests and completions, as they cross every boundary of the data path.

use crate::{Ledger, Time};

/// Bytes in a sector, the unit of an [`Lba`].
pub const SECTOR_BYTES: u64 = 512;

/// A logical block address: an index of 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// Identifies a request to whoever submitted it; never reused within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

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
    /// Make every write acknowledged before durable on flash.
    Flush,
}

/// One request of a host, or of one stage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the request in its completion.
    pub id: RequestId,
    /// What is asked.
    pub operation: Operation,
    /// Who asks; the first where there is only one.
    pub tenant: TenantId,
    /// First sector; 0 for a flush.
    pub lba: Lba,
    /// Length in sectors; 0 for a flush only.
    pub sectors: u32,
}

impl Request {
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
