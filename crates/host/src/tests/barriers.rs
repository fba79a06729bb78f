//! Flushes keep their place among the requests of their tenant, whatever the
//! scheduler and whatever the device's order of service.

use std::collections::BTreeMap;

use flashkeel_engine::{
    Cause, Completion, Ledger, Operation, Outbox, Prediction, Predictor, Request, RequestId, Span, Stage,
    Status, Stream, Submit, Time,
};

use super::request;
use crate::scheduler::{IoSchedulerConfig, Scheduling};
use crate::stack::{Claim, TenantClass};

/// Finds every second read slow.
struct Fickle(bool);

impl Predictor for Fickle {
    fn predict(&mut self, _now: Time, ahead: &[Request], request: &Request) -> Prediction {
        assert!(ahead.iter().all(|older| older.id < request.id), "ahead is what is older");
        self.0 = !self.0;
        Prediction { latency: Span::ZERO, is_slow: self.0 }
    }

    fn submitted(&mut self, _now: Time, _request: &Request) {}

    fn observe(&mut self, _now: Time, _completion: &Completion) {}
}

const TENANTS: u16 = 3;
const REQUESTS: u64 = 4_000;

fn scheduling(policy: &str) -> Scheduling {
    let config: IoSchedulerConfig = serde_json::from_value(policy.into()).expect("a policy");
    let classes = [TenantClass::BestEffort, TenantClass::RealTime, TenantClass::Idle];
    let claims: Vec<Claim> = classes.iter().map(|&class| Claim { weight: 100, class }).collect();
    Scheduling::new(config.policy().build(&claims, Some(Box::new(Fickle(false)))), 8, claims.len())
}

#[test]
fn flushes_keep_their_order_and_every_request_ends_once() {
    for policy in IoSchedulerConfig::NAMES {
        run(policy);
    }
}

fn run(policy: &str) {
    let mut stage = scheduling(policy);
    let mut random = Stream::new(4, policy);
    let mut outbox = Outbox::default();
    let mut operations = Vec::new();
    let mut submitted = Vec::new();
    // What the device has; which of the host's requests it was, by arrival of
    // the same tenant, operation and address.
    let mut at_device: Vec<(Request, Time)> = Vec::new();
    let mut ended: BTreeMap<u64, Time> = BTreeMap::new();
    let mut begun: BTreeMap<u64, Time> = BTreeMap::new();
    let mut now = Time::ZERO;
    while ended.len() < REQUESTS as usize {
        now += Span(random.between(1, 50));
        let next = submitted.len() as u64;
        if next < REQUESTS && (at_device.is_empty() || random.chance(0.6)) {
            let operation = match random.below(20) {
                0 => Operation::Flush,
                1..10 => Operation::Read,
                _ => Operation::Write,
            };
            let tenant = random.below(u64::from(TENANTS)) as u16;
            // The address tells which request it is.
            let mut new = request(next, tenant, operation, next, 1);
            if operation == Operation::Flush {
                new.sectors = 0;
            }
            operations.push((tenant, operation));
            submitted.push(now);
            assert_eq!(stage.submit(now, &new, &mut outbox), Submit::Accepted);
        } else if !at_device.is_empty() {
            let (request, since) = at_device.swap_remove(random.below(at_device.len() as u64) as usize);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::OwnFlash, since, now);
            let completion = Completion { id: request.id, time: now, status: Status::Ok, ledger };
            stage.completed(now, 0, &completion, &mut outbox);
        }
        for (child, request) in outbox.requests.drain(..) {
            assert_eq!(child, 0);
            begun.insert(request.lba.0 / 8, now);
            at_device.push((request, now));
        }
        assert!(at_device.len() <= 8, "{policy}: the device gets no more than its depth");
        for completion in outbox.completions.drain(..) {
            let RequestId(id) = completion.id;
            assert_eq!(completion.ledger.total(), now.since(submitted[id as usize]), "{policy}");
            assert!(ended.insert(id, now).is_none(), "{policy}: {id} ended twice");
        }
    }
    assert_eq!(stage.waiting(), 0);
    for (flush, &(tenant, operation)) in operations.iter().enumerate() {
        if operation != Operation::Flush {
            continue;
        }
        let flush = flush as u64;
        let of_tenant = |id: &u64| operations[*id as usize].0 == tenant;
        for before in (0..flush).filter(of_tenant) {
            assert!(ended[&before] <= begun[&flush], "{policy}: a flush comes after what was before it");
        }
        for after in (flush + 1..REQUESTS).filter(of_tenant) {
            assert!(ended[&flush] <= begun[&after], "{policy}: and before what came after it");
        }
    }
}

#[test]
fn time_behind_a_barrier_has_its_own_cause() {
    let mut stage = scheduling("none");
    let mut outbox = Outbox::default();
    let flush = Request { sectors: 0, ..request(1, 0, Operation::Flush, 0, 1) };
    for request in [request(0, 0, Operation::Write, 0, 1), flush, request(2, 0, Operation::Read, 2, 1)] {
        assert_eq!(stage.submit(Time(0), &request, &mut outbox), Submit::Accepted);
    }
    for (id, time) in [(0, 100), (1, 250), (2, 400)] {
        assert_eq!(outbox.requests.len(), 1);
        outbox.requests.clear();
        let ledger = Ledger::ZERO;
        let id = RequestId(id);
        stage.completed(
            Time(time),
            0,
            &Completion { id, time: Time(time), status: Status::Ok, ledger },
            &mut outbox,
        );
    }
    let barrier: Vec<u64> =
        outbox.completions.iter().map(|completion| completion.ledger.ns(Cause::Barrier)).collect();
    assert_eq!(barrier, [0, 100, 250]);
}
