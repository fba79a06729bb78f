//! A stack without policies does the same with its layers and without.

use std::ops::ControlFlow;

use flashkeel_config::{Node, Origin};
use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{
    Answer, Arena, Command, Lba, Leaf, Ledger, Operation, Place, Request, RequestId, Status, Stream, Submit,
    Time,
};
use serde_json::{Value, json};

use super::small_ssd;
use crate::coordinator::Foresight;
use crate::device::{Build as _, Device, Maker};
use crate::stack::StackConfig;

/// A stack over one device with so many requests at it at most: as it is put
/// together, and with its layers.
fn both(device: &Value, depth: u32) -> [Box<dyn Device>; 2] {
    let mut stack = Node::from_json(json!({ "devices": [device], "depth": depth }), &Origin::Default);
    StackConfig::expand(&mut stack, "stack", None).expect("a stack");
    let stack: StackConfig = stack.read().expect("a stack");
    stack.validate().expect("a valid stack");
    let mut precondition = |config: &DeviceConfig, seed| {
        let mut ssd = Ssd::new(&config.validate()?, seed);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        Ok(ssd)
    };
    let mut maker = Maker::new(1, &mut precondition);
    let passing = stack.assemble(1, &mut maker).expect("it is put together");
    [passing, Box::new(stack.layered(1, &mut maker).expect("it is put together"))]
}

fn devices() -> Vec<Value> {
    let ssd = small_ssd();
    // Its trims and flushes take no time.
    let nvm = json!({ "nvm": { "capacity": "4MiB" } });
    let dram = json!({ "dram": { "capacity": "4MiB" } });
    let nested = json!({ "stack": { "devices": [nvm], "depth": 3 } });
    let two = json!({ "stack": { "devices": [nvm, ssd], "depth": 4 } });
    let tier = json!({ "tier": { "placement": "write-back", "upper": dram, "lower": ssd } });
    vec![ssd, nvm, dram, nested, two, tier]
}

/// The first asks of both; what differs is an error.
struct Pair {
    leaves: [Box<dyn Device>; 2],
    data: [Arena; 2],
    random: Stream,
    now: Time,
    requests: u64,
    inside: usize,
}

impl Pair {
    fn request(&mut self) -> Request {
        let random = &mut self.random;
        let operation = match random.below(16) {
            0 => Operation::Flush,
            1 => Operation::Trim,
            2 => Operation::WriteZeroes,
            3..=8 => Operation::Read,
            _ => Operation::Write,
        };
        let (mut lba, mut sectors) = (random.below(1024) * 8, random.between(1, 8) as u32 * 8);
        if random.chance(0.05) {
            // Refused, most of them.
            (lba, sectors) = (random.below(9000), random.below(9) as u32);
        }
        if operation == Operation::Flush {
            (lba, sectors) = (0, 0);
        }
        let id = RequestId(self.requests);
        self.requests += 1;
        Request { fua: random.chance(0.1), ..Request::new(id, operation, Lba(lba), sectors) }
    }

    fn submit(&mut self) {
        let request = self.request();
        let answers: Vec<Submit> = (self.leaves.iter_mut().zip(&mut self.data))
            .map(|(leaf, data)| leaf.submit(self.now, &request, data))
            .collect();
        assert_eq!(answers[0], answers[1], "{request:?}");
        self.inside += usize::from(answers[0] == Submit::Accepted);
        self.compare("its submission");
    }

    fn compare(&self, after: &str) {
        let [passing, layered] = &self.leaves;
        assert_eq!(passing.next_event(), layered.next_event(), "after {after} at {:?}", self.now);
        assert_eq!(passing.held(), layered.held(), "after {after} at {:?}", self.now);
        assert_eq!(passing.limits(), layered.limits());
    }

    /// What it says of itself is the same, at the places of both stages.
    fn compare_states(&mut self) {
        for place in [vec![], vec![0]] {
            let place = Place(place);
            let [passing, layered] = self
                .leaves
                .each_mut()
                .map(|leaf| leaf.command(self.now, &place, &Command::State, &mut Arena::new()));
            assert_eq!(passing, layered, "{place} at {:?}", self.now);
            let Ok(Answer::State(readings)) = passing else { panic!("{place} says {passing:?}") };
            assert!(readings.iter().any(|(name, _)| name == "waiting"), "{readings:?}");
        }
    }

    /// Runs both up to `until`, or until something has completed before that.
    fn advance(&mut self, until: Time, to_completion: bool) {
        let mut done = [Vec::new(), Vec::new()];
        let mut times = [until; 2];
        for (index, (leaf, data)) in self.leaves.iter_mut().zip(&mut self.data).enumerate() {
            if to_completion {
                let time = leaf.advance_to_completion(until, data, &mut done[index]);
                times[index] = time.unwrap_or(until);
            } else {
                leaf.advance(until, data, &mut done[index]);
            }
        }
        assert_eq!(times[0], times[1]);
        self.now = times[0];
        assert_eq!(done[0], done[1], "at {:?}", self.now);
        self.inside -= done[0].len();
        self.compare("what has completed");
    }

    /// The power is cut: all that is inside ends as aborted.
    fn cut_power(&mut self) {
        let mut done = [Vec::new(), Vec::new()];
        for (index, (leaf, data)) in self.leaves.iter_mut().zip(&mut self.data).enumerate() {
            leaf.cut_power(self.now, data);
            leaf.advance(self.now, data, &mut done[index]);
            // The device itself says who owned their time until now.
            done[index].iter_mut().for_each(|completion| completion.ledger = Ledger::ZERO);
            done[index].sort_by_key(|completion| completion.id);
            assert!(done[index].iter().all(|completion| completion.status == Status::Aborted));
        }
        assert_eq!(done[0], done[1], "at {:?}", self.now);
        assert_eq!(done[0].len(), std::mem::take(&mut self.inside));
        self.compare("a power cut");
    }
}

#[test]
fn without_layers_completions_are_the_same() {
    for (index, device) in devices().iter().enumerate() {
        for depth in [1, 2, 5, 32] {
            let leaves = both(device, depth);
            let random = Stream::new(u64::from(depth) + 100 * index as u64, "passing");
            let (data, now) = (Default::default(), Time::ZERO);
            let mut pair = Pair { leaves, data, random, now, requests: 0, inside: 0 };
            for step in 0..2_000 {
                for _ in 0..pair.random.below(2 * u64::from(depth)) + 1 {
                    if pair.inside < 2 * depth as usize + 8 {
                        pair.submit();
                    }
                }
                // At the same instant too, and now and then late.
                let span = [0, 300, 40_000, 4_000_000][pair.random.below(4) as usize];
                let until = Time(pair.now.0 + pair.random.below(span + 1));
                let to_completion = pair.random.chance(0.7);
                pair.advance(until, to_completion);
                pair.compare_states();
                if step % 500 == 499 {
                    pair.cut_power();
                }
            }
            while pair.inside > 0 {
                let next = pair.leaves[0].next_event().time().expect("what is inside ends");
                pair.advance(next, false);
            }
            assert!(pair.requests > 1_000, "{device}: {} requests", pair.requests);
        }
    }
}

#[test]
fn without_layers_a_coordinator_hears_what_will_be_read() {
    let mut ssd = small_ssd();
    ssd["ssd"]["window"] = json!({ "policy": "commanded", "writes_typical": 4 });
    let share = json!({ "count": 8, "window": "1ms", "rest": "5ms", "demand": "exact" });
    let device = json!({ "coordinator": { "device": ssd, "share": share } });
    let given = both(&device, 32).map(|mut leaf| {
        let data = &mut Arena::new();
        let reads = (0..500).map(|number| (Time(number * 100_000), 1)).collect();
        leaf.foresee(&Foresight::new(vec![reads]));
        leaf.advance(Time(50_000_000), data, &mut Vec::new());
        let mut parts = Vec::new();
        leaf.parts(&mut parts);
        let part = parts.iter().find(|part| part.kind() == "coordinator").expect("there is one");
        part.report()["hosts"][0]["given"].as_u64().expect("a number")
    });
    assert!(given[1] > 0 && given[0] == given[1], "{given:?}");
}
