//! How well a model predicts a drive under a workload.

use std::path::Path;

use flashkeel_engine::{
    Answer, Arena, Coming, Command, Completion, Leaf, Limits, Notice, Operation, Place, Predictor as _,
    Refusal, Request, RequestId, Span, Submit, Time, Wake,
};
use flashkeel_host::device::Device;
use flashkeel_host::{Measured, Tenant, drive};
use flashkeel_ssdcheck::{DeviceModel, Engine, Measured as Served, Score, TELLING, contradiction};
use flashkeel_stats::Recorder;
use flashkeel_workload::{Basis, Counts};
use serde::Serialize;

use crate::pooling::sum_of_counts;
use crate::run::{Progress, notes_of, open};
use crate::{Error, Experiment, Opened, RunPlan, Target, real, stack};

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
    /// What the drive did that the model's cannot do: then the model is of another one.
    pub contradiction: Option<String>,
    /// What the workload is made from.
    pub basis: Basis,
    /// What became of the workload's input.
    pub input: Counts,
    /// What whoever reads this must know of the workload.
    pub notes: Vec<String>,
    /// The model with what was learnt.
    pub model: DeviceModel,
}

/// Runs a plan and predicts each request right before it is submitted. Of the normal ones no
/// greater part is called slow than `false_calls`, if that is given.
///
/// # Errors
/// [`Error::Input`] if the workload turns out to be wrong on the way,
/// [`Error::Interrupted`] if `progress` stops the run.
pub fn predict(
    plan: &RunPlan,
    model: &DeviceModel,
    false_calls: Option<f64>,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Predicted, Error> {
    let config = Experiment { seed, ..plan.config.clone() };
    let target = Target { destroys: plan.destroys, ..Target::of(&config) };
    // Before its steady state is made, which may take minutes.
    let model =
        &model.of_drive(target.size()?.sectors).map_err(|why| Error::Input(format!("the model is {why}")))?;
    let Opened { mut device, mut world, size } = target.open_for_pages(seed, cache_dir, progress)?;
    let mut sources = open(&config, &mut *device, size.foresees, progress)?;
    let gauges = device.gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let workloads = stack::workloads(&config);
    let warm_up = workloads.iter().map(|workload| workload.warm_up).max().unwrap_or_default();
    let recorder = Recorder::new(&config.measure, warm_up, &gauges);
    let mut judged = Judged {
        device,
        engine: Engine::new(model, false_calls),
        score: Score::default(),
        flights: Vec::new(),
        first: Vec::new(),
    };
    let tenants = sources.iter_mut().zip(workloads).map(|(source, workload)| Tenant {
        source: source.as_mut(),
        workload,
        recorder: None,
    });
    let tenants = tenants.collect();
    let listener = world.clone();
    let driven = drive(&mut judged, real::outside(&mut world), tenants, recorder, &mut |fraction| {
        real::watch(listener.as_ref())?;
        progress("replay", fraction)
    });
    real::end(world.as_ref(), driven.map_err(Error::from))?;
    let Judged { engine, score, first, .. } = judged;
    let slow = score.slow_found + score.slow_missed;
    let requests = slow + score.normal_found + score.normal_missed;
    let counts = sources.iter().map(|source| source.counts().clone());
    let mut notes = plan.notes.clone();
    notes.extend(notes_of(&sources, stack::tenants(&config)));
    let is_synthetic = sources.iter().any(|source| source.basis() == Basis::Synthetic);
    Ok(Predicted {
        requests,
        slow_fraction: slow as f64 / requests.max(1) as f64,
        slow_recall: score.slow_recall(),
        normal_recall: score.normal_recall(),
        precision: score.precision(),
        score,
        is_on: engine.is_on(),
        contradiction: contradiction(model, &first),
        basis: if is_synthetic { Basis::Synthetic } else { Basis::Trace },
        input: counts.reduce(|sum, other| sum_of_counts(&sum, &other)).unwrap_or_default(),
        notes,
        model: engine.model(),
    })
}

/// A drive whose requests are predicted, and the predictions judged.
struct Judged {
    device: Box<dyn Device>,
    engine: Engine,
    score: Score,
    flights: Vec<Flight>,
    /// The first [`TELLING`] requests, of which those that are outstanding have taken nothing.
    first: Vec<Served>,
}

struct Flight {
    /// Which it is of the first, if it is one of them.
    number: usize,
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
            if let Some(served) = self.first.get_mut(flight.number) {
                served.latency = latency;
            }
            if flight.operation != Operation::Flush {
                let is_slow = self.engine.is_slow(flight.operation, flight.sectors, latency);
                self.score.count(flight.predicted_slow, is_slow);
            }
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
        let is_told = matches!(request.operation, Operation::Read | Operation::Write | Operation::Flush);
        if answer == Submit::Accepted && is_told {
            self.engine.submitted(now, request);
            let Request { id, operation, lba, sectors, fua, .. } = *request;
            let number = self.first.len();
            if number < TELLING {
                let served = Served { submitted: now, latency: Span::ZERO, operation, lba, sectors };
                self.first.push(served);
                if fua {
                    // It may be as if a flush came behind it.
                    self.first.push(Served { operation: Operation::Flush, ..served });
                }
            }
            self.flights.push(Flight { number, id, operation, sectors, submitted: now, predicted_slow });
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
        // What the cut ends was not served: nobody judges it.
        self.flights.clear();
        self.engine.cut_power(now);
        self.device.cut_power(now, data);
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        self.device.command(now, place, command, data)
    }

    fn notice(&mut self) -> Option<Notice> {
        self.device.notice()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let seen = completions.len();
        self.device.advance(now, data, completions);
        self.judge(&completions[seen..]);
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        let now = self.device.advance_to_completion(limit, data, completions);
        self.judge(completions);
        now
    }
}

impl Measured for Judged {
    fn gauge_names(&self) -> Vec<String> {
        self.device.gauge_names()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        self.device.gauges(values);
    }

    fn start_measuring(&mut self, now: Time) {
        self.device.start_measuring(now);
        self.score = Score::default();
    }

    fn final_counters(&self) -> Vec<u64> {
        self.device.final_counters()
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Event, Lba, Span, Status, Window};
    use flashkeel_ssdcheck::DeviceModel;
    use serde_json::json;

    use super::*;

    fn judged(window: &str) -> Judged {
        let document = format!(
            "[device]\nlogical_capacity = \"4MiB\"\nmap_cache = \"all\"\nwindow = \"{window}\"\n\
             gc = {{ start_below = 8, stop_above = 12 }}\nbuffer = {{ size = \"256KiB\" }}\n\
             geometry = {{ channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 24, \
             pages_per_block = 8 }}\n[workload]\nsource = \"synthetic\"\npacing = \"closed\"\nrequests = 1\n"
        );
        let plans = crate::resolve(&document, "judged", &[], None).expect("a document");
        let target = Target::of(&plans[0].config);
        let device = target.build(1, None, &mut |_, _| std::ops::ControlFlow::Continue(()));
        let device = device.unwrap_or_else(|error| panic!("{error}"));
        let model: DeviceModel = serde_json::from_value(json!({
            "sectors": device.limits().sectors,
            "volume_bits": [],
            "gc_volume_bits": null,
            "write_buffer": { "bytes": null, "type": "unknown", "flush": [] },
            "thresholds_ns": { "read": 250_000, "write": 250_000 },
            "latencies_ns": { "read": 80_000, "write": 20_000, "flush": 0, "collection": 0 },
            "sleep": null,
            "undetermined": [],
        }))
        .expect("a model");
        Judged {
            device,
            engine: Engine::new(&model, None),
            score: Score::default(),
            flights: Vec::new(),
            first: Vec::new(),
        }
    }

    fn submit(judged: &mut Judged, count: u64) {
        for id in 0..count {
            let write = Request::new(RequestId(id), Operation::Write, Lba(8 * id), 8);
            assert_eq!(judged.submit(Time(0), &write, &mut Arena::new()), Submit::Accepted);
        }
    }

    #[test]
    fn a_device_that_is_judged_is_told_and_asked_as_before() {
        let mut judged = judged("commanded");
        let mut tell = |command| judged.command(Time(0), &Place::default(), &command, &mut Arena::new());
        assert_eq!(tell(Command::Window(0, Window::Deterministic)), Ok(Answer::Done));
        let Ok(Answer::State(readings)) = tell(Command::State) else { panic!("it tells no state") };
        assert!(readings.contains(&("deterministic".to_owned(), 1)), "{readings:?}");
        assert!(judged.next_event().has_notice());
        assert_eq!(judged.notice().map(|notice| notice.event), Some(Event::WindowBegan(0)));
        assert!(!judged.next_event().has_notice() && judged.notice().is_none());
    }

    #[test]
    fn a_power_cut_is_not_judged() {
        let mut judged = judged("none");
        submit(&mut judged, 5);
        judged.cut_power(Time(10), &mut Arena::new());
        let mut done = Vec::new();
        judged.advance(Time(10), &mut Arena::new(), &mut done);
        assert!(done.len() == 5 && done.iter().all(|end| end.status == Status::Aborted), "{done:?}");
        assert!(judged.flights.is_empty());
        let Score { slow_found, slow_missed, normal_found, normal_missed, .. } = judged.score;
        assert_eq!([slow_found, slow_missed, normal_found, normal_missed], [0; 4]);
    }

    #[test]
    fn it_is_judged_however_it_runs() {
        let (mut one, mut other) = (judged("none"), judged("none"));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        submit(&mut one, 40);
        submit(&mut other, 40);
        one.advance(Time(0) + Span::from_secs(1), &mut Arena::new(), &mut first);
        let mut some = Vec::new();
        while other.advance_to_completion(Time::MAX, &mut Arena::new(), &mut some).is_some() {
            second.append(&mut some);
        }
        assert_eq!(first, second);
        assert!(one.flights.is_empty() && other.flights.is_empty());
        assert_eq!(one.score.normal_found + one.score.slow_missed, 40);
        assert_eq!(one.score.normal_found, other.score.normal_found);
    }
}
