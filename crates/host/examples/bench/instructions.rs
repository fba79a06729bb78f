//! Instructions of a request, counted by valgrind, and their record.

use std::hint::black_box;
use std::process::Command;

use flashkeel_device::DeviceConfig;
use flashkeel_host::device::{DeviceKind, Maker};
use flashkeel_host::stack::StackConfig;
use serde_json::{Map, Value, json};

use super::{DEPTH, prediction, run, saturated, small, small_with, tiers};

/// What valgrind runs: `requests` on a small device in its steady state, or predicted.
pub fn take(operation: &str, requests: u64) {
    if prediction::COUNTED.contains(&operation) || prediction::LOOPS.contains(&operation) {
        return prediction::take(operation, requests);
    }
    let read_fraction = if operation.ends_with("read") { 1.0 } else { 0.0 };
    let (config, mut ssd) = small();
    let workload = saturated(read_fraction, requests);
    let Some((kind, _)) = operation.split_once('_') else {
        black_box(run(&mut ssd, &workload));
        return;
    };
    if kind == "tiered" {
        black_box(run(&mut *tiers::behind("oc"), &workload));
        return;
    }
    if let Some(preset) = operation.strip_suffix("_mix") {
        return tiers::mix(preset, requests);
    }
    if kind == "shared" {
        let window = serde_json::from_value(json!("commanded")).expect("a window");
        let (config, ssd) = small_with(window);
        let share = json!({ "count": 4000, "window": "20ms", "rest": "6ms" });
        let shared = json!({ "coordinator": { "device": { "ssd": config }, "share": share } });
        let shared: DeviceKind = serde_json::from_value(shared).expect("a coordinator");
        let mut take = |_: &DeviceConfig, _| Ok(ssd.clone());
        let mut device = shared.build(&mut Maker::new(1, &mut take)).expect("a coordinator");
        black_box(run(&mut *device, &workload));
        return;
    }
    // A depth that leaves nothing waiting.
    let devices = if kind == "pair" { 2 } else { 1 };
    let scheduler = if kind == "fair" { "fair" } else { "none" };
    let mut stack: StackConfig =
        serde_json::from_value(json!({ "scheduler": scheduler, "depth": DEPTH })).expect("a stack");
    stack.devices = vec![DeviceKind::Ssd(Box::new(config)); devices];
    let mut take = |_: &DeviceConfig, _| Ok(ssd.clone());
    let mut stack = stack.assemble(1, &mut Maker::new(1, &mut take)).expect("a stack");
    black_box(run(&mut *stack, &workload));
}

/// Instructions per request, plain and under stacks, by name; printed on the way.
/// Empty without valgrind.
pub fn count() -> Map<String, Value> {
    let mut figures = Map::new();
    for operation in ["write", "read"] {
        let mut plain = None;
        for stack in ["", "stacked_", "fair_", "pair_", "tiered_", "shared_"] {
            let Some(each) = per_request(&format!("{stack}{operation}")) else { continue };
            let ratio = each / *plain.get_or_insert(each);
            let name = format!("instructions_per_{stack}random_{operation}");
            println!("{name:>40} {each:8.0}   {ratio:.2} of plain");
            let figure = json!({ "value": each, "unit": "instructions", "plain_ratio": ratio });
            figures.insert(name, figure);
        }
    }
    for preset in tiers::PRESETS {
        let Some(each) = per_request(&format!("{preset}_mix")) else { continue };
        let name = format!("instructions_per_{preset}_tier_request");
        println!("{name:>40} {each:8.0}");
        figures.insert(name, json!({ "value": each, "unit": "instructions", "plain_ratio": null }));
    }
    for (counted, asking) in prediction::COUNTED.into_iter().zip(prediction::LOOPS) {
        let (Some(each), Some(asking)) = (per_request(counted), per_request(asking)) else { continue };
        let each = each - asking;
        let name = format!("instructions_per_{counted}");
        println!("{name:>40} {each:8.0}");
        figures.insert(name, json!({ "value": each, "unit": "instructions", "plain_ratio": null }));
    }
    figures
}

/// Where the figures are kept that others are compared with.
const RECORD: &str = "bench/record.json";
/// By how much one may lie above its record without being shown.
const TOLERANCE: f64 = 0.03;

/// Shows which of `figures` have risen above their record.
pub fn compare_with_record(figures: &Map<String, Value>) {
    let text = std::fs::read_to_string(RECORD).unwrap_or_else(|error| panic!("{RECORD}: {error}"));
    let record: Map<String, Value> = serde_json::from_str(&text).expect("a record is an object");
    for (name, figure) in figures {
        let (Some(now), Some(then)) = (figure["value"].as_f64(), record.get(name).and_then(Value::as_f64))
        else {
            println!("{name:>40} is not in {RECORD}");
            continue;
        };
        if now > then * (1.0 + TOLERANCE) {
            let rise = (now / then - 1.0) * 100.0;
            println!("{name:>40} has risen by {rise:.1} %, from {then:.0} to {now:.0}");
        }
    }
}

/// Makes what is counted now the record.
pub fn renew_record() {
    let figures = count();
    assert!(!figures.is_empty(), "instructions are counted by valgrind, which is not there");
    let rounded = |figure: &Value| figure["value"].as_f64().map(|value| json!(value.round() as u64));
    let record: Map<String, Value> =
        figures.iter().filter_map(|(name, figure)| Some((name.clone(), rounded(figure)?))).collect();
    let text = serde_json::to_string_pretty(&Value::Object(record)).expect("plain data");
    std::fs::write(RECORD, text + "\n").unwrap_or_else(|error| panic!("{RECORD}: {error}"));
    println!("written to {RECORD}");
}

/// Instructions of one request: the difference between two runs of different
/// length, so that set-up cancels out. `None` without valgrind.
fn per_request(operation: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let count = |requests: u64| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(["instructions", operation, &requests.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("Collected"))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let (few, many) = (20_000, 60_000);
    Some((count(many)? - count(few)?) / (many - few) as f64)
}
