//! Flushes keep their place among the requests of their tenant, whatever the
//! scheduler and whatever the devices' order of service.

use std::collections::BTreeMap;

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Leaf, Ledger, Limits, Operation, Prediction, Predictor, Request, Span,
    Stack, Status, Stream, Submit, Time, Wake,
};

use super::request;
use crate::claim::{Claim, TenantClass};
use crate::scheduler::{IoSchedulerConfig, Scheduling};
use crate::volume::{VolumeConfig, VolumeManager};

/// Finds every second read slow.
#[derive(Clone)]
struct Fickle(bool);

impl Predictor for Fickle {
    fn predict(&mut self, _now: Time, ahead: &[Request], request: &Request) -> Prediction {
        assert!(ahead.iter().all(|older| older.id < request.id), "ahead is what is older");
        self.0 = !self.0;
        Prediction { latency: Span::ZERO, chance: 0.0, is_slow: self.0 }
    }

    fn submitted(&mut self, _now: Time, _request: &Request) {}

    fn observe(&mut self, _now: Time, _completion: &Completion) {}

    fn cut_power(&mut self, _now: Time) {}
}

/// Serves up to eight requests at a time, each in a time of its own.
pub(super) struct Device {
    random: Stream,
    /// When each request ends and began.
    at_work: Vec<(Time, Time, Request)>,
    begun: Vec<(Time, Request)>,
}

impl Device {
    /// Idle; its times follow from the seed.
    pub fn new(seed: u64) -> Device {
        Device { random: Stream::new(seed, "device"), at_work: vec![], begun: vec![] }
    }
}

impl Leaf for Device {
    fn limits(&self) -> Limits {
        let (sectors, block_sectors) = (DEVICE_SECTORS, 8);
        Limits { sectors, block_sectors, preferred_sectors: block_sectors, durable: Durable::Acknowledged }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        let end = now + Span(self.random.between(10, 400));
        self.at_work.push((end, now, *request));
        self.begun.push((now, *request));
        assert!(self.at_work.len() <= 8, "a device gets no more than its depth");
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.at_work.iter().map(|&(end, ..)| end).min().into()
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.at_work.clear();
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        while let Some(next) = self.next_event().time().filter(|&next| next <= now) {
            let index = self.at_work.iter().position(|&(end, ..)| end == next).expect("the next");
            let (time, begun, Request { id, .. }) = self.at_work.swap_remove(index);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::OwnFlash, begun, time);
            completions.push(Completion { id, time, status: Status::Ok, ledger });
        }
    }
}

const TENANTS: u16 = 3;
const REQUESTS: u64 = 4_000;
/// Each tenant's volume has a page for each request, so that the page tells which.
const DEVICE_SECTORS: u64 = REQUESTS * 8 * TENANTS as u64 / 2;

/// The tenants' volumes, laid over two devices.
fn stack(policy: &str) -> Stack<VolumeManager, Stack<Scheduling, Device>> {
    let classes = [TenantClass::BestEffort, TenantClass::RealTime, TenantClass::Idle];
    let claims: Vec<Claim> = classes.iter().map(|&class| Claim { class, ..Claim::default() }).collect();
    over(policy, &claims)
}

/// The same for tenants with such claims; one for all who share the only volume.
fn over(policy: &str, claims: &[Claim]) -> Stack<VolumeManager, Stack<Scheduling, Device>> {
    let devices = (0..2).map(|device| {
        let config: IoSchedulerConfig = serde_json::from_value(policy.into()).expect("a policy");
        let order = config.policy().build(claims, Some(Box::new(Fickle(false))));
        let device = Device { random: Stream::new(device, policy), at_work: vec![], begun: vec![] };
        Stack::new(Scheduling::new(order, 8), vec![device])
    });
    let volumes = VolumeConfig::default().policy().build(&[DEVICE_SECTORS; 2], claims.len());
    let volumes = volumes.expect("volumes on two devices");
    let devices: Vec<_> = devices.collect();
    let limits: Vec<Limits> = devices.iter().map(Leaf::limits).collect();
    Stack::new(VolumeManager::new(volumes, None, &limits, claims.len()), devices)
}

#[test]
fn flushes_keep_their_order_and_every_request_ends_once() {
    for policy in IoSchedulerConfig::NAMES {
        run(policy);
    }
}

fn run(policy: &str) {
    let mut stack = stack(policy);
    let mut random = Stream::new(4, policy);
    let (mut asked, mut done) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    for id in 0..REQUESTS {
        now += Span(random.between(1, 50));
        stack.advance(now, &mut Arena::new(), &mut done);
        let operation = match random.below(20) {
            0 => Operation::Flush,
            1..10 => Operation::Read,
            _ => Operation::Write,
        };
        let tenant = random.below(u64::from(TENANTS)) as u16;
        let mut new = request(id, tenant, operation, id, 1);
        if operation == Operation::Flush {
            new.sectors = 0;
        }
        asked.push((now, tenant, operation));
        assert_eq!(stack.submit(now, &new, &mut Arena::new()), Submit::Accepted);
    }
    stack.advance(Time::MAX, &mut Arena::new(), &mut done);
    let mut ended: BTreeMap<u64, Time> = BTreeMap::new();
    for completion in done {
        let (id, time) = (completion.id.0, completion.time);
        assert_eq!(completion.ledger.total(), time.since(asked[id as usize].0), "{policy}");
        assert!(ended.insert(id, time).is_none(), "{policy}: {id} ended twice");
    }
    assert_eq!(ended.len() as u64, REQUESTS, "{policy}");
    assert_eq!(stack.stage().waiting(), 0);
    // When each first began on a device.
    let mut begun: BTreeMap<u64, Time> = BTreeMap::new();
    for (device, scheduled) in stack.children().enumerate() {
        assert_eq!(scheduled.stage().waiting(), 0);
        for &(time, Request { operation, lba, .. }) in scheduled.children().flat_map(|leaf| &leaf.begun) {
            let sector = lba.0 + device as u64 * DEVICE_SECTORS;
            // A flush keeps its address.
            let page = if operation == Operation::Flush { lba.0 / 8 } else { sector / 8 % REQUESTS };
            let first = begun.entry(page).or_insert(time);
            *first = time.min(*first);
        }
    }
    for (flush, &(_, tenant, operation)) in asked.iter().enumerate() {
        if operation != Operation::Flush {
            continue;
        }
        let flush = flush as u64;
        let of_tenant = |id: &u64| asked[*id as usize].1 == tenant;
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
    let mut stack = stack("none");
    let flush = Request { sectors: 0, ..request(1, 0, Operation::Flush, 0, 1) };
    for request in [request(0, 0, Operation::Write, 0, 1), flush, request(2, 0, Operation::Read, 2, 1)] {
        assert_eq!(stack.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
    }
    assert_eq!(stack.stage().waiting(), 2);
    let mut done = Vec::new();
    stack.advance(Time::MAX, &mut Arena::new(), &mut done);
    let [write, flush, read] = &done[..] else { panic!("three requests") };
    let barrier = |of: &Completion| of.ledger.ns(Cause::Barrier);
    assert_eq!(barrier(write), 0);
    assert_eq!(barrier(flush), write.time.0);
    assert_eq!(barrier(read), flush.time.0);
}

#[test]
fn tenants_that_share_the_only_volume_are_told_apart_below_it() {
    for policy in IoSchedulerConfig::NAMES {
        let mut stack = over(policy, &[Claim::default()]);
        for id in 0..40 {
            let is_flush = id == 20;
            let operation = if is_flush { Operation::Flush } else { Operation::Read };
            let new = request(id, id as u16, operation, id, u32::from(!is_flush));
            assert_eq!(stack.submit(Time(0), &new, &mut Arena::new()), Submit::Accepted);
        }
        let mut done = Vec::new();
        stack.advance(Time::MAX, &mut Arena::new(), &mut done);
        assert_eq!(done.len(), 40, "{policy}");
        let begun = stack.children().flat_map(|scheduled| scheduled.children().flat_map(|leaf| &leaf.begun));
        let mut tenants: Vec<u16> = begun.map(|(_, request)| request.tenant.0).collect();
        tenants.sort_unstable();
        tenants.dedup();
        assert_eq!(tenants, (0..40).collect::<Vec<_>>(), "{policy}");
    }
}
