//! A hint goes the whole way: whatever a stage makes of a request carries it.

use std::collections::BTreeSet;

use flashkeel_engine::{
    Arena, Completion, Durable, Hint, Lba, Leaf, Ledger, Limits, Operation, Prediction, Predictor, Request,
    RequestId, Span, Stack, Stage, Status, Stream, Submit, Time, Wake,
};
use serde_json::json;

use crate::blocks::WholeBlocks;
use crate::scheduler::{IoSchedulerConfig, Scheduling};
use crate::stack::{Claim, TenantClass};
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
    asked: Vec<(Operation, Hint)>,
}

impl Leaf for Noting {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.asked.push((request.operation, request.hint));
        self.ended.push(Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO });
        Submit::Accepted
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
        Prediction { latency: Span::ZERO, is_slow: false }
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
        let request = Request { hint: Hint(100 + id as u32), ..request };
        assert_eq!(stack.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
        stack.advance(Time(0), &mut Arena::new(), &mut done);
        assert_eq!(done.len() as u64, id + 1, "{name}: {operation:?} ends at once");
    }
    let asked = stack.children().flat_map(|leaf| &leaf.asked);
    let hints: BTreeSet<u32> = asked.map(|(_, hint)| hint.0).collect();
    assert_eq!(hints, BTreeSet::from([100, 101, 102, 103, 104]), "{name}");
}

#[test]
fn every_stage_passes_a_hint_on() {
    let claims = [Claim { weight: 100, class: TenantClass::BestEffort }];
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
        carries(name, VolumeManager::new(volumes, &[LIMITS; 2], 1));
    }
    for name in PlacementConfig::NAMES {
        let config: PlacementConfig = serde_json::from_value(json!(name)).expect("a policy");
        let plan = Plan {
            lower: LIMITS,
            upper: LIMITS,
            placement: config.policy().build(Some(Box::new(Fast)), Stream::new(1, "hints")),
            takes_any: config.policy().takes_any(),
            admission: AdmissionConfig::default().policy().build(),
            fills: false,
            eviction: EvictionConfig::default().policy().build(),
            demotes: false,
            writeback: WritebackConfig::default().policy().build(),
            ratings: Ratings::default(),
            overflow: OverflowConfig::default(),
            journal: false,
        };
        carries(name, Tier::new(plan));
    }
    carries("whole blocks", WholeBlocks::new(LIMITS));
}
