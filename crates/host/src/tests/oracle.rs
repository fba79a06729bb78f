//! The oracle follows its device: through a power cut, through small blocks, where the
//! device takes no more or refuses.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use flashkeel_config::{Node, Origin};
use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{
    Arena, Command, Leaf, Operation, Place, Predictor, Request, RequestId, Span, Status, Stream, Submit, Time,
};
use serde_json::{Value, json};

use super::request;
use crate::device::{Build as _, Device, Maker};
use crate::predictor::PredictorConfig;
use crate::stack::StackConfig;

/// Keys of an SSD.
fn keys(queue_depth: u32) -> Value {
    json!({
        "geometry": {
            "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1,
            "blocks_per_plane": 48, "pages_per_block": 16,
        },
        "logical_capacity": "16MiB",
        "map_cache": "all",
        "gc": { "start_below": 8, "stop_above": 12, "concurrent_victims": 4 },
        "buffer": { "size": "256KiB", "volatile": true },
        "controller": { "queue_depth": queue_depth },
    })
}

fn made(config: &DeviceConfig, seed: u64) -> Result<Ssd, String> {
    let mut ssd = Ssd::new(&config.validate()?, seed);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    Ok(ssd)
}

/// An SSD that takes so many requests at a time.
fn ssd(queue_depth: u32) -> Box<dyn Device> {
    let config: DeviceConfig = serde_json::from_value(keys(queue_depth)).expect("a device");
    Box::new(made(&config, 1).expect("a valid device"))
}

/// Such an SSD behind blocks of 512 bytes.
fn small_blocks(depth: u32) -> Box<dyn Device> {
    let document = json!({ "devices": [{ "ssd": keys(depth) }], "depth": depth, "block": "512B" });
    let mut stack = Node::from_json(document, &Origin::Default);
    StackConfig::expand(&mut stack, "stack", None).expect("a stack");
    let stack: StackConfig = stack.read().expect("a stack");
    stack.validate().expect("a valid stack");
    let mut precondition = |config: &DeviceConfig, seed| Ok(made(config, seed)?);
    stack.assemble(1, &mut Maker::new(1, &mut precondition)).expect("it is put together")
}

/// A device and the oracle that goes with it.
struct Pair {
    device: Box<dyn Device>,
    /// What the device has not taken yet.
    waiting: VecDeque<Request>,
    oracle: Box<dyn Predictor>,
    random: Stream,
    now: Time,
    requests: u64,
    inside: usize,
}

impl Pair {
    fn new(device: Box<dyn Device>, depth: usize) -> Pair {
        let oracle: PredictorConfig = serde_json::from_value(json!("oracle")).expect("a predictor");
        let model = oracle
            .policy()
            .probe(&*device, &mut |_| ControlFlow::Continue(()))
            .expect("the device can be probed");
        let oracle = oracle.policy().build(&model, &*device, depth);
        let (waiting, random) = (VecDeque::new(), Stream::new(1, "oracle"));
        Pair { device, waiting, oracle, random, now: Time::ZERO, requests: 0, inside: 0 }
    }

    fn request(&mut self) -> Request {
        self.requests += 1;
        let operation = if self.random.chance(0.5) { Operation::Read } else { Operation::Write };
        request(self.requests, 0, operation, self.random.below(4096), 1)
    }

    fn submit(&mut self, request: &Request) {
        self.oracle.submitted(self.now, request);
        self.waiting.push_back(*request);
        self.inside += 1;
        self.offer();
    }

    fn offer(&mut self) {
        while let Some(request) = self.waiting.front() {
            match self.device.submit(self.now, request, &mut Arena::new()) {
                Submit::Busy => return,
                Submit::Accepted => self.waiting.pop_front(),
                Submit::Refused(status) => panic!("{status:?}"),
            };
        }
    }

    /// Runs the device until it has completed something; says what.
    fn advance(&mut self) -> Vec<RequestId> {
        let mut done = Vec::new();
        let now = self.device.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done);
        self.now = now.expect("what is inside ends");
        self.inside -= done.len();
        self.offer();
        done.iter().for_each(|completion| self.oracle.observe(self.now, completion));
        done.iter().map(|completion| completion.id).collect()
    }

    /// Predicts a request, and sees whether it comes true.
    fn check(&mut self) {
        let request = self.request();
        let begun = self.now;
        let expected = self.oracle.predict(begun, &[], &request).latency;
        self.submit(&request);
        while !self.advance().contains(&request.id) {}
        assert_eq!(self.now.since(begun), expected, "{request:?}");
    }
}

#[test]
fn after_a_power_cut_predictions_are_exact() {
    let mut pair = Pair::new(ssd(8), 8);
    for _ in 0..4 {
        for _ in 0..200 {
            let request = pair.request();
            pair.submit(&request);
            while pair.inside == 8 {
                pair.advance();
            }
        }
        pair.device.cut_power(pair.now, &mut Arena::new());
        pair.oracle.cut_power(pair.now);
        pair.device.advance(pair.now, &mut Arena::new(), &mut Vec::new());
        pair.inside = 0;
        for _ in 0..50 {
            pair.check();
        }
    }
}

#[test]
fn what_waits_for_a_device_that_takes_no_more_is_predicted_exactly() {
    let mut pair = Pair::new(ssd(2), usize::MAX);
    for _ in 0..300 {
        for _ in 0..pair.random.below(6) {
            let request = pair.request();
            pair.submit(&request);
        }
        pair.check();
    }
    // What waits is lost with the power.
    for _ in 0..6 {
        let request = pair.request();
        pair.submit(&request);
    }
    assert!(!pair.waiting.is_empty());
    pair.waiting.clear();
    pair.device.cut_power(pair.now, &mut Arena::new());
    pair.oracle.cut_power(pair.now);
    pair.device.advance(pair.now, &mut Arena::new(), &mut Vec::new());
    pair.inside = 0;
    (0..50).for_each(|_| pair.check());
}

#[test]
fn small_blocks_over_larger_ones_are_predicted_exactly() {
    let mut pair = Pair::new(small_blocks(8), 8);
    (0..300).for_each(|_| pair.check());
}

#[test]
fn a_request_that_is_refused_takes_no_time() {
    let mut device = ssd(8);
    let tell = device.command(Time::ZERO, &Place::default(), &Command::ReadOnly(true), &mut Arena::new());
    assert!(tell.is_ok());
    let policy: PredictorConfig = serde_json::from_value(json!("oracle")).expect("a predictor");
    let model = policy
        .policy()
        .probe(&*ssd(8), &mut |_| ControlFlow::Continue(()))
        .expect("the device can be probed");
    let mut oracle = policy.policy().build(&model, &*device, 8);
    let write = request(1, 0, Operation::Write, 0, 1);
    assert_eq!(oracle.predict(Time::ZERO, &[], &write).latency, Span::ZERO);
    oracle.submitted(Time::ZERO, &write);
    let refused = device.submit(Time::ZERO, &write, &mut Arena::new());
    assert_eq!(refused, Submit::Refused(Status::ReadOnly));
    let read = request(2, 0, Operation::Read, 0, 1);
    assert!(oracle.predict(Time::ZERO, &[], &read).latency > Span::ZERO);
}

#[test]
fn an_oracle_is_refused_where_a_mirror_commands_windows() {
    let refused = |read: &str, predictor: &str, windows: &str| {
        let mut ssd = keys(32);
        ssd["window"] = json!({ "policy": "commanded", "writes_typical": 16 });
        let devices = json!([{ "ssd": ssd }, { "ssd": ssd }]);
        let mirror = json!({ "devices": devices, "read": read, "predictor": predictor, "windows": windows });
        let document = json!({ "devices": [{ "mirror": mirror }] });
        let mut stack = Node::from_json(document, &Origin::Default);
        StackConfig::expand(&mut stack, "stack", None).expect("a stack");
        stack.read::<StackConfig>().err().map(|error| error.message().to_owned())
    };
    let error = refused("predicted", "oracle", "alternate").expect("it would not know when");
    assert!(error.starts_with("is \"oracle\""), "{error}");
    assert_eq!(refused("predicted", "ssdcheck", "alternate"), None);
    assert_eq!(refused("predicted", "oracle", "none"), None);
    assert_eq!(refused("window", "oracle", "alternate"), None);
}
