//! Keeps flushes in their order among the requests of their tenant.

use std::collections::VecDeque;

use flashkeel_engine::{Cause, Completion, Ledger, Operation, Request, Status, TenantId, Time};

use crate::claim::index_of;

/// A gate for each tenant. A flush goes through when all before it have
/// completed, and those after it wait until it has.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    gates: Vec<Gate>,
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

    fn let_through(&mut self, request: &Request) {
        self.through += 1;
        self.is_flushing = request.operation == Operation::Flush;
    }
}

impl Gates {
    /// Open gates, one for each tenant.
    pub fn new(tenants: usize) -> Gates {
        Gates { gates: (0..tenants).map(|_| Gate::default()).collect() }
    }

    #[inline]
    fn of(&mut self, tenant: TenantId) -> &mut Gate {
        let index = index_of(tenant, self.gates.len());
        &mut self.gates[index]
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

    /// Offers a request: whether it may go at once. If not, it is held.
    #[inline]
    pub fn enter(&mut self, now: Time, request: &Request) -> bool {
        let gate = self.of(request.tenant);
        let may_go = gate.held.is_empty() && gate.lets(request);
        if may_go {
            gate.let_through(request);
        } else {
            gate.held.push_back((now, *request));
        }
        may_go
    }

    /// A request of a tenant that went through has ended.
    #[inline]
    pub fn leave(&mut self, tenant: TenantId) {
        let gate = self.of(tenant);
        gate.through -= 1;
        gate.is_flushing &= gate.through > 0;
    }

    /// The next of a tenant's held requests, if it may go now, with the time of
    /// its submission.
    #[inline]
    pub fn release(&mut self, tenant: TenantId) -> Option<(Time, Request)> {
        let gate = self.of(tenant);
        if !gate.lets(&gate.held.front()?.1) {
            return None;
        }
        let released = gate.held.pop_front()?;
        gate.let_through(&released.1);
        Some(released)
    }

    /// Ends what is held as aborted at `now`; of what went through no more is
    /// heard.
    pub fn cut_power(&mut self, now: Time) -> Vec<Completion> {
        let gates = std::mem::replace(self, Gates::new(self.gates.len())).gates;
        let held = gates.into_iter().flat_map(|gate| gate.held);
        let ended = |(submitted, Request { id, .. })| {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Barrier, submitted, now);
            Completion { id, time: now, status: Status::Aborted, ledger }
        };
        held.map(ended).collect()
    }
}
