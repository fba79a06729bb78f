//! Stages over leaves through the router, in virtual time.

use std::collections::VecDeque;

use flashkeel_engine::{
    Arena, Completion, Durable, Lba, Leaf, Ledger, Limits, Operation, Outbox, Request, RequestId, Span,
    Stack, Stage, Status, Submit, Time, Wake,
};

/// Serves one request at a time, each in `service`; refuses more than `depth`.
struct Server {
    service: Span,
    depth: usize,
    queue: VecDeque<(RequestId, Time)>,
    free_at: Time,
    refusals: u32,
}

impl Server {
    fn new(service: u64, depth: usize) -> Server {
        Server { service: Span(service), depth, queue: VecDeque::new(), free_at: Time::ZERO, refusals: 0 }
    }
}

const LIMITS: Limits =
    Limits { sectors: 1 << 20, block_sectors: 1, preferred_sectors: 8, durable: Durable::Acknowledged };

impl Leaf for Server {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.queue.len() == self.depth {
            self.refusals += 1;
            return Submit::Busy;
        }
        self.free_at = self.free_at.max(now) + self.service;
        self.queue.push_back((request.id, self.free_at));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.queue.front().map(|&(_, end)| end).into()
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena) {
        self.queue.iter_mut().for_each(|(_, end)| *end = now);
        self.free_at = now;
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        while let Some(&(id, time)) = self.queue.front().filter(|&&(_, end)| end <= now) {
            self.queue.pop_front();
            completions.push(Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
        }
    }
}

/// What a stage has in flight: the request, and its parts to come.
struct Parts {
    id: RequestId,
    left: u32,
}

/// Sends writes to every child and reads to one after the other.
struct Mirror {
    children: usize,
    turn: usize,
    parts: Vec<Parts>,
    /// Completions in order of their arrival here, as (child, time).
    seen: Vec<(usize, Time)>,
}

impl Mirror {
    fn new(children: usize) -> Mirror {
        Mirror { children, turn: 0, parts: Vec::new(), seen: Vec::new() }
    }
}

impl Stage for Mirror {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, _now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        let id = RequestId(self.parts.len() as u64);
        let all = request.operation == Operation::Write;
        let targets = if all { 0..self.children } else { self.turn..self.turn + 1 };
        self.turn = (self.turn + usize::from(!all)) % self.children;
        self.parts.push(Parts { id: request.id, left: targets.len() as u32 });
        outbox.requests.extend(targets.map(|child| (child, Request { id, ..*request })));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::NEVER
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, _outbox: &mut Outbox) {}

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        for parts in self.parts.iter_mut().filter(|parts| parts.left > 0) {
            parts.left = 0;
            outbox.completions.push(aborted(parts.id, now));
        }
    }

    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        _outbox: &mut Outbox,
    ) -> bool {
        assert_eq!(completion.time, now, "a stage hears of a completion at its own time");
        self.seen.push((child, now));
        let parts = &mut self.parts[completion.id.0 as usize];
        parts.left = parts.left.checked_sub(1).expect("a part completes exactly once");
        completion.id = parts.id;
        parts.left == 0
    }
}

/// Holds each request for a while before its only child gets it.
struct Delay {
    by: Span,
    held: VecDeque<(Time, Request)>,
}

impl Stage for Delay {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, _outbox: &mut Outbox) -> Submit {
        self.held.push_back((now + self.by, *request));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.held.front().map(|&(due, _)| due).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        while let Some(&(due, request)) = self.held.front().filter(|&&(due, _)| due <= now) {
            self.held.pop_front();
            assert_eq!(due, now, "a timer runs at its own time");
            outbox.requests.push((0, request));
        }
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        outbox.completions.extend(self.held.drain(..).map(|(_, request)| aborted(request.id, now)));
    }

    fn completed(
        &mut self,
        _now: Time,
        _child: usize,
        _completion: &mut Completion,
        _data: &mut Arena,
        _outbox: &mut Outbox,
    ) -> bool {
        true
    }
}

fn aborted(id: RequestId, time: Time) -> Completion {
    Completion { id, time, status: Status::Aborted, ledger: Ledger::ZERO }
}

fn request(id: u64, operation: Operation) -> Request {
    Request::new(RequestId(id), operation, Lba(0), 8)
}

/// Submits everything at its time; returns (request, end) in order of ending.
fn run(leaf: &mut impl Leaf, requests: &[(u64, Operation)]) -> Vec<(u64, u64)> {
    let mut done = Vec::new();
    for (id, &(at, operation)) in requests.iter().enumerate() {
        leaf.advance(Time(at), &mut Arena::new(), &mut done);
        assert_eq!(
            leaf.submit(Time(at), &request(id as u64, operation), &mut Arena::new()),
            Submit::Accepted
        );
    }
    while let Some(next) = leaf.next_event().time() {
        leaf.advance(next, &mut Arena::new(), &mut done);
    }
    done.iter().map(|completion| (completion.id.0, completion.time.0)).collect()
}

#[test]
fn a_mirrored_write_ends_with_its_slower_copy() {
    let mut stack = Stack::new(Mirror::new(2), vec![Server::new(10, 4), Server::new(25, 4)]);
    let ends = run(&mut stack, &[(0, Operation::Write), (3, Operation::Read), (5, Operation::Read)]);
    // The first read queues behind the fast copy, the second behind the slow.
    assert_eq!(ends, [(1, 20), (0, 25), (2, 50)]);
}

#[test]
fn busy_children_delay_requests_and_lose_none() {
    let mut stack = Stack::new(Mirror::new(2), vec![Server::new(10, 1), Server::new(10, 2)]);
    let requests: Vec<_> = (0..50).map(|index| (index, Operation::Write)).collect();
    let ends = run(&mut stack, &requests);
    // Served back to back, in order, whatever the depth of a child.
    let expected: Vec<_> = (0..50).map(|index| (index, (index + 1) * 10)).collect();
    assert_eq!(ends, expected);
    assert!(stack.children().all(|server| server.refusals > 0), "both children were busy at times");
}

#[test]
fn at_equal_times_children_are_heard_in_order() {
    let mut stack =
        Stack::new(Mirror::new(3), vec![Server::new(10, 1), Server::new(10, 1), Server::new(10, 1)]);
    run(&mut stack, &[(0, Operation::Write), (0, Operation::Write)]);
    let seen: Vec<_> = stack.stage().seen.iter().map(|&(child, time)| (child, time.0)).collect();
    assert_eq!(seen, [(0, 10), (1, 10), (2, 10), (0, 20), (1, 20), (2, 20)]);
}

#[test]
fn a_late_call_still_runs_everything_at_its_own_time() {
    let stages = || Stack::new(Delay { by: Span(7), held: VecDeque::new() }, vec![Server::new(10, 1)]);
    let requests = [(0, Operation::Read), (1, Operation::Read), (30, Operation::Read)];
    let expected = [(0, 17), (1, 27), (2, 47)];
    assert_eq!(run(&mut stages(), &requests), expected);
    // Told the time only once, long after.
    let mut stack = stages();
    for (id, at) in [(0, 0), (1, 1)] {
        assert_eq!(
            stack.submit(Time(at), &request(id, Operation::Read), &mut Arena::new()),
            Submit::Accepted
        );
    }
    let mut done = Vec::new();
    stack.advance(Time(1_000), &mut Arena::new(), &mut done);
    assert_eq!(done.iter().map(|completion| completion.time.0).collect::<Vec<_>>(), [17, 27]);
}

#[test]
fn stacks_nest() {
    let pair =
        |service| Stack::new(Mirror::new(2), vec![Server::new(service, 1), Server::new(service + 5, 1)]);
    let mut stack = Stack::new(Mirror::new(2), vec![pair(10), pair(20)]);
    let ends = run(&mut stack, &[(0, Operation::Write), (0, Operation::Write), (40, Operation::Read)]);
    // The read and the second write end together; the first child is heard first.
    assert_eq!(ends, [(0, 25), (2, 50), (1, 50)]);
}

#[test]
fn a_power_cut_ends_everything_once_wherever_it_was() {
    // Two at the children, two refused by them and waiting between.
    let pair = Stack::new(Mirror::new(2), vec![Server::new(10, 1), Server::new(15, 1)]);
    let mut stack = Stack::new(Mirror::new(1), vec![pair]);
    let mut data = Arena::new();
    for id in 0..4 {
        assert_eq!(stack.submit(Time(id), &request(id, Operation::Write), &mut data), Submit::Accepted);
    }
    stack.cut_power(Time(5), &mut data);
    assert_eq!(stack.next_event(), Wake::at(Time(5)));
    let mut done = Vec::new();
    stack.advance(Time(5), &mut data, &mut done);
    let ends = done.iter().map(|completion| (completion.id.0, completion.time.0, completion.status));
    assert_eq!(ends.collect::<Vec<_>>(), [0, 1, 2, 3].map(|id| (id, 5, Status::Aborted)));
    assert_eq!(stack.next_event(), Wake::NEVER, "nobody goes on with what was aborted");
    // It serves as before.
    assert_eq!(stack.submit(Time(6), &request(4, Operation::Write), &mut data), Submit::Accepted);
    done.clear();
    stack.advance(Time(100), &mut data, &mut done);
    assert_eq!(done.iter().map(|completion| completion.time.0).collect::<Vec<_>>(), [21]);
}

/// Always has something to do at one instant, and never does it.
struct Restless;

impl Leaf for Restless {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, _now: Time, _request: &Request, _data: &mut Arena) -> Submit {
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::at(Time(5))
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}

    fn advance(&mut self, _now: Time, _data: &mut Arena, _completions: &mut Vec<Completion>) {}
}

#[test]
#[should_panic(expected = "something schedules itself for ever at Time(5)")]
fn a_leaf_that_never_leaves_an_instant_does_not_hang_a_run() {
    Restless.advance_to_completion(Time::MAX, &mut Arena::new(), &mut Vec::new());
}

#[test]
#[should_panic(expected = "something schedules itself for ever at Time(5)")]
fn nor_does_it_below_a_stage() {
    let mut stack = Stack::new(Mirror::new(1), vec![Restless]);
    stack.advance_to_completion(Time::MAX, &mut Arena::new(), &mut Vec::new());
}
