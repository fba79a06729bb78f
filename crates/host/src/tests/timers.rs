//! Schedulers and volume managers with timers of their own, through the router.

use std::collections::VecDeque;

use flashkeel_engine::{
    Arena, Cause, Completion, Lba, Leaf, Operation, Request, RequestId, Span, Stack, Status, Submit, Time,
    Wake,
};

use super::barriers::Device;
use super::request;
use crate::scheduler::{IoScheduler, Scheduling};
use crate::volume::{Extent, VolumeManager, Volumes};

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

/// Two volumes, each of which may be sent so many sectors in each period.
#[derive(Clone)]
struct Budgeted {
    period: Span,
    sectors: u32,
    left: [u32; 2],
    ends: Time,
}

impl Volumes for Budgeted {
    fn sectors(&self) -> u64 {
        1 << 10
    }

    fn place(&self, volume: usize, lba: Lba) -> Extent {
        Extent { device: 0, lba: Lba(lba.0 + ((volume as u64) << 10)), run: self.sectors() - lba.0 }
    }

    fn lets(&mut self, _now: Time, request: &Request) -> bool {
        let left = &mut self.left[usize::from(request.tenant.0)];
        let is_let = request.sectors <= *left;
        *left -= if is_let { request.sectors } else { 0 };
        is_let
    }

    fn next_event(&self) -> Wake {
        Wake::at(self.ends)
    }

    fn advance(&mut self, now: Time) {
        if self.ends <= now {
            (self.left, self.ends) = ([self.sectors; 2], self.ends + self.period);
        }
    }
}

fn budgeted() -> Stack<VolumeManager, Device> {
    let period = Span(10_000);
    let budget = Budgeted { period, sectors: 16, left: [16; 2], ends: Time(0) + period };
    let device = Device::new(1);
    Stack::new(VolumeManager::new(Box::new(budget), None, &[device.limits()], 2), vec![device])
}

#[test]
fn a_volume_manager_holds_what_is_beyond_a_budget() {
    let (mut stack, data, mut done) = (budgeted(), &mut Arena::new(), Vec::new());
    // Of tenant 0 two pages a period; the flush waits for all before it. Tenant 1 is
    // within its budget.
    for id in 0..5 {
        assert_eq!(stack.submit(Time(0), &request(id, 0, Operation::Write, id, 1), data), Submit::Accepted);
    }
    let flush = request(5, 0, Operation::Flush, 0, 0);
    assert_eq!(stack.submit(Time(0), &flush, data), Submit::Accepted);
    assert_eq!(stack.submit(Time(0), &request(6, 0, Operation::Read, 0, 1), data), Submit::Accepted);
    assert_eq!(stack.submit(Time(0), &request(7, 1, Operation::Write, 0, 1), data), Submit::Accepted);
    assert_eq!(stack.stage().waiting(), 5);
    for until in 1..=40 {
        stack.advance(Time(until * 1_000), data, &mut done);
    }
    assert_eq!(stack.stage().waiting(), 0);
    let mut periods: Vec<(u64, u64)> = done.iter().map(|end| (end.id.0, end.time.0 / 10_000)).collect();
    periods.sort_unstable();
    assert_eq!(periods, [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 0)]);
    for end in &done {
        assert_eq!(end.ledger.total(), end.time.since(Time(0)));
        let (queued, barred) = (end.ledger.ns(Cause::HostQueue), end.ledger.ns(Cause::Barrier));
        let held = [0, 0, 10_000, 10_000, 20_000, 0, 0, 0][end.id.0 as usize];
        assert_eq!(queued, held, "{end:?}");
        assert_eq!(barred > 0, [5, 6].contains(&end.id.0), "{end:?}");
    }
}

#[test]
fn what_a_volume_manager_holds_ends_in_a_power_cut() {
    let (mut stack, data, mut done) = (budgeted(), &mut Arena::new(), Vec::new());
    for id in 0..4 {
        assert_eq!(stack.submit(Time(0), &request(id, 0, Operation::Write, id, 1), data), Submit::Accepted);
    }
    stack.cut_power(Time(5), data);
    stack.advance(Time(5), data, &mut done);
    let mut ids: Vec<u64> = done.iter().map(|end| end.id.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3]);
    assert!(done.iter().all(|end| end.status == Status::Aborted && end.ledger.total() == Span(5)));
    stack.advance(Time(0) + Span(50_000), data, &mut done);
    assert_eq!((done.len(), stack.stage().waiting()), (4, 0));
}
