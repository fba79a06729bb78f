//! Requests that a stage splits into parts.

use flashkeel_engine::{Cause, Completion, Ledger, Request, RequestId, Status, Time};

use crate::flight::Flights;

/// Requests on their way in parts. A request ends with its last part, whose
/// ledger it continues; what that ledger does not cover was spent waiting here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    wholes: Flights<Whole>,
    /// Each part's whole.
    parts: Flights<RequestId>,
}

#[derive(Clone, Debug)]
struct Whole {
    /// Its number with whoever asked.
    id: RequestId,
    submitted: Time,
    left: u32,
    status: Status,
}

impl Parts {
    /// Notes a request; it needs at least one part.
    pub fn begin(&mut self, now: Time, request: &Request) -> RequestId {
        self.wholes.take_off(Whole { id: request.id, submitted: now, left: 0, status: Status::Ok })
    }

    /// Notes a part; returns the number it goes by.
    pub fn add(&mut self, whole: RequestId) -> RequestId {
        self.wholes.get_mut(whole).expect("a part belongs to a request in flight").left += 1;
        self.parts.take_off(whole)
    }

    /// Ends every request as aborted at `now`; of its parts no more is heard.
    pub fn cut_power(&mut self, now: Time) -> Vec<Completion> {
        self.parts.take_all();
        let ended = |(_, Whole { id, submitted, .. })| {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::HostQueue, submitted, now);
            Completion { id, time: now, status: Status::Aborted, ledger }
        };
        self.wholes.take_all().into_iter().map(ended).collect()
    }

    /// A part has ended, and with it perhaps the request.
    pub fn land(&mut self, part: &Completion) -> Option<Completion> {
        let number = self.parts.land(part.id);
        let whole = self.wholes.get_mut(number).expect("a request ends with its last part");
        whole.left -= 1;
        whole.status = whole.status.max(part.status);
        if whole.left > 0 {
            return None;
        }
        let whole = self.wholes.land(number);
        let mut ledger = part.ledger;
        ledger.charge(Cause::HostQueue, part.time.since(whole.submitted) - ledger.total());
        Some(Completion { id: whole.id, time: part.time, status: whole.status, ledger })
    }
}
