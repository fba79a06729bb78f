//! The scheduler as a stage: a bounded number of requests at the device, the
//! others waiting in the policy's order.

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Ledger, Limits, Outbox, Refusal, Request, RequestId, Stage,
    Status, Submit, Time, Wake,
};

use super::IoScheduler;
use crate::flight::Flights;

/// Gives requests to the only child, at most `depth` at a time.
#[derive(Clone)]
pub struct Scheduling {
    policy: Box<dyn IoScheduler>,
    depth: usize,
    at_device: usize,
    flights: Flights<Pending>,
}

/// A request that has not completed.
#[derive(Clone, Debug)]
struct Pending {
    /// Its number with whoever asked.
    id: RequestId,
    submitted: Time,
}

impl Scheduling {
    /// Over a device that gets `depth` requests at most.
    pub fn new(policy: Box<dyn IoScheduler>, depth: usize) -> Scheduling {
        Scheduling { policy, depth, at_device: 0, flights: Flights::default() }
    }

    /// Requests that wait here.
    pub fn waiting(&self) -> usize {
        self.flights.len() - self.at_device
    }

    /// What it says of itself.
    pub(crate) fn state(waiting: usize, at_device: usize) -> Answer {
        Answer::state([("waiting", waiting as u64), ("at_device", at_device as u64)])
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
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        let id = self.flights.take_off(Pending { id: request.id, submitted: now });
        self.policy.add(now, &Request { id, ..*request });
        self.dispatch(now, outbox);
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        Some(0)
    }

    fn next_event(&self) -> Wake {
        self.policy.next_event()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.policy.advance(now);
        self.dispatch(now, outbox);
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.policy.cut_power(now);
        self.at_device = 0;
        for (_, Pending { id, submitted }) in self.flights.take_all() {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::HostQueue, submitted, now);
            outbox.completions.push(Completion { id, time: now, status: Status::Aborted, ledger });
        }
    }

    fn command(&mut self, _now: Time, command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        match command {
            Command::State => Ok(Scheduling::state(self.waiting(), self.at_device)),
            _ => Err(Refusal::Unknown),
        }
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        self.policy.completed(now, completion);
        let pending = self.flights.land(completion.id);
        self.at_device -= 1;
        let ledger = &mut completion.ledger;
        ledger.charge(Cause::HostQueue, now.since(pending.submitted) - ledger.total());
        completion.id = pending.id;
        self.dispatch(now, outbox);
        true
    }
}
