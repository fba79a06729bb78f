//! How well a model predicts a drive under a workload.

use std::path::Path;

use flashkeel_engine::{
    Arena, Coming, Completion, Leaf, Limits, Operation, Predictor as _, Request, RequestId, Submit, Time,
    Wake,
};
use flashkeel_host::device::Device;
use flashkeel_host::{Measured, Tenant, drive};
use flashkeel_ssdcheck::{DeviceModel, Engine, Score};
use flashkeel_stats::Recorder;
use flashkeel_workload::Basis;
use serde::Serialize;

use crate::run::{Progress, open};
use crate::{Error, Experiment, RunPlan, Target, stack};

/// What became of predictions.
#[derive(Clone, Debug, Serialize)]
pub struct Predicted {
    /// Requests judged: reads and writes after the warm-up.
    pub requests: u64,
    /// Part of them that was slow.
    pub slow_fraction: f64,
    /// Part of the slow ones that were predicted; absent if none was slow.
    pub slow_recall: Option<f64>,
    /// Part of the normal ones that were predicted.
    pub normal_recall: Option<f64>,
    /// Part of the predictions of a slow request that came true.
    pub precision: Option<f64>,
    /// The same in requests.
    pub score: Score,
    /// Whether the off-switch left prediction on.
    pub is_on: bool,
    /// What the workload is made from.
    pub basis: Basis,
}

/// Runs a plan and predicts each request right before it is submitted.
///
/// # Errors
/// [`Error::Input`] if the workload turns out to be wrong on the way,
/// [`Error::Interrupted`] if `progress` stops the run.
pub fn predict(
    plan: &RunPlan,
    model: &DeviceModel,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Predicted, Error> {
    let config = Experiment { seed, ..plan.config.clone() };
    let device = Target::of(&config).build(seed, cache_dir, progress)?;
    let sectors = device.limits().sectors;
    if sectors != model.sectors {
        return Err(Error::Input(format!(
            "the model is of a device of {} sectors, this one has {}",
            model.sectors, sectors
        )));
    }
    let mut sources = open(&config, &*device, progress)?;
    let gauges = device.gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let workloads = stack::workloads(&config);
    let warm_up = workloads.iter().map(|workload| workload.warm_up).max().unwrap_or_default();
    let recorder = Recorder::new(&config.measure, warm_up, &gauges);
    let mut judged =
        Judged { device, engine: Engine::new(model), score: Score::default(), flights: Vec::new() };
    let tenants = sources.iter_mut().zip(workloads).map(|(source, workload)| Tenant {
        source: source.as_mut(),
        workload,
        recorder: None,
    });
    let tenants = tenants.collect();
    drive(&mut judged, None, tenants, recorder, &mut |fraction| progress("replay", fraction))?;
    let Judged { engine, score, .. } = judged;
    let slow = score.slow_found + score.slow_missed;
    let requests = slow + score.normal_found + score.normal_missed;
    let is_synthetic = sources.iter().any(|source| source.basis() == Basis::Synthetic);
    Ok(Predicted {
        requests,
        slow_fraction: slow as f64 / requests.max(1) as f64,
        slow_recall: score.slow_recall(),
        normal_recall: score.normal_recall(),
        precision: score.precision(),
        score,
        is_on: engine.is_on(),
        basis: if is_synthetic { Basis::Synthetic } else { Basis::Trace },
    })
}

/// A drive whose requests are predicted, and the predictions judged.
struct Judged {
    device: Box<dyn Device>,
    engine: Engine,
    score: Score,
    flights: Vec<Flight>,
}

struct Flight {
    id: RequestId,
    operation: Operation,
    sectors: u32,
    submitted: Time,
    predicted_slow: bool,
}

impl Judged {
    fn judge(&mut self, completions: &[Completion]) {
        for completion in completions {
            let index = self.flights.iter().position(|flight| flight.id == completion.id);
            let Some(index) = index else { continue };
            let flight = self.flights.swap_remove(index);
            let latency = completion.time.since(flight.submitted);
            self.score
                .count(flight.predicted_slow, self.engine.is_slow(flight.operation, flight.sectors, latency));
            self.engine.observe(completion.time, completion);
        }
    }
}

impl Leaf for Judged {
    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let predicted_slow = self.engine.predict(now, &[], request).is_slow;
        let answer = self.device.submit(now, request, data);
        if answer == Submit::Accepted && matches!(request.operation, Operation::Read | Operation::Write) {
            self.engine.submitted(now, request);
            let Request { id, operation, sectors, .. } = *request;
            self.flights.push(Flight { id, operation, sectors, submitted: now, predicted_slow });
        }
        answer
    }

    fn expect(&self, coming: &[Coming]) {
        self.device.expect(coming);
    }

    fn expect_soon(&self, coming: &[Coming]) {
        self.device.expect_soon(coming);
    }

    fn next_event(&self) -> Wake {
        self.device.next_event()
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.device.cut_power(now, data);
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let seen = completions.len();
        self.device.advance(now, data, completions);
        self.judge(&completions[seen..]);
    }
}

impl Measured for Judged {
    fn gauge_names(&self) -> Vec<String> {
        self.device.gauge_names()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        self.device.gauges(values);
    }

    fn start_measuring(&mut self) {
        self.device.start_measuring();
        self.score = Score::default();
    }

    fn final_counters(&self) -> Vec<u64> {
        self.device.final_counters()
    }
}
