//! A hint goes the whole way: whatever a stage makes of a request carries it, and
//! what is likely to come is told to the device that it will go to.

use std::cell::RefCell;
use std::collections::BTreeSet;

use flashkeel_engine::{
    Arena, Coming, Completion, Durable, Hint, Lba, Leaf, Ledger, Limits, Operation, Prediction, Predictor,
    Request, RequestId, Span, Stack, Stage, Status, Stream, Submit, TenantId, Time, Wake,
};
use serde_json::json;

use crate::blocks::WholeBlocks;
use crate::claim::Claim;
use crate::scheduler::{IoSchedulerConfig, Scheduling};
use crate::tier::admission::AdmissionConfig;
use crate::tier::budget::Ratings;
use crate::tier::eviction::EvictionConfig;
use crate::tier::overflow::OverflowConfig;
use crate::tier::placement::PlacementConfig;
use crate::tier::writeback::WritebackConfig;
use crate::tier::{Plan, Tier};
use crate::volume::{VolumeConfig, VolumeManager};

const LIMITS: Limits =
    Limits { sectors: 1 << 20, block_sectors: 8, preferred_sectors: 8, durable: Durable::Flushed };

/// Ends everything at once, and notes what it was asked.
#[derive(Default)]
struct Noting {
    ended: Vec<Completion>,
    asked: Vec<Request>,
    told: RefCell<Vec<Coming>>,
}

impl Leaf for Noting {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.asked.push(*request);
        self.ended.push(Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO });
        Submit::Accepted
    }

    fn expect(&self, coming: &[Coming]) {
        self.told.borrow_mut().extend(coming);
    }

    fn next_event(&self) -> Wake {
        self.ended.first().map(|ended| ended.time).into()
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

/// Finds everything fast.
#[derive(Clone)]
struct Fast;

impl Predictor for Fast {
    fn predict(&mut self, _now: Time, _ahead: &[Request], _request: &Request) -> Prediction {
        Prediction { latency: Span::ZERO, chance: 0.0, is_slow: false }
    }

    fn submitted(&mut self, _now: Time, _request: &Request) {}

    fn observe(&mut self, _now: Time, _completion: &Completion) {}

    fn cut_power(&mut self, _now: Time) {}
}

/// Asks one request of each kind, with a hint of its own, over two devices.
fn carries<S: Stage>(name: &str, stage: S) {
    let mut stack = Stack::new(stage, vec![Noting::default(), Noting::default()]);
    let operations =
        [Operation::Write, Operation::Read, Operation::WriteZeroes, Operation::Trim, Operation::Flush];
    let mut done = Vec::new();
    for (id, operation) in (0..).zip(operations) {
        // Neither begins nor ends with a block, where the stage takes that.
        let whole = stack.limits().block_sectors > 1;
        let (lba, sectors) = match operation {
            Operation::Flush => (0, 0),
            _ if whole => (8, 24),
            _ => (3, 24),
        };
        let request = Request::new(RequestId(id), operation, Lba(lba), sectors);
        let request = Request { hint: Hint(100 + id as u16), ..request };
        assert_eq!(stack.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
        stack.advance(Time(0), &mut Arena::new(), &mut done);
        assert_eq!(done.len() as u64, id + 1, "{name}: {operation:?} ends at once");
    }
    let asked = stack.children().flat_map(|leaf| &leaf.asked);
    let hints: BTreeSet<u16> = asked.map(|request| request.hint.0).collect();
    assert_eq!(hints, BTreeSet::from([100, 101, 102, 103, 104]), "{name}");
}

#[test]
fn every_stage_passes_a_hint_on() {
    let claims = [Claim::default()];
    for name in IoSchedulerConfig::NAMES {
        let config: IoSchedulerConfig = serde_json::from_value(json!(name)).expect("a policy");
        carries(name, Scheduling::new(config.policy().build(&claims, Some(Box::new(Fast))), 8));
    }
    for name in VolumeConfig::NAMES {
        // As much as each of them needs.
        let settings = [json!(name), json!({ "policy": name, "bits": [7] })];
        let config = settings.into_iter().find_map(|settings| {
            let config: VolumeConfig = serde_json::from_value(settings).ok()?;
            config.policy().build(&[LIMITS.sectors; 2], 1).ok()
        });
        let volumes = config.expect("volumes on two devices");
        carries(name, VolumeManager::new(volumes, None, &[LIMITS; 2], 1));
    }
    for name in PlacementConfig::NAMES {
        let config: PlacementConfig = serde_json::from_value(json!(name)).expect("a policy");
        carries(name, Tier::new(plan(&config)));
    }
    carries("whole blocks", WholeBlocks::new(LIMITS));
}

fn plan(placement: &PlacementConfig) -> Plan {
    Plan {
        lower: LIMITS,
        upper: LIMITS,
        placement: placement.policy().build(Some(Box::new(Fast)), Stream::new(1, "hints")),
        takes_any: placement.policy().takes_any(),
        admission: AdmissionConfig::default().policy().build(),
        fills: false,
        eviction: EvictionConfig::default().policy().build(),
        demotes: false,
        writeback: WritebackConfig::default().policy().build(),
        ratings: Ratings::default(),
        overflow: OverflowConfig::default(),
        journal: false,
        kept: None,
    }
}

/// A tier over a lower and an upper device that note what they are asked.
fn tier(plan: Plan) -> Stack<Tier, Noting> {
    Stack::new(Tier::new(plan), vec![Noting::default(), Noting::default()])
}

fn policy<P: serde::de::DeserializeOwned>(name: &str) -> P {
    serde_json::from_value(json!(name)).expect("a policy")
}

/// Asks for a page, of which what ends is of no interest.
fn ask(stack: &mut impl Leaf, id: u64, operation: Operation, page: u64, change: fn(Request) -> Request) {
    let request = change(Request::new(RequestId(id), operation, Lba(page * 8), 8));
    assert_eq!(stack.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
    stack.advance(Time(0), &mut Arena::new(), &mut Vec::new());
}

#[test]
fn how_often_a_copy_was_used_is_no_hint() {
    // What a tier above gives up is kept, with the hint that it came with.
    let admission = policy::<AdmissionConfig>("all").policy().build();
    let eviction = policy::<EvictionConfig>("lru").policy().build();
    let mut below = tier(Plan { admission, eviction, ..plan(&policy("none")) });
    ask(&mut below, 0, Operation::Demote, 5, |request| Request { uses: 7, hint: Hint(3), ..request });
    let upper = &below.children().nth(1).expect("an upper device").asked;
    let [Request { operation: Operation::Write, hint: Hint(3), uses: 0, .. }] = upper[..] else {
        panic!("{upper:?}")
    };

    // What it gives up itself says how often it was used, and has no hint.
    let eviction = policy::<EvictionConfig>("lru").policy().build();
    let small = Limits { sectors: 8 * 8, ..LIMITS };
    let mut above = tier(Plan { upper: small, eviction, demotes: true, ..plan(&policy("write-back")) });
    for page in 0..32 {
        let hint = |request| Request { hint: Hint(9), ..request };
        ask(&mut above, 3 * page, Operation::Write, page, hint);
        ask(&mut above, 3 * page + 1, Operation::Read, page, hint);
        ask(&mut above, 3 * page + 2, Operation::Read, page, hint);
    }
    let lower = &above.children().next().expect("a lower device").asked;
    let demoted: Vec<_> = lower.iter().filter(|asked| asked.operation == Operation::Demote).collect();
    assert!(!demoted.is_empty() || lower.iter().any(|asked| asked.operation == Operation::Write));
    assert!(demoted.iter().all(|asked| asked.uses >= 2 && asked.hint == Hint(0)), "{demoted:?}");
}

#[test]
fn a_tier_tells_the_lower_of_all_that_comes() {
    let mut stack = tier(plan(&policy("write-back")));
    ask(&mut stack, 0, Operation::Write, 40, |request| request);
    let coming = [40 * 8 + 3, 41 * 8, LIMITS.sectors].map(|lba| Coming {
        operation: Operation::Read,
        tenant: TenantId(0),
        lba: Lba(lba),
    });
    stack.expect(&coming);
    let told =
        |child| -> Vec<Coming> { stack.children().nth(child).expect("two devices").told.borrow().clone() };
    assert_eq!((told(0), told(1)), (coming.to_vec(), Vec::new()));
}
