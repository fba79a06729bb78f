//! Requests that a stage splits into parts.

use flashkeel_engine::{
    Cause, Completion, Ledger, Operation, Request, RequestId, Span, Status, TenantId, Time,
};

use crate::flight::Flights;

/// Requests on their way in parts. A request ends with its last part, whose
/// ledger it continues; what that ledger does not cover was spent waiting here.
///
/// The first part of a request goes by twice the number of the whole, so that
/// one that is not split is noted once; the others by odd numbers of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    wholes: Flights<Whole>,
    /// The whole of each part but the first.
    others: Flights<RequestId>,
}

#[derive(Clone, Debug)]
struct Whole {
    /// Its number with whoever asked.
    id: RequestId,
    tenant: TenantId,
    operation: Operation,
    status: Status,
    left: u32,
    /// Devices on which its parts need not hurry, a bit each, if that was decided.
    unhurried: Option<u64>,
    /// Whether one of its parts that have ended was marked.
    is_marked: bool,
    submitted: Time,
    /// How long a gate has held it before.
    held: Span,
}

/// A request that has ended with its last part.
pub(crate) struct Landed {
    pub tenant: TenantId,
    pub operation: Operation,
    /// Whether one of its parts was marked.
    pub is_marked: bool,
    /// How long it was on its way.
    pub took: Span,
}

impl Parts {
    /// Notes a request that was submitted at `submitted`, and held until now by
    /// a gate; it needs at least one part.
    #[inline]
    pub fn begin(&mut self, now: Time, submitted: Time, request: &Request) -> RequestId {
        self.note(now, submitted, request, 0)
    }

    /// Notes a request that is not split; returns the number that it goes by.
    #[inline]
    pub fn whole(&mut self, now: Time, submitted: Time, request: &Request) -> RequestId {
        RequestId(self.note(now, submitted, request, 1).0 << 1)
    }

    #[inline]
    fn note(&mut self, now: Time, submitted: Time, request: &Request, left: u32) -> RequestId {
        self.wholes.take_off(Whole {
            id: request.id,
            tenant: request.tenant,
            operation: request.operation,
            status: Status::Ok,
            left,
            unhurried: None,
            is_marked: false,
            submitted: now,
            held: now.since(submitted),
        })
    }

    /// How many requests are on their way.
    pub fn len(&self) -> usize {
        self.wholes.len()
    }

    /// Notes a part; returns the number it goes by.
    #[inline(always)]
    pub fn add(&mut self, whole: RequestId) -> RequestId {
        let left = &mut self.wholes.get_mut(whole).expect("a part belongs to a request in flight").left;
        *left += 1;
        if *left == 1 {
            return RequestId(whole.0 << 1);
        }
        RequestId(self.others.take_off(whole).0 << 1 | 1)
    }

    /// Notes where the parts of a request need not hurry, a bit for each device.
    pub fn spare(&mut self, whole: RequestId, unhurried: u64) {
        self.wholes.get_mut(whole).expect("it is on its way").unhurried = Some(unhurried);
    }

    /// What the request asks for that ends with a part, and where its parts need not
    /// hurry; `None` if others are on their way, or that was not decided.
    pub fn ends_with(&mut self, part: RequestId) -> Option<(Operation, u64)> {
        let number = RequestId(part.0 >> 1);
        let is_first = part.0 & 1 == 0;
        let number = if is_first { number } else { *self.others.get_mut(number).expect("on its way") };
        let whole = self.wholes.get_mut(number).expect("on its way");
        (whole.left == 1).then_some((whole.operation, whole.unhurried?))
    }

    /// Ends every request as aborted at `now`; of its parts no more is heard.
    pub fn cut_power(&mut self, now: Time) -> Vec<Completion> {
        self.others.take_all();
        let ended = |(_, Whole { id, submitted, held, .. })| {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::HostQueue, submitted, now);
            ledger.charge(Cause::Barrier, held);
            Completion { id, time: now, status: Status::Aborted, ledger }
        };
        self.wholes.take_all().into_iter().map(ended).collect()
    }

    /// A part has ended, whose ledger sums to `covered`. If the request has with it, makes
    /// that the end of the request, and tells what it was, and whether a part was marked.
    #[inline(always)]
    pub fn land(&mut self, part: &mut Completion, covered: Span, is_marked: bool) -> Option<Landed> {
        let number = RequestId(part.id.0 >> 1);
        let number = if part.id.0 & 1 == 0 { number } else { self.others.land(number) };
        let is_last = |whole: &mut Whole| {
            whole.left -= 1;
            whole.is_marked |= is_marked;
            whole.status = whole.status.max(part.status);
            whole.left == 0
        };
        let Whole { id, tenant, operation, status, is_marked, submitted, held, .. } =
            self.wholes.land_if(number, is_last)?;
        let took = part.time.since(submitted);
        (part.id, part.status) = (id, status);
        part.ledger.charge(Cause::HostQueue, took - covered);
        part.ledger.charge(Cause::Barrier, held);
        Some(Landed { tenant, operation, is_marked, took })
    }
}
