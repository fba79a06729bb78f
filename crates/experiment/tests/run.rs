//! From a plan to a result: the same result however it is reached.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use flashkeel_device::VictimConfig;
use flashkeel_experiment::{Error, Finished, RunPlan, explain, merge, resolve, run};
use flashkeel_workload::Basis;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};

const DOCUMENT: &str = "\
[device]
logical_capacity = \"96MiB\"
map_cache = \"48KiB\"
gc = { start_below = 16, stop_above = 24 }

[device.geometry]
channels = 2
chips_per_channel = 2
planes_per_chip = 1
blocks_per_plane = 64
pages_per_block = 32

[workload]
requests = 20000
[workload.source]
policy = \"synthetic\"
read_fraction = 0.5
arrivals = { policy = \"poisson\", iops = 2000 }

[[runs]]
name = \"fifo\"
set = { \"device.scheduler\" = \"fifo\" }
[[runs]]
name = \"debit\"
set = { \"device.scheduler\" = \"debit\" }
";

fn plans(sets: &[(&str, &str)]) -> Vec<RunPlan> {
    let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    resolve(DOCUMENT, "test", &sets, None).unwrap()
}

fn finish(plan: &RunPlan, seed: u64, cache: Option<&Path>) -> Finished {
    run(plan, seed, cache, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

fn digest(plan: &RunPlan, seed: u64, cache: Option<&Path>) -> String {
    finish(plan, seed, cache).outcome.summary.digest.to_string()
}

/// An empty folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_seed_decides_the_result() {
    let plan = &plans(&[])[1];
    assert_eq!(digest(plan, 1, None), digest(plan, 1, None));
    assert_ne!(digest(plan, 1, None), digest(plan, 2, None));
}

#[test]
fn the_cache_decides_nothing() {
    let cache = folder("the_cache_decides_nothing");
    let plan = &plans(&[])[1];
    let without = digest(plan, 1, None);
    assert_eq!(digest(plan, 1, Some(&cache)), without, "cold");
    let [file] = &files(&cache)[..] else { panic!("one file, complete") };
    assert_eq!(digest(plan, 1, Some(&cache)), without, "warm");

    let whole = fs::read(file).unwrap();
    let damages: [fn(&mut Vec<u8>); 6] = [
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes[60] ^= 1,
        |bytes| bytes.push(0),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.truncate(10),
        |bytes| bytes.clear(),
    ];
    for damage in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(file, bytes).unwrap();
        assert_eq!(digest(plan, 1, Some(&cache)), without, "damaged");
        assert_eq!(fs::read(file).unwrap(), whole, "mended");
    }
    assert_eq!(files(&cache).len(), 1);
}

#[test]
fn variants_share_a_steady_state_unless_they_change_it() {
    let cache = folder("variants_share");
    for plan in plans(&[]) {
        let without = digest(&plan, 1, None);
        assert_eq!(digest(&plan, 1, Some(&cache)), without);
    }
    assert_eq!(files(&cache).len(), 1);
    digest(&plans(&[])[0], 2, Some(&cache));
    assert_eq!(files(&cache).len(), 2);
}

#[test]
fn runs_with_different_seeds_can_start_from_one_state() {
    let cache = folder("one_state");
    let plan = &plans(&[("device.precondition.seed", "9")])[0];
    let digests: Vec<_> = (1..=2).map(|seed| digest(plan, seed, Some(&cache))).collect();
    assert_eq!(files(&cache).len(), 1);
    assert_eq!(digests, [digest(plan, 1, None), digest(plan, 2, None)]);
    assert_ne!(digests[0], digests[1]);
}

#[test]
fn every_kind_of_device_is_restored_exactly() {
    let cache = folder("every_kind");
    let victims = VictimConfig::NAMES.iter().map(|&victim| ("device.gc.victim", victim));
    let others = [
        ("device.allocation", "striped"),
        ("device.map_cache", "all"),
        ("device.precondition.pattern", "sequential"),
        ("device.partition_bits", "[10]"),
    ];
    for set in victims.chain(others) {
        let sets = [("device.logical_capacity", "88MiB"), set];
        let plan = &plans(&sets)[1];
        let outcome = finish(plan, 1, None).outcome;
        assert!(outcome.erases > 10, "{set:?}: {} erases", outcome.erases);
        let without = outcome.summary.digest.to_string();
        assert_eq!(digest(plan, 1, Some(&cache)), without, "cold: {set:?}");
        assert_eq!(digest(plan, 1, Some(&cache)), without, "warm: {set:?}");
    }
    assert_eq!(files(&cache).len(), VictimConfig::NAMES.len() - 1 + others.len() + 1);
}

#[test]
fn what_only_matters_in_time_shares_a_steady_state() {
    let cache = folder("timed_only");
    for set in [
        ("device.timing.erase", "1ms"),
        ("device.controller.slots_per_chip", "2"),
        ("device.host_link", "1GB/s"),
        ("device.scheduler", "fair"),
        ("device.buffer.size", "2MiB"),
        ("device.gc.pages_in_flight", "37"),
        ("device.window", "periodic"),
    ] {
        let plan = &plans(&[set])[1];
        assert_eq!(digest(plan, 1, Some(&cache)), digest(plan, 1, None), "{set:?}");
    }
    assert_eq!(files(&cache).len(), 1);
}

#[test]
fn a_request_log_is_a_trace_that_says_what_it_rests_on() {
    let folder = folder("log_as_trace");
    let logged =
        finish(&plans(&[("measure.log_requests", "true"), ("workload.requests", "500")])[0], 1, None);
    let path = folder.join("requests.parquet");
    fs::create_dir_all(&folder).unwrap();
    fs::write(&path, logged.requests.unwrap()).unwrap();
    let source =
        format!("{{ policy = \"trace\", path = {:?}, reorder = \"1s\" }}", path.display().to_string());
    let outcome = finish(&plans(&[("workload.source", &source)])[0], 1, None).outcome;
    fs::remove_dir_all(folder).unwrap();
    assert_eq!((outcome.summary.requests, outcome.basis), (500, Basis::Synthetic), "{:?}", outcome.notes);
}

#[test]
fn a_run_that_ends_in_its_warm_up_counts_nothing() {
    let plan = &plans(&[("workload.warm_up", "1h")])[0];
    let outcome = finish(plan, 1, None).outcome;
    let counted = ["host_bytes_written", "programmed_bytes", "erases"];
    assert_eq!(outcome.summary.requests, 0);
    assert!(counted.iter().all(|name| outcome.device[*name] == 0), "{}", outcome.device);
}

#[test]
fn a_fresh_device_needs_no_cache() {
    let cache = folder("fresh");
    let plan = &plans(&[("device.precondition.pattern", "none")])[0];
    digest(plan, 1, Some(&cache));
    assert!(!cache.exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_only_a_note() {
    let file = folder("cache_is_a_file");
    fs::write(&file, "in the way").unwrap();
    let plan = &plans(&[])[0];
    assert_eq!(digest(plan, 1, Some(&file)), digest(plan, 1, None));
}

#[test]
fn progress_moves_forward_and_can_stop_the_run() {
    let plan = &plans(&[])[0];
    let mut seen: Vec<(&str, f64)> = Vec::new();
    run(plan, 1, None, &mut |phase, fraction| {
        seen.push((phase, fraction));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(seen.iter().any(|(phase, _)| *phase == "precondition"));
    assert!(seen.iter().any(|(phase, _)| *phase == "replay"));
    for pair in seen.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 <= pair[1].1, "{pair:?}");
    }
    for stop_in in ["precondition", "replay"] {
        let stopped = run(plan, 1, None, &mut |phase, _| match phase == stop_in {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert_eq!(stopped.err(), Some(Error::Interrupted), "{stop_in}");
    }
}

#[test]
fn the_probe_of_a_device_that_is_predicted_can_be_stopped() {
    let plan = &plans(&[("device.logical_capacity", "32MiB"), ("stack.scheduler", "pas")])[0];
    let mut fractions = Vec::new();
    let stopped = run(plan, 1, None, &mut |phase, fraction| {
        if phase != "probe" {
            return ControlFlow::Continue(());
        }
        fractions.push(fraction);
        if fractions.len() < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(stopped.err(), Some(Error::Interrupted));
    assert!(fractions.len() == 4 && fractions.is_sorted(), "{fractions:?}");
}

#[test]
fn a_backlog_that_is_left_at_the_end_can_be_stopped() {
    // All of the requests wait for the scheduler as good as at once.
    let plan = &plans(&[("stack.scheduler", "fair"), ("workload.source.arrivals.iops", "1000000")])[0];
    let mut told = 0;
    let stopped = run(plan, 1, None, &mut |phase, fraction| {
        told += u32::from(phase == "replay" && fraction == 1.0);
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(stopped.err(), Some(Error::Interrupted));
}

#[test]
fn a_run_in_which_nothing_ends_for_long_can_be_stopped_and_says_so() {
    // What an hour's share leaves waits for the next hour.
    let held = r#"{ policy = "static-cap", rate = "1KB/s", period = "1h" }"#;
    let closed = DOCUMENT
        .replace("arrivals = { policy = \"poisson\", iops = 2000 }", "")
        .replace("[workload.source]", "pacing = { policy = \"closed\", depth = 8 }\n[workload.source]");
    let sets = [("device.throttle", held), ("measure.series_window", "\"2h\"")];
    for document in [closed.as_str(), DOCUMENT] {
        let sets: Vec<_> = sets.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let plan = &resolve(document, "test", &sets, None).unwrap()[0];
        let (mut at, mut times) = (0.0, 0);
        let stopped = run(plan, 1, None, &mut |phase, fraction| {
            times = if phase == "replay" && fraction == at { times + 1 } else { 0 };
            at = fraction;
            if times == 36 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let Err(Error::Broken(why)) = stopped else { panic!("{:?}", stopped.err()) };
        assert!(why.starts_with("interrupted, when no request had ended for 3."), "{why}");
    }
}

#[test]
fn a_result_has_the_promised_shape() {
    let plan = &plans(&[("measure.log_requests", "true")])[0];
    let finished = finish(plan, 1, None);
    let result = serde_json::to_value(&finished.outcome).unwrap();
    for key in [
        "name",
        "seed",
        "digest",
        "requests",
        "simulated_s",
        "wall_s",
        "waf",
        "erases",
        "gc_blocked_fraction",
        "read",
        "write",
        "small_read",
        "blame_ns",
        "version",
        "config",
        "device",
        "workload",
        "basis",
    ] {
        assert!(!result[key].is_null(), "{key}");
    }
    assert_eq!((&result["requests"], &result["basis"]), (&json!(20000), &json!("synthetic")));
    assert_eq!(result["config"]["seed"], json!(1));
    let blame: u64 = result["blame_ns"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
    let log = SerializedFileReader::new(Bytes::from(finished.requests.unwrap())).unwrap();
    let rows = log.get_row_iter(None).unwrap().map(Result::unwrap);
    let latency = |row: Row| row.get_column_iter().find(|(name, _)| *name == "latency_ns").unwrap().1.clone();
    let latencies: Vec<u64> = rows
        .map(|row| match latency(row) {
            Field::ULong(ns) => ns,
            other => panic!("latencies are whole numbers, not {other}"),
        })
        .collect();
    assert_eq!((latencies.len(), latencies.iter().sum::<u64>()), (20000, blame));
    assert!(finished.series.iter().all(|(_, column)| column.len() == finished.series[0].1.len()));
    assert!(finish(&plans(&[])[0], 1, None).requests.is_none());
}

#[test]
fn seeds_are_pooled_and_strangers_are_not() {
    let all = plans(&[]);
    let text = |plan, seed| serde_json::to_string(&finish(plan, seed, None).outcome).unwrap();
    let (one, two) = (text(&all[0], 1), text(&all[0], 2));
    let pool = serde_json::to_value(merge(&[one.clone(), two.clone()]).unwrap()).unwrap();
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let sum = |key: &str| parse(&one)[key].as_u64().unwrap() + parse(&two)[key].as_u64().unwrap();
    for key in ["requests", "erases"] {
        assert_eq!(pool[key], json!(sum(key)), "{key}");
    }
    assert_eq!(pool["workload"]["read"], json!(40000));
    let ratio = pool["device"]["programmed_bytes"].as_f64().unwrap()
        / pool["device"]["host_bytes_written"].as_f64().unwrap();
    assert_eq!(pool["waf"], json!(ratio));

    let stranger = text(&all[1], 1);
    assert!(merge(&[one, stranger]).unwrap_err().to_string().contains("differ in more than their seed"));
    assert_eq!(merge(&[]).unwrap_err(), Error::Input("there are no runs to pool".into()));
    assert!(merge(&["{}".into()]).unwrap_err().to_string().starts_with("not a run with its detail: "));
}

#[test]
fn a_saved_result_can_be_asked_who_owns_its_tail() {
    let result = json!({ "runs": [finish(&plans(&[])[0], 1, None).outcome] }).to_string();
    let found = explain(&result, "fifo", "read", "p99").unwrap();
    assert!(found.count > 0);
    assert!((found.causes.iter().map(|cause| cause.share).sum::<f64>() - 1.0).abs() < 1e-9);
    for (result, run, class, above, expected) in [
        (result.as_str(), "lifo", "read", "p99", "the result has no run \"lifo\"; it has fifo"),
        (&result, "fifo", "raed", "p99", "unknown class \"raed\""),
        (&result, "fifo", "read", "p100", "\"p100\" is not a percentile"),
        ("{}", "fifo", "read", "p99", "not a result: it has no runs"),
        ("[", "fifo", "read", "p99", "not a result: EOF"),
        ("{\"runs\": [{\"name\": \"fifo\"}]}", "fifo", "read", "p99", "not a result: missing field"),
    ] {
        let error = explain(result, run, class, above).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
