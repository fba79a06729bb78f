//! A network of two directions: what takes how long, and what small messages first
//! does to reads.

use std::collections::BTreeMap;

use flashkeel_engine::units::Rate;
use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Leaf, Ledger, Limits, Operation, Request, Span, Stack, Status, Stream,
    Submit, Time, Wake,
};
use flashkeel_nvm::LatencyConfig;

use super::request;
use crate::network::order::OrderConfig;
use crate::network::{LegConfig, Network};

const SERVICE: Span = Span::from_us(10);

/// Serves any number of requests at once, each in the same time.
#[derive(Clone)]
struct Target(Vec<(Time, Request)>);

impl Leaf for Target {
    fn limits(&self) -> Limits {
        let durable = Durable::Acknowledged;
        Limits { sectors: 1 << 20, block_sectors: 8, preferred_sectors: 8, durable }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.0.push((now, *request));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.0.first().map(|&(begun, _)| begun + SERVICE).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        while self.next_event().is_due(now) {
            let (begun, Request { id, .. }) = self.0.remove(0);
            let mut ledger = Ledger::ZERO;
            ledger.charge(Cause::OwnFlash, SERVICE);
            completions.push(Completion { id, time: begun + SERVICE, status: Status::Ok, ledger });
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.0.clear();
    }
}

fn fixed(latency: Span) -> LatencyConfig {
    LatencyConfig { min: latency, p50: latency, p99: latency, p99_999: latency }
}

fn leg() -> LegConfig {
    LegConfig {
        latency: fixed(Span::from_us(5)),
        request_bandwidth: Rate(1_000_000_000),
        response_bandwidth: Rate(2_000_000_000),
        ..LegConfig::default()
    }
}

fn stack(leg: &LegConfig) -> Stack<Network, Target> {
    let target = Target(vec![]);
    let network = Network::new(leg, target.limits(), Stream::new(1, "network")).expect("a network");
    Stack::new(network, vec![target])
}

/// Gives all at their times; the ledger of each.
fn run(leg: &LegConfig, requests: &[(Time, Request)]) -> BTreeMap<u64, Ledger> {
    let (mut stack, mut data, mut done) = (stack(leg), Arena::new(), Vec::new());
    for (now, request) in requests {
        stack.advance(*now, &mut data, &mut done);
        assert_eq!(stack.submit(*now, request, &mut data), Submit::Accepted);
    }
    stack.advance(Time::MAX, &mut data, &mut done);
    assert_eq!(done.len(), requests.len());
    for completion in &done {
        let (submitted, _) = requests.iter().find(|(_, request)| request.id == completion.id).expect("known");
        assert_eq!(completion.ledger.total(), completion.time.since(*submitted));
    }
    done.into_iter().map(|completion| (completion.id.0, completion.ledger)).collect()
}

#[test]
fn a_message_takes_its_bytes_and_its_latency_in_each_direction() {
    let read = request(0, 0, Operation::Read, 0, 1);
    let write = request(1, 0, Operation::Write, 0, 1);
    let ledgers = run(&leg(), &[(Time::ZERO, read), (Time(1_000_000), write)]);
    let both = |id| [Cause::NetworkRequest, Cause::NetworkResponse].map(|cause| ledgers[&id].ns(cause));
    // 64 bytes there; 16 bytes and a page back, at twice the rate.
    assert_eq!(both(0), [5_000 + 64, 5_000 + (16 + 4096) / 2]);
    assert_eq!(both(1), [5_000 + 64 + 4096, 5_000 + 8]);
    assert_eq!(ledgers[&0].ns(Cause::OwnFlash), SERVICE.0);
}

#[test]
fn what_is_demoted_is_carried_there() {
    let demoted = request(0, 0, Operation::Demote, 0, 1);
    let ledgers = run(&leg(), &[(Time::ZERO, demoted)]);
    assert_eq!(ledgers[&0].ns(Cause::NetworkRequest), 5_000 + 64 + 4096);
    assert_eq!(ledgers[&0].ns(Cause::NetworkResponse), 5_000 + 8);
}

#[test]
fn a_lost_message_is_sent_again_and_costs_what_chance_says() {
    let leg = LegConfig { loss: 0.2, retransmit_after: Span::from_us(100), ..leg() };
    let asked: Vec<(Time, Request)> =
        (0..20_000).map(|id| (Time(id * 1_000_000), request(id, 0, Operation::Read, 0, 1))).collect();
    let ledgers = run(&leg, &asked);
    for (cause, sent) in [(Cause::NetworkRequest, 64), (Cause::NetworkResponse, 2056)] {
        let sum: u64 = ledgers.values().map(|ledger| ledger.ns(cause) - 5_000 - sent).sum();
        // The number of losses before a message arrives is geometric.
        let mean = sum as f64 / ledgers.len() as f64 / 100_000.0;
        assert!((mean - 0.25).abs() < 0.02, "{mean}");
    }
}

/// Reads and writes of 64 KiB in turn: what a read spends on its way there and back,
/// in the mean.
fn mixed(order: &str) -> [f64; 2] {
    let order: OrderConfig = serde_json::from_value(order.into()).expect("a policy");
    let leg = LegConfig { order, ..leg() };
    let operation = |id: u64| if id.is_multiple_of(2) { Operation::Write } else { Operation::Read };
    let round = |id: u64| Time(id / 64 * 10_000_000);
    let asked: Vec<(Time, Request)> =
        (0..3200).map(|id| (round(id), request(id, 0, operation(id), id % 64 * 16, 16))).collect();
    let ledgers = run(&leg, &asked);
    let reads = || ledgers.iter().filter(|(id, _)| operation(**id) == Operation::Read);
    [Cause::NetworkRequest, Cause::NetworkResponse]
        .map(|cause| reads().map(|(_, ledger)| ledger.ns(cause) as f64).sum::<f64>() / reads().count() as f64)
}

#[test]
fn small_messages_first_hurry_reads_there_and_leave_their_data_stuck() {
    let ([there, back], [fast_there, slow_back]) = (mixed("fifo"), mixed("small-first"));
    // Only the write that is being sent still stands before them, so that all arrive
    // at once, and the data of each wait for those of all before.
    assert!(fast_there < there / 10.0, "{fast_there} {there}");
    assert!(slow_back > 10.0 * back, "{slow_back} {back}");
}

#[test]
fn a_power_cut_ends_what_is_on_its_way() {
    let mut stack = stack(&leg());
    let (mut data, mut done) = (Arena::new(), Vec::new());
    for id in 0..9 {
        let read = request(id, 0, Operation::Read, id, 1);
        stack.advance(Time(id * 3_000), &mut data, &mut done);
        assert_eq!(stack.submit(Time(id * 3_000), &read, &mut data), Submit::Accepted);
    }
    stack.advance(Time(27_000), &mut data, &mut done);
    stack.cut_power(Time(27_000), &mut data);
    stack.advance(Time::MAX, &mut data, &mut done);
    assert_eq!(done.len(), 9);
    assert!(done.iter().any(|completion| completion.status == Status::Ok));
    let cut = done.iter().filter(|completion| completion.status == Status::Aborted);
    assert!(cut.clone().count() > 3 && cut.clone().all(|completion| completion.time == Time(27_000)));
    for completion in done {
        let submitted = Time(completion.id.0 * 3_000);
        assert_eq!(completion.ledger.total(), completion.time.since(submitted));
    }
}
