//! What was learnt is saved with the model, and another predictor begins with it.

mod support;

use flashkeel_device::stranger;
use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor, Request, RequestId, Span, Status, Time,
};
use flashkeel_ssdcheck::{DeviceModel, Engine, Measured, probe, score_log};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use support::loads::{Pacing, log};
use support::{preset, ready};

const REQUESTS: u64 = 30_000;
/// The first ones after another predictor has begun.
const FIRST: usize = 3_000;

/// A drive's model, what was asked of another specimen, and what was asked of a third.
fn logs(config: &flashkeel_device::DeviceConfig, seed: u64) -> (DeviceModel, [Vec<Measured>; 2]) {
    let go_on = &mut |_: f64| ControlFlow::Continue(());
    let model = probe(&mut ready(config, 9), None, 9, None, go_on).expect("it serves").model;
    let asked = [seed, seed + 1].map(|seed| {
        let mut engine = Engine::new(&model, None);
        let asked = log(&mut ready(config, seed), &mut engine, seed, Pacing::Think, REQUESTS);
        asked.into_iter().map(|asked| asked.measured).collect()
    });
    (model, asked)
}

/// The harmonic mean of recall and precision over all of a log.
fn f1(model: &DeviceModel, log: &[Measured]) -> (f64, Engine) {
    let mut engine = Engine::new(model, None);
    let scored = score_log(&mut engine, log, &mut |_| ControlFlow::Continue(())).expect("to its end");
    let score = scored.whole_log;
    let found = 2 * score.slow_found;
    (found as f64 / (found + score.slow_missed + score.normal_missed).max(1) as f64, engine)
}

#[test]
fn a_known_drive_starts_warm() {
    let drives = ["ssd-a", "ssd-d", "ssd-f"].map(preset).into_iter().chain((200..216).map(stranger));
    let (mut cold_sum, mut warm_sum, mut count) = (0.0, 0.0, 0.0);
    for (number, config) in drives.enumerate() {
        let (model, [before, after]) = logs(&config, 40 + number as u64);
        let learned = f1(&model, &before).1.model();
        let [cold, warm] = [&model, &learned].map(|model| f1(model, &after[..FIRST]).0);
        println!("{number}: {cold:.3} cold, {warm:.3} warm");
        (cold_sum, warm_sum, count) = (cold_sum + cold, warm_sum + warm, count + 1.0);
    }
    assert!(warm_sum >= cold_sum + 0.01 * count, "{cold_sum} {warm_sum} {count}");
}

/// Once who began with a saved model called others slow than who had saved it, if that was soon.
#[test]
fn who_begins_with_nothing_learnt_predicts_as_whoever_begins() {
    let (model, [log, _]) = logs(&preset("ssd-d"), 3);
    let saved = Engine::new(&model, None).model();
    assert!(saved.learned.is_some());
    let [fresh, again] = [&model, &saved].map(|model| {
        let go_on = &mut |_: f64| ControlFlow::Continue(());
        score_log(&mut Engine::new(model, None), &log[..FIRST], go_on).expect("to its end")
    });
    assert_eq!(fresh, again);
}

/// Once the mean time of slow requests was then beyond what is taken from a file.
#[test]
fn what_is_learnt_of_a_request_of_hours_can_be_read_again() {
    let model = model();
    let mut engine = Engine::new(&model, None);
    for number in 0..40 {
        let (now, id) = (Time(number * 1_000_000_000_000_000), RequestId(number));
        engine.submitted(now, &Request::new(id, Operation::Read, Lba(0), 8));
        let time = now + Span::from_secs(20_000);
        engine.observe(time, &Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
    }
    assert_eq!(engine.model().validate(), Ok(()));
}

fn model() -> DeviceModel {
    let (model, [log, _]) = logs(&preset("ssd-d"), 3);
    f1(&model, &log[..FIRST]).1.model()
}

#[test]
fn a_file_holds_all_that_was_learnt() {
    let model = model();
    let text = serde_json::to_string(&model).expect("JSON");
    let read: DeviceModel = serde_json::from_str(&text).expect("a model");
    assert_eq!(read, model);
    assert_eq!(read.validate(), Ok(()));
    // Who begins with it and sees nothing has learnt just that.
    assert_eq!(Engine::new(&read, None).model(), model);
}

/// Once weights grew for as long as nothing was slow, until a mixed load was predicted badly for long, and
/// the saved model was refused.
#[test]
fn as_long_as_nothing_is_slow_weights_stay() {
    let model = DeviceModel { learned: None, ..model() };
    let mut engine = Engine::new(&model, None);
    let mut after = |requests: std::ops::Range<u64>| {
        for number in requests {
            let (now, id) = (Time(number * 100_000), RequestId(number));
            let lba = Lba(number * 7_919 % (model.sectors / 8) * 8);
            engine.submitted(now, &Request::new(id, Operation::Read, lba, 8));
            let time = now + Span(model.latencies_ns.read);
            engine.observe(time, &Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
        }
        let mixed = serde_json::to_value(engine.model().learned).expect("JSON")["mixed"].clone();
        let sets = mixed.as_array().expect("sets").iter();
        let weights = sets.flat_map(|set| set["weights"].as_array().expect("weights").clone());
        weights.map(|weight| weight.as_f64().expect("a number").abs()).fold(0.0, f64::max)
    };
    let (soon, late) = (after(0..100_000), after(100_000..1_000_000));
    assert!(late < soon + 0.5, "{soon} {late}");
}

#[test]
fn what_no_engine_can_have_learnt_is_refused() {
    let right = serde_json::to_value(model()).expect("JSON");
    let wrong: [(&str, Value, &str); 13] = [
        ("layout", json!(6), "learned.layout"),
        ("flush_ns", json!(u64::MAX), "learned.flush_ns"),
        ("read_flush_ns", json!(u64::MAX), "learned.read_flush_ns"),
        ("collection_ns", json!(u64::MAX), "learned.collection_ns"),
        ("slow_ns", json!([1, u64::MAX]), "learned.slow_ns"),
        ("slow_share", json!([0.5, 1.5]), "learned.slow_share"),
        ("collections", json!(vec![1; 1_025]), "learned.collections"),
        ("wakes", json!([60_000]), "learned.wakes"),
        ("busy", json!([[1_000_000_000, 1, 1]]), "learned.busy"),
        ("busy", json!([[0, 2, 1]]), "learned.busy"),
        ("signals", json!([[0, 0, 33]]), "learned.signals"),
        ("mixed", json!([]), "learned.mixed"),
        ("calibration", json!(vec![[2.0, 1.0]; 52]), "learned.calibration"),
    ];
    for (key, value, named) in wrong {
        let mut document = right.clone();
        document["learned"][key] = value;
        let model: DeviceModel = serde_json::from_value(document).expect("JSON of its shape");
        let why = model.validate().expect_err(key);
        assert!(why.starts_with(named), "{why}");
    }
    let mut document = right;
    document["learned"].as_object_mut().expect("a table").remove("mixed");
    let error = serde_json::from_value::<DeviceModel>(document).expect_err("incomplete");
    assert!(error.to_string().contains("mixed"), "{error}");
}
