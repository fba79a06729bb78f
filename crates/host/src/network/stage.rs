//! The network as a stage over the target.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashkeel_engine::units::Rate;
use flashkeel_engine::{
    Arena, Cause, Completion, Ledger, Limits, Operation, Outbox, Request, RequestId, Span, Stage, Status,
    Stream, Submit, Time, Wake,
};
use flashkeel_nvm::Latency;
use serde::Serialize;

use super::LegConfig;
use super::order::Order;
use crate::flight::Flights;

/// Bytes of a request without data and of a completion (NVMe over Fabrics 1.1:
/// capsules of 64 and 16 bytes).
const REQUEST_BYTES: u64 = 64;
const RESPONSE_BYTES: u64 = 16;

/// The directions.
const THERE: usize = 0;
const BACK: usize = 1;

/// Carries requests to the only child, and completions back.
#[derive(Clone)]
pub struct Network {
    limits: Limits,
    directions: [Direction; 2],
    latency: Latency,
    loss: f64,
    retransmit_after: Span,
    random: Stream,
    flights: Flights<Flight>,
    /// When each message arrives, in which direction, and whose it is.
    arrivals: BinaryHeap<Reverse<(Time, usize, u64)>>,
    report: NetworkReport,
}

/// What a network has carried since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkReport {
    /// Bytes from the hosts to the target.
    pub request_bytes: u64,
    /// Bytes from the target to the hosts.
    pub response_bytes: u64,
    /// Messages that were lost and sent again.
    pub retransmissions: u64,
}

/// A direction, which carries one message after the other.
#[derive(Clone)]
struct Direction {
    rate: Rate,
    order: Box<dyn Order>,
    /// Those that go first, and the others.
    preferred: VecDeque<RequestId>,
    others: VecDeque<RequestId>,
    /// The message that is being sent, and until when.
    sending: Option<(Time, RequestId)>,
}

/// A request on its way there, at the target, or on its way back.
#[derive(Clone, Debug)]
struct Flight {
    request: Request,
    submitted: Time,
    arrived: Time,
    /// The end at the target.
    ended: Option<Completion>,
}

impl Flight {
    /// Bytes of its message in a direction.
    fn bytes(&self, direction: usize) -> u64 {
        match (direction, self.request.operation) {
            (THERE, Operation::Write | Operation::Demote) => REQUEST_BYTES + self.request.bytes(),
            (THERE, _) => REQUEST_BYTES,
            (_, Operation::Read) => RESPONSE_BYTES + self.request.bytes(),
            _ => RESPONSE_BYTES,
        }
    }
}

impl Network {
    /// Before a target with such limits. The settings have been checked.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn new(config: &LegConfig, limits: Limits, random: Stream) -> Result<Network, String> {
        let direction = |rate| Direction {
            rate,
            order: config.order.policy().build(),
            preferred: VecDeque::new(),
            others: VecDeque::new(),
            sending: None,
        };
        Ok(Network {
            limits,
            directions: [direction(config.request_bandwidth), direction(config.response_bandwidth)],
            latency: Latency::resolve(&config.latency, Span::ZERO, "latency")?,
            loss: config.loss,
            retransmit_after: config.retransmit_after,
            random,
            flights: Flights::default(),
            arrivals: BinaryHeap::new(),
            report: NetworkReport::default(),
        })
    }

    /// What has been carried since the start or the last reset.
    pub fn report(&self) -> &NetworkReport {
        &self.report
    }

    /// Starts counting anew, as at the end of a warm-up.
    pub fn reset_counters(&mut self) {
        self.report = NetworkReport::default();
    }

    /// A message waits for its turn.
    fn queue(&mut self, now: Time, index: usize, id: RequestId) {
        let bytes = self.flights.get_mut(id).expect("on its way").bytes(index);
        match index {
            THERE => self.report.request_bytes += bytes,
            _ => self.report.response_bytes += bytes,
        }
        let direction = &mut self.directions[index];
        let is_preferred = direction.order.is_preferred(bytes);
        let queue = if is_preferred { &mut direction.preferred } else { &mut direction.others };
        queue.push_back(id);
        self.send(now, index);
    }

    /// Sends the next message if the direction is free.
    fn send(&mut self, now: Time, index: usize) {
        let direction = &mut self.directions[index];
        if direction.sending.is_some() {
            return;
        }
        let Some(id) = direction.preferred.pop_front().or_else(|| direction.others.pop_front()) else {
            return;
        };
        let bytes = self.flights.get_mut(id).expect("on its way").bytes(index);
        direction.sending = Some((now + direction.rate.time_for(bytes), id));
    }

    /// The last byte of a message has been sent.
    fn sent(&mut self, now: Time, index: usize, id: RequestId) {
        self.directions[index].sending = None;
        let mut arrival = now + self.latency.draw(&mut self.random);
        while self.loss > 0.0 && self.random.chance(self.loss) {
            self.report.retransmissions += 1;
            arrival += self.retransmit_after;
        }
        self.arrivals.push(Reverse((arrival, index, id.0)));
        self.send(now, index);
    }

    fn arrived(&mut self, now: Time, index: usize, id: RequestId, outbox: &mut Outbox) {
        if index == THERE {
            let flight = self.flights.get_mut(id).expect("on its way");
            flight.arrived = now;
            outbox.requests.push((0, Request { id, ..flight.request }));
            return;
        }
        let Flight { request, submitted, arrived, ended } = self.flights.land(id);
        let Completion { time, status, mut ledger, .. } = ended.expect("it has been served");
        // What the target's ledger does not cover was spent before its door.
        ledger.charge(Cause::HostQueue, time.since(arrived) - ledger.total());
        ledger.charge_between(Cause::NetworkRequest, submitted, arrived);
        ledger.charge_between(Cause::NetworkResponse, time, now);
        outbox.completions.push(Completion { id: request.id, time: now, status, ledger });
    }
}

impl Stage for Network {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, _outbox: &mut Outbox) -> Submit {
        if request.operation != Operation::Flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        let flight = Flight { request: *request, submitted: now, arrived: now, ended: None };
        let id = self.flights.take_off(flight);
        self.queue(now, THERE, id);
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        Some(0)
    }

    fn next_event(&self) -> Wake {
        let sending = self.directions.iter().filter_map(|direction| Some(direction.sending?.0));
        let arrival = self.arrivals.peek().map(|&Reverse((time, ..))| time);
        sending.chain(arrival).min().into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        for index in [THERE, BACK] {
            if let Some((end, id)) = self.directions[index].sending
                && end <= now
            {
                self.sent(now, index, id);
            }
        }
        while let Some(&Reverse((time, index, id))) = self.arrivals.peek()
            && time <= now
        {
            self.arrivals.pop();
            self.arrived(now, index, RequestId(id), outbox);
        }
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        _outbox: &mut Outbox,
    ) -> bool {
        let flight = self.flights.get_mut(completion.id).expect("at the target");
        flight.ended = Some(Completion { time: now, ..*completion });
        self.queue(now, BACK, completion.id);
        false
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        for direction in &mut self.directions {
            direction.preferred.clear();
            direction.others.clear();
            direction.sending = None;
        }
        self.arrivals.clear();
        for (_, Flight { request, submitted, .. }) in self.flights.take_all() {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::NetworkRequest, submitted, now);
            let status = Status::Aborted;
            outbox.completions.push(Completion { id: request.id, time: now, status, ledger });
        }
    }
}
