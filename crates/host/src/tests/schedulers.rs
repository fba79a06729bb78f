//! What each I/O scheduler does with requests that wait.

use flashkeel_engine::{Completion, Operation, Prediction, Predictor, Request, Span, Stream, Time};
use serde_json::{Value, json};

use super::request;
use crate::claim::{Claim, Priority, TenantClass};
use crate::scheduler::{IoScheduler, IoSchedulerConfig};

use Operation::{Read, Write};

fn build(policy: Value, claims: &[Claim], predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
    let config: IoSchedulerConfig = serde_json::from_value(policy).expect("a policy");
    config.policy().build(claims, predictor)
}

const ONE: &[Claim] =
    &[Claim { weight: 100, class: TenantClass::BestEffort, priority: Priority::Medium, overtakes: false }];

/// Adds everything at time 0 and takes everything out; the pages in order.
fn order(scheduler: &mut dyn IoScheduler, requests: &[Request]) -> Vec<u64> {
    requests.iter().for_each(|request| scheduler.add(Time(0), request));
    std::iter::from_fn(|| scheduler.next(Time(1))).map(|request| request.lba.0 / 8).collect()
}

#[test]
fn none_is_oldest_first() {
    let requests = [request(0, 0, Write, 9, 1), request(1, 0, Read, 5, 1), request(2, 0, Write, 7, 1)];
    assert_eq!(order(&mut *build(json!("none"), ONE, None), &requests), [9, 5, 7]);
}

#[test]
fn deadline_takes_reads_in_batches_by_address_and_lets_writes_starve_twice() {
    let policy = json!({ "policy": "deadline", "fifo_batch": 2 });
    let writes = [20, 10].iter().enumerate().map(|(id, &page)| request(id as u64, 0, Write, page, 1));
    let reads =
        [8, 2, 6, 4, 1].iter().enumerate().map(|(id, &page)| request(10 + id as u64, 0, Read, page, 1));
    let requests: Vec<Request> = writes.chain(reads).collect();
    // A batch goes on by address, the next starts where that ended; past the
    // highest it starts with the oldest.
    assert_eq!(order(&mut *build(policy, ONE, None), &requests), [1, 2, 4, 6, 10, 20, 8]);
}

/// Once each that came or went moved all others that waited: 400,000 took half a minute.
#[test]
fn deadline_sorts_as_many_as_wait() {
    let mut scheduler = build(json!({ "policy": "deadline", "fifo_batch": u32::MAX }), ONE, None);
    let mut random = Stream::new(1, "deadline");
    let pages: Vec<u64> = (0..1_000_000).map(|_| random.below(1 << 30)).collect();
    let requests = pages.iter().enumerate().map(|(id, &page)| request(id as u64, 0, Read, page, 1));
    requests.for_each(|request| scheduler.add(Time(0), &request));
    let taken = std::iter::from_fn(|| scheduler.next(Time(1)));
    let taken: Vec<(u64, u64)> = taken.map(|request| (request.lba.0 / 8, request.id.0)).collect();
    let mut rising: Vec<(u64, u64)> = pages.into_iter().zip(0..).collect();
    rising.sort_unstable();
    assert!(taken == rising);
}

#[test]
fn deadline_serves_what_is_past_its_deadline_first() {
    let mut scheduler = build(json!("deadline"), ONE, None);
    scheduler.add(Time(0), &request(0, 0, Read, 9, 1));
    scheduler.add(Time(0), &request(1, 0, Read, 3, 1));
    let late = Time::ZERO + Span::from_ms(501);
    assert_eq!(scheduler.next(late).unwrap().lba.0, 9 * 8);
}

#[test]
fn deadline_serves_classes_in_order_until_they_are_old() {
    let claim = |class| Claim { class, ..ONE[0] };
    let claims = [claim(TenantClass::Idle), claim(TenantClass::BestEffort), claim(TenantClass::RealTime)];
    let requests: Vec<Request> = (0..3).map(|id| request(id, id as u16, Read, id, 1)).collect();
    assert_eq!(order(&mut *build(json!("deadline"), &claims, None), &requests), [2, 1, 0]);
    let mut scheduler = build(json!("deadline"), &claims, None);
    requests.iter().for_each(|request| scheduler.add(Time(0), request));
    let aged = Time::ZERO + Span::from_secs(10);
    let pages: Vec<u64> = std::iter::from_fn(|| scheduler.next(aged)).map(|r| r.lba.0 / 8).collect();
    assert_eq!(pages, [1, 0, 2]);
}

#[test]
fn fair_divides_by_weight_and_charges_writes_more() {
    let claim = |weight| Claim { weight, ..ONE[0] };
    let served = |first: Operation, second: Operation, weights: [u32; 2]| {
        let policy = json!({ "policy": "fair", "budget": "32KiB" });
        let mut scheduler = build(policy, &weights.map(claim), None);
        for id in 0..20_000 {
            let (tenant, operation) = if id % 2 == 0 { (0, first) } else { (1, second) };
            scheduler.add(Time(0), &request(id, tenant, operation, id, 1));
        }
        let taken = (0..8_000).map(|_| scheduler.next(Time(1)).expect("plenty waits"));
        taken.filter(|request| request.tenant.0 == 0).count() as f64 / 8_000.0
    };
    for (got, expected) in [
        (served(Read, Read, [100, 100]), 0.5),
        (served(Read, Read, [300, 100]), 0.75),
        (served(Write, Write, [100, 400]), 0.2),
        (served(Read, Write, [100, 100]), 0.75),
    ] {
        assert!((got - expected).abs() < 0.01, "{got} instead of {expected}");
    }
}

#[test]
fn fair_gives_no_credit_for_time_away_and_serves_higher_classes_first() {
    let claim = |class| Claim { class, ..ONE[0] };
    let claims =
        [claim(TenantClass::BestEffort), claim(TenantClass::BestEffort), claim(TenantClass::RealTime)];
    let mut scheduler = build(json!({ "policy": "fair", "budget": "4KiB" }), &claims, None);
    (0..2_000).for_each(|id| scheduler.add(Time(0), &request(id, 0, Read, id, 1)));
    (0..1_000).for_each(|_| assert!(scheduler.next(Time(1)).is_some()));
    (2_000..3_000).for_each(|id| scheduler.add(Time(2), &request(id, 1, Read, id, 1)));
    let late = (0..100).filter(|_| scheduler.next(Time(3)).unwrap().tenant.0 == 1).count();
    assert!((49..=51).contains(&late), "{late} of 100 for who came late");
    scheduler.add(Time(4), &request(3_000, 2, Read, 0, 1));
    assert_eq!(scheduler.next(Time(5)).unwrap().tenant.0, 2);
}

/// Finds reads of pages from 100 on slow, if any write is ahead.
#[derive(Clone)]
struct Wary;

impl Predictor for Wary {
    fn predict(&mut self, _now: Time, ahead: &[Request], request: &Request) -> Prediction {
        Prediction { latency: Span::ZERO, chance: 0.0, is_slow: request.lba.0 >= 800 && !ahead.is_empty() }
    }

    fn submitted(&mut self, _now: Time, _request: &Request) {}

    fn observe(&mut self, _now: Time, _completion: &Completion) {}

    fn cut_power(&mut self, _now: Time) {}
}

#[test]
fn pas_prefers_a_read_only_if_it_would_be_slow() {
    let operations = [(Write, 1), (Read, 7), (Write, 2), (Read, 100), (Write, 3), (Read, 101)];
    let requests: Vec<Request> = operations
        .iter()
        .enumerate()
        .map(|(id, &(operation, page))| request(id as u64, 0, operation, page, 1))
        .collect();
    let mut scheduler = build(json!("pas"), ONE, Some(Box::new(Wary)));
    assert_eq!(order(&mut *scheduler, &requests), [1, 7, 100, 101, 2, 3]);
    assert_eq!(order(&mut *scheduler, &requests[2..3]), [2], "writes alone go oldest first");
}

#[test]
fn round_robin_takes_a_burst_of_each_queue_in_turn() {
    let requests: Vec<Request> = [0, 0, 0, 0, 0, 2, 2, 1]
        .iter()
        .zip(0..)
        .map(|(&tenant, id)| request(id, tenant, Read, id, 1))
        .collect();
    let claims = [ONE[0]; 3];
    assert_eq!(order(&mut *build(json!("round-robin"), &claims, None), &requests), [0, 7, 5, 1, 6, 2, 3, 4]);
    let two = json!({ "policy": "round-robin", "burst": 2 });
    assert_eq!(order(&mut *build(two, &claims, None), &requests), [0, 1, 7, 5, 6, 2, 3, 4]);
}

#[test]
fn weighted_round_robin_serves_urgent_queues_first_and_others_by_the_weights_of_their_priorities() {
    let claim = |priority| Claim { priority, ..ONE[0] };
    let claims =
        [Priority::Low, Priority::High, Priority::Medium, Priority::Urgent, Priority::High].map(claim);
    // Twenty of each tenant; the page says whose.
    let requests: Vec<Request> = (0..100).map(|id| request(id, (id % 5) as u16, Read, id % 5, 1)).collect();
    let policy = json!({ "policy": "weighted-round-robin", "high": 4, "medium": 2, "low": 1 });
    let served = order(&mut *build(policy, &claims, None), &requests);
    assert_eq!(served[..20], [3; 20]);
    assert_eq!(served[20..34], [1, 4, 1, 4, 2, 2, 0, 1, 4, 1, 4, 2, 2, 0]);
    assert_eq!(served.len(), 100);
    // What is left when others have none takes the rest.
    assert_eq!(served[96..], [0; 4]);
}

/// What may wait for ever: SSDcheck (§IV) bounds nothing where every read would be slow.
const STARVED: [(&str, Operation); 1] = [("pas", Write)];

#[test]
fn nothing_else_waits_for_ever_while_others_keep_coming() {
    for policy in IoSchedulerConfig::NAMES {
        for (alone, others) in [(Read, Write), (Write, Read)] {
            let mut scheduler = build(json!(policy), ONE, Some(Box::new(Wary)));
            scheduler.add(Time(0), &request(0, 0, alone, 200, 1));
            // Twice as many come as are taken, and 20 s are beyond every deadline.
            let is_taken = (1..200_000).any(|turn| {
                let now = Time::ZERO + Span::from_us(100 * turn);
                for id in [2 * turn, 2 * turn + 1] {
                    scheduler.add(now, &request(id, 0, others, 100 + id % 1_000, 1));
                }
                scheduler.next(now).is_some_and(|request| request.operation == alone)
            });
            let may_starve = STARVED.contains(&(policy, alone));
            assert_ne!(is_taken, may_starve, "{policy}: a {alone:?} among {others:?}s");
        }
    }
}
