//! The driver: pacing, the queue outside a busy device, and golden digests.

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::Cause;
use flashkeel_host::{Tenant, drive};
use flashkeel_stats::{MeasureConfig, Recorder, Summary};
use flashkeel_workload::WorkloadConfig;
use serde_json::{Value, json};

/// A device of four chips without randomness in its delays, written once.
fn device(changes: Value) -> DeviceConfig {
    let mut config = json!({
        "geometry": {
            "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1,
            "blocks_per_plane": 24, "pages_per_block": 8,
        },
        "logical_capacity": "4MiB",
        "map_cache": "all",
        "controller": {
            "lookup": { "min": "1us", "max": "1us" },
            "host_generation": { "min": "1us", "max": "1us" },
        },
        "gc": { "start_below": 8, "stop_above": 12 },
        "buffer": { "size": "256KiB" },
        "precondition": { "pattern": "sequential" },
    });
    for (key, value) in changes.as_object().expect("a table") {
        match (&mut config[key], value) {
            (Value::Object(table), Value::Object(more)) => table.extend(more.clone()),
            (place, value) => *place = value.clone(),
        }
    }
    serde_json::from_value(config).expect("a device")
}

fn run(device: &DeviceConfig, workload: Value, seed: u64) -> Summary {
    let workload: WorkloadConfig = serde_json::from_value(workload).expect("a workload");
    let mut ssd = Ssd::new(&device.validate().expect("a valid device"), seed);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    let mut source = workload.open(ssd.sectors(), seed).expect("a valid workload");
    let names = Ssd::gauge_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&MeasureConfig::default(), workload.warm_up, &names);
    let tenant = Tenant { source: source.as_mut(), workload: &workload, recorder: None };
    let go_on = &mut |_| ControlFlow::Continue(());
    let measured = drive(&mut ssd, None, vec![tenant], recorder, go_on);
    ssd.check();
    measured.expect("the workload is good").0.summary
}

fn blame(summary: &Summary, cause: Cause) -> u64 {
    summary.blame_ns.iter().find(|&(other, _)| other == cause).map_or(0, |(_, ns)| ns)
}

/// An idle device's read of a page: look-up, generation, array and channel.
const READ_NS: u64 = 1_000 + 1_000 + 50_000 + 10_240;

fn reads(requests: u64, pacing: Value, arrivals: Value) -> Value {
    json!({
        "source": { "policy": "synthetic", "pattern": "sequential", "arrivals": arrivals },
        "pacing": pacing,
        "requests": requests,
    })
}

#[test]
fn requests_wait_outside_a_device_at_its_queue_depth() {
    let device = device(json!({ "controller": { "queue_depth": 1 } }));
    // A read every 50 us, served one at a time: each waits longer than the last.
    let arrivals = json!({ "policy": "constant", "iops": 20_000 });
    let summary = run(&device, reads(100, json!("open"), arrivals), 1);
    let lag = READ_NS - 50_000;
    assert_eq!(blame(&summary, Cause::HostQueue), lag * 99 * 100 / 2);
    assert_eq!(summary.read.mean_ns, Some(READ_NS as f64 + (lag * 99) as f64 / 2.0));
}

#[test]
fn an_unhurried_open_loop_waits_for_nothing() {
    let arrivals = json!({ "policy": "constant", "iops": 1_000 });
    let summary = run(&device(json!({})), reads(100, json!("open"), arrivals), 1);
    assert_eq!((summary.read.count, summary.read.mean_ns), (100, Some(READ_NS as f64)));
    assert_eq!(blame(&summary, Cause::OwnFlash), 100 * (50_000 + 10_240));
    assert_eq!(blame(&summary, Cause::Controller), 100 * 2_000);
}

#[test]
fn a_closed_loop_of_one_serves_back_to_back() {
    let summary =
        run(&device(json!({})), reads(500, json!({ "policy": "closed", "depth": 1 }), Value::Null), 1);
    assert_eq!(summary.read.mean_ns, Some(READ_NS as f64));
    assert!((summary.simulated_s - 500.0 * READ_NS as f64 / 1e9).abs() < 1e-12, "{}", summary.simulated_s);
}

#[test]
fn a_closed_loop_that_drains_submits_in_batches() {
    // One chip serves them one after another.
    let device =
        device(json!({ "geometry": { "channels": 1, "chips_per_channel": 1, "blocks_per_plane": 96 } }));
    let outstanding = |pacing| {
        let summary = run(&device, reads(800, pacing, Value::Null), 1);
        // Little's law.
        summary.read.mean_ns.unwrap() * 800.0 / (summary.simulated_s * 1e9)
    };
    for (pacing, expected) in [
        (json!({ "policy": "closed", "depth": 4 }), 4.0),
        (json!({ "policy": "closed", "depth": 4, "low": 2 }), (4.0 + 3.0) / 2.0),
        (json!({ "policy": "closed", "depth": 4, "low": 0 }), (4.0 + 3.0 + 2.0 + 1.0) / 4.0),
    ] {
        let got = outstanding(pacing.clone());
        assert!((got - expected).abs() < 0.1, "{pacing}: {got} outstanding instead of {expected}");
    }
}

#[test]
fn think_time_follows_each_completion() {
    let arrivals = json!({ "policy": "constant", "iops": 10_000 });
    let summary = run(&device(json!({})), reads(100, json!("think"), arrivals), 1);
    let end = 100 * READ_NS + 99 * 100_000;
    assert!((summary.simulated_s - end as f64 / 1e9).abs() < 1e-12, "{}", summary.simulated_s);
}

/// A short run with garbage collection, trims and a map that does not fit.
fn eventful(scheduler: &str, seed: u64) -> String {
    let device = device(json!({
        "scheduler": scheduler,
        "geometry": { "blocks_per_plane": 96 },
        "logical_capacity": "16MiB",
        "map_cache": "8KiB",
        "controller": { "lookup": { "min": "500ns", "max": "1us" } },
        "precondition": { "pattern": "random" },
    }));
    let workload = json!({
        "source": {
            "policy": "synthetic", "read_fraction": 0.3, "trim_fraction": 0.05,
            "block_sizes": ["4KiB/3", "16KiB/1"],
        },
        "pacing": { "policy": "closed", "depth": 32 },
        "requests": 5_000,
    });
    run(&device, workload, seed).digest.to_string()
}

#[test]
fn digests_are_reproduced_and_differ_by_seed() {
    assert_eq!(eventful("debit", 1), eventful("debit", 1));
    assert_ne!(eventful("debit", 1), eventful("debit", 2));
}

/// Whoever changes what a run does on purpose changes these with it.
#[test]
fn digests_are_as_recorded() {
    let golden = [
        ("fifo", "9b08b181576deb24"),
        ("priority", "bd27b89656904cc6"),
        ("fair", "98cb663c737c28ef"),
        ("debit", "c33cde14bfe1f57c"),
    ];
    let got = golden.map(|(scheduler, _)| (scheduler, eventful(scheduler, 1)));
    assert_eq!(got, golden.map(|(scheduler, digest)| (scheduler, digest.to_string())));
}
