//! The scheduler as a stage: a bounded number of requests at the device, the
//! others waiting in the policy's order.

use std::collections::VecDeque;

use flashkeel_engine::{
    Cause, Completion, Operation, Outbox, Request, RequestId, Span, Stage, Submit, TenantId, Time,
};

use super::IoScheduler;
use crate::flight::Flights;

/// Gives requests to the only child, at most `depth` at a time.
///
/// A flush keeps its place among the requests of its tenant: it goes to the
/// device when all before it have completed, and those after it wait until it
/// has. Only what may go now is shown to the policy.
pub(crate) struct Scheduling {
    policy: Box<dyn IoScheduler>,
    depth: usize,
    at_device: usize,
    flights: Flights<Pending>,
    gates: Vec<Gate>,
}

/// A request that was let through and has not completed.
#[derive(Debug)]
struct Pending {
    /// Its number with whoever asked.
    id: RequestId,
    tenant: TenantId,
    submitted: Time,
    /// How long the gate held it.
    held: Span,
}

/// What keeps one tenant's flushes in order.
#[derive(Debug, Default)]
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

impl Scheduling {
    pub fn new(policy: Box<dyn IoScheduler>, depth: usize, tenants: usize) -> Scheduling {
        Scheduling {
            policy,
            depth,
            at_device: 0,
            flights: Flights::default(),
            gates: (0..tenants).map(|_| Gate::default()).collect(),
        }
    }

    /// Requests that wait here.
    pub fn waiting(&self) -> usize {
        let held: usize = self.gates.iter().map(|gate| gate.held.len()).sum();
        held + self.flights.len() - self.at_device
    }

    fn let_through(&mut self, now: Time, submitted: Time, request: &Request) {
        let &Request { id, tenant, .. } = request;
        let gate = &mut self.gates[usize::from(tenant.0)];
        gate.through += 1;
        gate.is_flushing = request.operation == Operation::Flush;
        let id = self.flights.take_off(Pending { id, tenant, submitted, held: now.since(submitted) });
        self.policy.add(now, &Request { id, ..*request });
    }

    fn dispatch(&mut self, now: Time, outbox: &mut Outbox) {
        while self.at_device < self.depth {
            let Some(request) = self.policy.next(now) else { return };
            self.at_device += 1;
            outbox.requests.push((0, request));
        }
    }
}

impl Stage for Scheduling {
    fn submit(&mut self, now: Time, request: &Request, outbox: &mut Outbox) -> Submit {
        let gate = &mut self.gates[usize::from(request.tenant.0)];
        if gate.held.is_empty() && gate.lets(request) {
            self.let_through(now, now, request);
            self.dispatch(now, outbox);
        } else {
            gate.held.push_back((now, *request));
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Option<Time> {
        None
    }

    fn advance(&mut self, _now: Time, _outbox: &mut Outbox) {}

    fn completed(&mut self, now: Time, _child: usize, completion: &Completion, outbox: &mut Outbox) {
        self.policy.completed(now, completion);
        let pending = self.flights.land(completion.id);
        self.at_device -= 1;
        let tenant = usize::from(pending.tenant.0);
        let gate = &mut self.gates[tenant];
        gate.through -= 1;
        gate.is_flushing &= gate.through > 0;
        while let Some((submitted, request)) = self.gates[tenant].held.front().copied()
            && self.gates[tenant].lets(&request)
        {
            self.gates[tenant].held.pop_front();
            self.let_through(now, submitted, &request);
        }
        let mut ledger = completion.ledger;
        ledger.charge(Cause::Barrier, pending.held);
        ledger.charge(Cause::HostQueue, now.since(pending.submitted) - ledger.total());
        outbox.completions.push(Completion { id: pending.id, ledger, ..*completion });
        self.dispatch(now, outbox);
    }
}
