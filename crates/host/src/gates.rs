//! Keeps flushes in their order among the requests of their tenant.

use std::collections::VecDeque;

use flashkeel_engine::{
    Cause, Completion, Ledger, Operation, Request, RequestId, Span, Status, TenantId, Time,
};

use crate::flight::Flights;

/// A gate for each tenant. A flush goes through when all before it have
/// completed, and those after it wait until it has.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    gates: Vec<Gate>,
    through: Flights<Through>,
}

/// A request that was let through and has not completed.
#[derive(Clone, Debug)]
struct Through {
    /// Its number with whoever asked.
    id: RequestId,
    tenant: TenantId,
    /// How long the gate held it.
    held: Span,
}

#[derive(Clone, Debug, Default)]
struct Gate {
    /// Requests let through and not completed.
    through: usize,
    /// One of them is a flush, which goes alone.
    is_flushing: bool,
    /// With the times of their submission.
    held: VecDeque<(Time, Request)>,
}

impl Gate {
    fn lets(&self, request: &Request) -> bool {
        !self.is_flushing && (request.operation != Operation::Flush || self.through == 0)
    }
}

impl Gates {
    /// Open gates, one for each tenant.
    pub fn new(tenants: usize) -> Gates {
        Gates { gates: (0..tenants).map(|_| Gate::default()).collect(), through: Flights::default() }
    }

    /// How many there are.
    #[inline]
    pub fn tenants(&self) -> usize {
        self.gates.len()
    }

    /// Requests held.
    pub fn held(&self) -> usize {
        self.gates.iter().map(|gate| gate.held.len()).sum()
    }

    /// Offers a request; the request to pass on, under a number of the gate's,
    /// if it may go at once.
    pub fn enter(&mut self, now: Time, request: &Request) -> Option<Request> {
        let gate = &mut self.gates[usize::from(request.tenant.0)];
        if gate.held.is_empty() && gate.lets(request) {
            return Some(self.let_through(now, now, request));
        }
        gate.held.push_back((now, *request));
        None
    }

    /// A request that went through has ended: gives it back its number, and
    /// charges the time that it was held.
    pub fn leave(&mut self, completion: &Completion) -> (TenantId, Completion) {
        let Through { id, tenant, held } = self.through.land(completion.id);
        let gate = &mut self.gates[usize::from(tenant.0)];
        gate.through -= 1;
        gate.is_flushing &= gate.through > 0;
        let mut ledger = completion.ledger;
        ledger.charge(Cause::Barrier, held);
        (tenant, Completion { id, ledger, ..*completion })
    }

    /// The next of a tenant's held requests, if it may go now.
    pub fn release(&mut self, now: Time, tenant: TenantId) -> Option<Request> {
        let gate = &mut self.gates[usize::from(tenant.0)];
        let &(submitted, request) = gate.held.front()?;
        if !gate.lets(&request) {
            return None;
        }
        gate.held.pop_front();
        Some(self.let_through(now, submitted, &request))
    }

    /// Ends what is held as aborted at `now`. All that went through has left.
    pub fn cut_power(&mut self, now: Time) -> Vec<Completion> {
        let held = self.gates.iter_mut().flat_map(|gate| gate.held.drain(..));
        let ended = |(submitted, Request { id, .. })| {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Barrier, submitted, now);
            Completion { id, time: now, status: Status::Aborted, ledger }
        };
        held.map(ended).collect()
    }

    fn let_through(&mut self, now: Time, submitted: Time, request: &Request) -> Request {
        let &Request { id, tenant, .. } = request;
        let gate = &mut self.gates[usize::from(tenant.0)];
        gate.through += 1;
        gate.is_flushing = request.operation == Operation::Flush;
        let id = self.through.take_off(Through { id, tenant, held: now.since(submitted) });
        Request { id, ..*request }
    }
}
