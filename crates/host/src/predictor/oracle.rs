//! `oracle`: a second device in the same state gets the same requests at the same
//! times, and a copy of that is asked what would happen. Exact, and slow: each
//! prediction copies a device. What counts as slow is what a probe of the device
//! says, as for `ssdcheck`, so that the two answer the same question.

use std::collections::VecDeque;

use flashkeel_engine::{
    Arena, Completion, Leaf, Ledger, Operation, Payload, Prediction, Predictor, Request, RequestId, Submit,
    Time,
};
use flashkeel_ssdcheck::DeviceModel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, diagnosis};
use crate::device::{Device, Probing, Unmade};

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
    fn probe(&self, device: &(dyn Device + 'static), told: &mut Probing<'_>) -> Result<DeviceModel, Unmade> {
        diagnosis(device, self.probe_seed, told)
    }

    fn build(
        &self,
        model: &DeviceModel,
        device: &(dyn Device + 'static),
        depth: usize,
    ) -> Box<dyn Predictor> {
        let device = dyn_clone::clone_box(device);
        let copy = Given { device, waiting: VecDeque::new(), in_flight: 0, ended: Vec::new() };
        Box::new(Shadow { model: model.clone(), copy, depth })
    }
}

/// The number of the request in question, which no other has: of the numbers that two bits
/// are left in for whoever hands them on, the last.
const ASKED: RequestId = RequestId((1 << 62) - 1);

#[derive(Clone)]
struct Shadow {
    /// Says what is slow.
    model: DeviceModel,
    copy: Given,
    /// Requests that the host gives the device at most.
    depth: usize,
}

/// A device with what it has been given, as a child of a stage is.
#[derive(Clone)]
struct Given {
    device: Box<dyn Device>,
    /// Requests that it has not taken yet, oldest first.
    waiting: VecDeque<Request>,
    /// Requests that have not ended, `waiting` among them.
    in_flight: usize,
    /// Those that the last call has ended.
    ended: Vec<Completion>,
}

impl Given {
    /// Gives the device a request, which waits where others do or it takes no more.
    fn give(&mut self, now: Time, request: &Request) {
        self.ended.clear();
        self.in_flight += 1;
        self.waiting.push_back(Request { payload: Payload::NONE, ..*request });
        self.offer(now);
    }

    /// Runs what is due by `limit`, until something has ended; says when.
    fn run(&mut self, limit: Time) -> Option<Time> {
        self.ended.clear();
        let time = self.device.advance_to_completion(limit, &mut Arena::new(), &mut self.ended)?;
        self.in_flight -= self.ended.len();
        self.offer(time);
        Some(time)
    }

    /// Offers what waits until one is not taken. One that is refused for good has ended so.
    fn offer(&mut self, now: Time) {
        while let Some(request) = self.waiting.front() {
            match self.device.submit(now, request, &mut Arena::new()) {
                Submit::Busy => return,
                Submit::Accepted => {}
                Submit::Refused(status) => {
                    self.in_flight -= 1;
                    let ledger = Ledger::ZERO;
                    self.ended.push(Completion { id: request.id, time: now, status, ledger });
                }
            }
            self.waiting.pop_front();
        }
    }

    /// Runs what is due by `now`.
    fn advance(&mut self, now: Time) {
        while self.run(now).is_some() {}
    }
}

impl Predictor for Shadow {
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        self.copy.advance(now);
        let mut copy = self.copy.clone();
        let mut time = now;
        for (index, next) in ahead.iter().chain([request]).enumerate() {
            while copy.in_flight >= self.depth {
                time = copy.run(Time::MAX).expect("what is in flight completes");
            }
            let id = RequestId(ASKED.0 - (ahead.len() - index) as u64);
            copy.give(time, &Request { id, ..*next });
        }
        let begun = time;
        while copy.ended.iter().all(|completion| completion.id != ASKED) {
            time = copy.run(Time::MAX).expect("what is in flight completes");
        }
        let latency = time.since(begun);
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, _) = self.model.expectation(is_read, request.sectors);
        let is_slow = latency.0 > threshold_ns;
        Prediction { latency, chance: f32::from(u8::from(is_slow)), is_slow }
    }

    fn submitted(&mut self, now: Time, request: &Request) {
        self.copy.advance(now);
        self.copy.give(now, request);
    }

    fn observe(&mut self, now: Time, _completion: &Completion) {
        self.copy.advance(now);
    }

    fn cut_power(&mut self, now: Time) {
        // As the device itself, which has run what was due before.
        self.copy.advance(Time(now.0.saturating_sub(1)));
        self.copy.in_flight -= self.copy.waiting.len();
        self.copy.waiting.clear();
        self.copy.device.cut_power(now, &mut Arena::new());
        self.copy.advance(now);
    }
}
