//! Completions made up for tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use flashkeel_engine::{Cause, Completion, Lba, Ledger, Operation, RequestId, Span, Status, TenantId, Time};
use flashkeel_stats::{Asked, MeasureConfig, Recorder, Summary};

/// One request with its latency split among causes.
#[derive(Clone, Debug)]
pub struct Sample {
    pub operation: Operation,
    pub sectors: u32,
    pub submitted: Time,
    pub owners: Vec<(Cause, u64)>,
}

impl Sample {
    pub fn latency_ns(&self) -> u64 {
        self.owners.iter().map(|(_, ns)| ns).sum()
    }

    pub fn completed(&self) -> Time {
        self.submitted + Span(self.latency_ns())
    }
}

/// A 4 KiB read submitted at 0 whose whole latency is its own.
pub fn read(latency_ns: u64) -> Sample {
    Sample {
        operation: Operation::Read,
        sectors: 8,
        submitted: Time::ZERO,
        owners: vec![(Cause::OwnFlash, latency_ns)],
    }
}

pub fn recorder() -> Recorder {
    Recorder::new(&MeasureConfig::default(), Span::ZERO, &[])
}

pub fn feed(recorder: &mut Recorder, samples: &[Sample]) {
    for (id, sample) in (0..).map(RequestId).zip(samples) {
        feed_one(recorder, id, sample, Status::Ok);
    }
}

pub fn feed_one(recorder: &mut Recorder, id: RequestId, sample: &Sample, status: Status) {
    let mut ledger = Ledger::ZERO;
    for &(cause, ns) in &sample.owners {
        ledger.charge(cause, Span(ns));
    }
    let Sample { operation, sectors, submitted, .. } = *sample;
    let (lba, tenant) = (Lba(id.0 * 8), TenantId(0));
    let asked = Asked { operation, lba, sectors, asked_sectors: sectors, arrived: submitted, tenant };
    let completion = Completion { id, time: sample.completed(), status, ledger };
    recorder.record(&asked, &completion);
}

pub fn summarise(samples: &[Sample], simulated: Span) -> Summary {
    let mut recorder = recorder();
    feed(&mut recorder, samples);
    recorder.finish(Time::ZERO + simulated, &[]).summary
}
