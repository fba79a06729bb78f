//! What Linux asks with a request of a block trace beside its data: a flush before it, and
//! that it reaches the medium before it ends (`REQ_PREFLUSH` and `REQ_FUA` of
//! `Documentation/block/writeback_cache_control.rst`).

use flashkeel_engine::Operation;

use super::Record;

/// Puts a flush before each request that asks for one, and counts those that are forced.
#[derive(Default)]
pub(super) struct AskedBeside {
    /// The request whose flush comes first.
    behind_flush: Option<Record>,
    forced: u64,
}

impl AskedBeside {
    /// The request whose flush has been given.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Record> {
        self.behind_flush.take()
    }

    /// What is given of a request first.
    #[inline]
    pub(super) fn first(&mut self, request: Record, is_flushed: bool, is_forced: bool) -> Record {
        self.forced += u64::from(is_forced && request.operation == Operation::Write);
        if !is_flushed || request.operation == Operation::Flush {
            return request;
        }
        self.behind_flush = Some(request);
        Record { operation: Operation::Flush, offset: 0, bytes: 0, ..request }
    }

    /// What has no equal.
    pub(super) fn note(&self) -> Option<String> {
        let (writes, are) = if self.forced == 1 { ("write", "is") } else { ("writes", "are") };
        (self.forced > 0).then(|| {
            format!("{} {writes} with FUA, forced to the medium, {are} taken for any other", self.forced)
        })
    }
}
