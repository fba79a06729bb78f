//! Predictions on the seven drives under the seven workloads, and on a drive
//! that cannot be predicted.

mod support;

use std::ops::ControlFlow;

use flashkeel_engine::{
    Arena, Completion, Durable, Leaf, Ledger, Limits, Predictor, Request, Span, Status, Stream, Submit, Time,
    Wake,
};
use flashkeel_ssdcheck::{DeviceModel, Engine, Score, probe};
use support::{DRIVES, Thinks, WORKLOADS, preset, ready, serve};

/// The model of a drive, from another specimen of it.
fn model(drive: &str) -> DeviceModel {
    let mut ssd = ready(&preset(drive), 2);
    probe(&mut ssd, None, 2, None, &mut |_| ControlFlow::Continue(())).expect("a drive that serves").model
}

/// Serves a workload with predictions.
fn predicted(
    leaf: &mut dyn Leaf,
    now: Time,
    engine: &mut Engine,
    thinks: &mut Thinks,
    count: u64,
) -> (Time, Score) {
    let (mut score, mut said) = (Score::default(), false);
    let end = serve(leaf, now, thinks, count, &mut |at, request, completion| match completion {
        None => {
            said = engine.predict(at, &[], request).is_slow;
            engine.submitted(at, request);
        }
        Some(completion) => {
            score.count(said, engine.is_slow(request.operation, request.sectors, completion.time.since(at)));
            engine.observe(completion.time, completion);
        }
    });
    (end, score)
}

/// Specimens of each drive, by seed, which the recalls are the mean of: from one to
/// the next that of one drive varies by two points. The model is from specimen 2.
const SPECIMENS: [u64; 4] = [1, 3, 4, 5];

/// Recalls of slow and of normal requests, and precision, in percent, of a drive
/// under a new engine for each workload: the mean over all of them.
fn recalls(drive: &str) -> [f64; 3] {
    let model = model(drive);
    let mut sums = [0.0; 3];
    for specimen in SPECIMENS {
        let (mut ssd, mut now) = (ready(&preset(drive), specimen), Time::ZERO);
        for (_, writes) in WORKLOADS {
            let mut engine = Engine::new(&model, None);
            let mut thinks = Thinks::new(writes, ssd.sectors(), 6 + specimen);
            let (end, score) = predicted(&mut ssd, now, &mut engine, &mut thinks, 100_000);
            now = end;
            let parts = [score.slow_recall(), score.normal_recall(), score.precision()];
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += 100.0 * part.expect("requests of every class");
            }
        }
    }
    sums.map(|sum| sum / (SPECIMENS.len() * WORKLOADS.len()) as f64)
}

#[test]
fn recalls_are_the_papers_and_better() {
    /// Slow requests found, in percent (Fig. 11); of the normal ones, 99.
    const PAPER: [f64; 7] = [80.0, 79.8, 72.3, 61.1, 48.4, 72.7, 73.7];
    let all = std::thread::scope(|scope| {
        let drives = DRIVES.map(|drive| scope.spawn(move || recalls(drive)));
        drives.map(|drive| drive.join().expect("its recalls"))
    });
    for ((drive, paper), [slow, normal, precision]) in DRIVES.into_iter().zip(PAPER).zip(all) {
        println!(
            "{drive}: slow {slow:.1} % (paper {paper} %), normal {normal:.2} %, precision {precision:.0} %"
        );
        assert!(slow >= paper, "{drive}: {slow:.1} % of slow requests, the paper {paper} %");
        assert!(normal >= 99.0, "{drive}: {normal:.2} % of normal requests");
        assert!(precision >= 50.0, "{drive}: {precision:.1} % of predictions came true");
    }
    let mean = all.iter().map(|[slow, ..]| slow / all.len() as f64).sum::<f64>();
    assert!(mean >= 85.0, "{mean:.1} % of slow requests in the mean");
}

/// A drive that is slow one time in a hundred, whatever is asked.
struct Dice {
    random: Stream,
    flying: Option<Completion>,
}

impl Leaf for Dice {
    fn limits(&self) -> Limits {
        let (sectors, block_sectors) = (1 << 21, 8);
        Limits { sectors, block_sectors, preferred_sectors: block_sectors, durable: Durable::Acknowledged }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        let latency = if self.random.chance(0.01) { Span::from_ms(2) } else { Span::from_us(50) };
        let completion =
            Completion { id: request.id, time: now + latency, status: Status::Ok, ledger: Ledger::ZERO };
        self.flying = Some(completion);
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.flying.map(|completion| completion.time).into()
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.flying = None;
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        completions.extend(self.flying.take_if(|completion| completion.time <= now));
    }
}

#[test]
fn a_drive_that_the_model_does_not_fit_is_left_alone() {
    let model = model("ssd-d");
    let mut dice = Dice { random: Stream::new(1, "dice"), flying: None };
    let mut engine = Engine::new(&model, None);
    let mut thinks = Thinks::new(0.5, model.sectors, 1);
    let (now, start) = predicted(&mut dice, Time::ZERO, &mut engine, &mut thinks, 20_000);
    assert!(!engine.is_on(), "{start:?}");
    // Off, it says what no prediction says; it may try again, and finds nothing.
    let (_, rest) = predicted(&mut dice, now, &mut engine, &mut thinks, 200_000);
    assert!(rest.normal_missed <= 200, "{rest:?}");
}

#[test]
fn asking_changes_nothing() {
    let model = model("ssd-e");
    let serve_with = |asks: usize| {
        let mut ssd = ready(&preset("ssd-e"), 1);
        let mut engine = Engine::new(&model, None);
        let mut thinks = Thinks::new(0.5, ssd.sectors(), 3);
        let mut said = Vec::new();
        serve(&mut ssd, Time::ZERO, &mut thinks, 20_000, &mut |at, request, completion| match completion {
            None => {
                for other in 1..asks {
                    let ahead = [*request; 3];
                    let _ = engine.predict(at, &ahead[..other.min(3)], request);
                }
                said.push(engine.predict(at, &[], request));
                engine.submitted(at, request);
            }
            Some(completion) => engine.observe(completion.time, completion),
        });
        said
    };
    assert_eq!(serve_with(1), serve_with(4));
}
