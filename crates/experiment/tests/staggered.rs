//! Mirrors whose copies are kept from writing their buffers out at the same time.

use std::ops::ControlFlow;

use flashkeel_experiment::{resolve, run};
use serde_json::{Value, json};

/// Each read is asked of both copies at once, so that one is slow only where both copies are.
const DOCUMENT: &str = "\
[stack]
depth = 64
[[stack.devices]]
mirror.hedge = { policy = \"fixed\", after = \"0us\" }
[workload]
requests = 40000
warm_up = \"1s\"
[workload.source]
policy = \"synthetic\"
read_fraction = 0.7
block_sizes = [\"4KiB/100\"]
arrivals = { policy = \"poisson\", iops = 2000 }
";

/// The share of reads that take 4 times the median, and what was written again.
fn both_slow(drive: &str, read: &str, seed: u64) -> (f64, u64) {
    let devices = format!("[{{ ssd = {{ preset = \"{drive}\" }} }}, {{ ssd = {{ preset = \"{drive}\" }} }}]");
    let sets = [("devices", devices), ("read", format!("\"{read}\""))];
    let sets = sets.map(|(key, value)| (format!("stack.devices.0.mirror.{key}"), value));
    let plan = resolve(DOCUMENT, "staggered.toml", &sets, None).expect("a plan").remove(0);
    let outcome = run(&plan, seed, None, &mut |_, _| ControlFlow::Continue(())).expect("it runs").outcome;
    let summary = serde_json::to_value(&outcome.summary).expect("a summary");
    let number = |value: &Value| value.as_u64().expect("a number");
    let late = 4 * number(&summary["read"]["percentile"]["50.000000"]);
    let histograms = summary["detail"]["histograms"].as_array().expect("histograms");
    let reads = histograms.iter().filter(|one| one["operation"] == "read");
    let counts = reads.flat_map(|one| one["counts"].as_array().expect("counts"));
    let slow: u64 = counts.filter(|count| number(&count[0]) > late).map(|count| number(&count[1])).sum();
    let again = number(&outcome.stack.expect("a stack")["mirrors"]["0"]["rewritten_bytes"]);
    (slow as f64 / number(&summary["read"]["count"]) as f64, again)
}

#[test]
fn copies_that_are_kept_apart_are_seldom_slow_at_the_same_time() {
    for drive in ["ssd-a", "ssd-d"] {
        for seed in [1, 2] {
            let (together, none) = both_slow(drive, "predicted", seed);
            let (apart, again) = both_slow(drive, "staggered", seed);
            let found = json!({ "drive": drive, "seed": seed, "together": together, "apart": apart });
            assert!(none == 0 && again > 0, "{found}");
            assert!(apart < together / 3.0, "{found}");
            // Once apart, they stay so: a buffer for each copy, and not a hundredth of 50 MB.
            assert!(again < (2 * 248) << 10, "{again} of {found}");
        }
    }
}
