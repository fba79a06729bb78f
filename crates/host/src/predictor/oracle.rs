//! `oracle`: a second device in the same state gets the same requests at the same
//! times, and a copy of that is asked what would happen. Exact, and slow: each
//! prediction copies a device. What counts as slow is what a probe of the device
//! says, as for `ssdcheck`, so that the two answer the same question.

use flashkeel_engine::{
    Arena, Completion, Leaf, Operation, Payload, Prediction, Predictor, Request, RequestId, Submit, Time,
};
use flashkeel_ssdcheck::DeviceModel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, diagnosis};
use crate::device::Device;

/// Settings of `oracle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Oracle {
    /// Decides the addresses that the probe uses.
    pub probe_seed: u64,
}

impl Default for Oracle {
    fn default() -> Self {
        Oracle { probe_seed: 1 }
    }
}

impl Build for Oracle {
    fn probe(&self, device: &(dyn Device + 'static)) -> Result<DeviceModel, String> {
        diagnosis(device, self.probe_seed)
    }

    fn build(
        &self,
        model: &DeviceModel,
        device: &(dyn Device + 'static),
        depth: usize,
    ) -> Box<dyn Predictor> {
        Box::new(Shadow {
            model: model.clone(),
            device: dyn_clone::clone_box(device),
            depth,
            in_flight: 0,
            completions: Vec::new(),
        })
    }
}

/// The number of the request in question.
const ASKED: RequestId = RequestId(u64::MAX);

#[derive(Clone)]
struct Shadow {
    /// Says what is slow.
    model: DeviceModel,
    device: Box<dyn Device>,
    /// Requests that the host gives the device at most.
    depth: usize,
    in_flight: usize,
    completions: Vec<Completion>,
}

impl Shadow {
    fn advance(&mut self, now: Time) {
        self.device.advance(now, &mut Arena::new(), &mut self.completions);
        self.in_flight -= self.completions.len();
        self.completions.clear();
    }
}

impl Predictor for Shadow {
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        self.advance(now);
        let mut copy = self.device.clone();
        let (mut time, mut in_flight) = (now, self.in_flight);
        let mut done = Vec::new();
        let mut wait = |copy: &mut Box<dyn Device>, in_flight: &mut usize| {
            done.clear();
            let time = copy.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done);
            *in_flight -= done.len();
            let is_over = done.iter().any(|completion| completion.id == ASKED);
            (time.expect("what is in flight completes"), is_over)
        };
        for (index, next) in ahead.iter().chain([request]).enumerate() {
            while in_flight >= self.depth {
                (time, _) = wait(&mut copy, &mut in_flight);
            }
            // Numbers that no request has.
            let id = RequestId(ASKED.0 - (ahead.len() - index) as u64);
            let answer =
                copy.submit(time, &Request { id, payload: Payload::NONE, ..*next }, &mut Arena::new());
            assert_eq!(answer, Submit::Accepted, "the depth is below the device's");
            in_flight += 1;
        }
        let begun = time;
        let mut is_over = false;
        while !is_over {
            (time, is_over) = wait(&mut copy, &mut in_flight);
        }
        let latency = time.since(begun);
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, _) = self.model.expectation(is_read, request.sectors);
        let is_slow = latency.0 > threshold_ns;
        Prediction { latency, chance: f32::from(u8::from(is_slow)), is_slow }
    }

    fn submitted(&mut self, now: Time, request: &Request) {
        self.advance(now);
        self.in_flight += 1;
        let answer =
            self.device.submit(now, &Request { payload: Payload::NONE, ..*request }, &mut Arena::new());
        assert_eq!(answer, Submit::Accepted, "who asks keeps to the device's queue depth");
    }

    fn observe(&mut self, now: Time, _completion: &Completion) {
        self.advance(now);
    }

    fn cut_power(&mut self, now: Time) {
        // As the device itself, which has run what was due before.
        self.advance(Time(now.0.saturating_sub(1)));
        self.device.cut_power(now, &mut Arena::new());
        self.advance(now);
    }
}
