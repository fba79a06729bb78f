//! The oracle follows its device through a power cut.

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{Arena, Leaf, Operation, Predictor, Request, Stream, Submit, Time};
use serde_json::json;

use super::request;
use crate::predictor::PredictorConfig;

fn device() -> Ssd {
    let config = json!({
        "geometry": {
            "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1,
            "blocks_per_plane": 48, "pages_per_block": 16,
        },
        "logical_capacity": "16MiB",
        "map_cache": "all",
        "gc": { "start_below": 8, "stop_above": 12, "concurrent_victims": 4 },
        "buffer": { "size": "256KiB", "volatile": true },
    });
    let config: DeviceConfig = serde_json::from_value(config).expect("a device");
    let mut ssd = Ssd::new(&config.validate().expect("a valid device"), 1);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    ssd
}

/// A device and the oracle that goes with it.
struct Pair {
    device: Ssd,
    oracle: Box<dyn Predictor>,
    random: Stream,
    now: Time,
    requests: u64,
    inside: usize,
}

impl Pair {
    fn request(&mut self) -> Request {
        self.requests += 1;
        let operation = if self.random.chance(0.5) { Operation::Read } else { Operation::Write };
        request(self.requests, 0, operation, self.random.below(4096), 1)
    }

    fn submit(&mut self, request: &Request) {
        self.oracle.submitted(self.now, request);
        assert_eq!(self.device.submit(self.now, request, &mut Arena::new()), Submit::Accepted);
        self.inside += 1;
    }

    /// Runs the device until it has completed something.
    fn advance(&mut self) {
        let mut done = Vec::new();
        let now = self.device.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done);
        self.now = now.expect("what is inside ends");
        self.inside -= done.len();
        done.iter().for_each(|completion| self.oracle.observe(self.now, completion));
    }
}

#[test]
fn after_a_power_cut_predictions_are_exact() {
    let device = device();
    let oracle: PredictorConfig = serde_json::from_value(json!("oracle")).expect("a predictor");
    let model = oracle.policy().probe(&device).expect("the device can be probed");
    let oracle = oracle.policy().build(&model, &device, 8);
    let random = Stream::new(1, "oracle");
    let mut pair = Pair { device, oracle, random, now: Time::ZERO, requests: 0, inside: 0 };
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
            let request = pair.request();
            let begun = pair.now;
            let expected = pair.oracle.predict(begun, &[], &request).latency;
            pair.submit(&request);
            pair.advance();
            assert_eq!(pair.now.since(begun), expected);
        }
    }
}
