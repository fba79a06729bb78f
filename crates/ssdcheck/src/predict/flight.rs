//! A request from when it is asked for to its completion.

use flashkeel_engine::{Lba, Operation, Request, RequestId, Span, Time};

use super::thought::Thought;
use super::view::Woken;

/// What was thought of a request when it was asked for, and what became of its volume when it was
/// submitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub id: RequestId,
    pub submitted: Time,
    pub lba: Lba,
    pub sectors: u32,
    pub is_read: bool,
    pub pages: u32,
    pub base_ns: u64,
    pub queue_ns: u64,
    /// The volume that it was thought to wait for longest, and whether it lies in no other.
    pub volume: u16,
    pub lies_in_one: bool,
    /// Start of the volume's last flush, seen from the request.
    pub flush_start: Time,
    /// Whether the request started it.
    pub flushes: bool,
    /// Pages written to the volume, and of how many of the last ones the request
    /// tells whether they started a flush.
    pub count: u64,
    pub told: u32,
    /// Its place among the circumstances there, and the wait expected.
    pub place: u16,
    pub wait_ns: u64,
    pub woken: Option<Woken>,
    /// Whether it has to be durable before it is acknowledged.
    pub is_durable: bool,
    pub thought: Thought,
}

/// What became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// What it took, and what of that the queue does not explain.
    pub took: Span,
    pub latency: Span,
    /// What takes longer is slow.
    pub threshold_ns: u64,
}

impl Outcome {
    /// Whether it was slow but for the queue.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.latency.0 > self.threshold_ns
    }

    /// Whether it was slow in all.
    #[inline]
    pub fn was_slow(&self) -> bool {
        self.took.0 > self.threshold_ns
    }
}

impl Flight {
    /// Whether it is called slow for the silence before it.
    #[inline]
    pub fn is_waking(&self) -> bool {
        self.woken.is_some_and(|woken| woken.is_likely)
    }

    /// Whether this is what was thought of `request` if it is submitted `now`.
    #[inline]
    pub fn is_of(&self, now: Time, request: &Request) -> bool {
        self.id == request.id
            && self.submitted == now
            && self.lba == request.lba
            && self.sectors == request.sectors
            && self.is_read == (request.operation == Operation::Read)
    }
}
