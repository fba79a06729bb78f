//! Schedulers with timers of their own, through the router.

use std::collections::VecDeque;

use flashkeel_engine::{
    Arena, Cause, Completion, Leaf, Operation, Request, RequestId, Span, Stack, Submit, Time, Wake,
};

use super::barriers::Device;
use super::request;
use crate::scheduler::{IoScheduler, Scheduling};

/// Waits a while after each completion of a tenant, in case that one asks again,
/// before another is served: the idling of bfq.
#[derive(Clone)]
struct Idling {
    wait: Span,
    waiting: VecDeque<Request>,
    /// Whose turn it is, and until when the device is kept free for it.
    turn: Option<u16>,
    free_until: Option<Time>,
}

impl IoScheduler for Idling {
    fn add(&mut self, _now: Time, request: &Request) {
        self.waiting.push_back(*request);
    }

    fn next(&mut self, _now: Time) -> Option<Request> {
        let turn = self.turn.or(self.waiting.front().map(|request| request.tenant.0))?;
        let index = self.waiting.iter().position(|request| request.tenant.0 == turn)?;
        (self.turn, self.free_until) = (Some(turn), None);
        self.waiting.remove(index)
    }

    fn cut_power(&mut self, _now: Time) {
        self.waiting.clear();
    }

    fn completed(&mut self, now: Time, _completion: &Completion) {
        self.free_until = Some(now + self.wait);
    }

    fn next_event(&self) -> Wake {
        self.free_until.into()
    }

    fn advance(&mut self, now: Time) {
        if self.free_until.is_some_and(|until| until <= now) {
            (self.turn, self.free_until) = (None, None);
        }
    }
}

#[test]
fn a_scheduler_keeps_the_device_idle_for_a_while_and_no_longer() {
    let wait = Span(1_000);
    let idling = Idling { wait, waiting: VecDeque::new(), turn: None, free_until: None };
    let mut stack = Stack::new(Scheduling::new(Box::new(idling), 1), vec![Device::new(1)]);
    let (data, mut done) = (&mut Arena::new(), Vec::new());
    // The second of tenant 0 comes within the wait, and goes before that of tenant 1.
    for (at, id, tenant) in [(0, 0, 0), (1, 1, 1), (600, 2, 0)] {
        stack.advance(Time(at), data, &mut done);
        let read = request(id, tenant, Operation::Read, id, 1);
        assert_eq!(stack.submit(Time(at), &read, data), Submit::Accepted);
    }
    while let Some(next) = stack.next_event().time() {
        stack.advance(next, data, &mut done);
    }
    let order: Vec<RequestId> = done.iter().map(|completion| completion.id).collect();
    assert_eq!(order, [0, 2, 1].map(RequestId));
    let begun = done[2].time.0 - done[2].ledger.ns(Cause::OwnFlash);
    assert_eq!(begun, done[1].time.0 + wait.0, "the other is served when the wait is over");
}
