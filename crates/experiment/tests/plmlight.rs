//! The experiment plmlight, with drives and workloads small enough for a test.

use std::ops::ControlFlow;

use flashkeel_experiment::{resolve, run, show};
use serde_json::Value;

/// What is made smaller, in the document's own words.
const SMALL: [(&str, &str); 6] = [
    ("\"12GiB\"", "\"768MiB\""),
    ("blocks_per_plane = 512", "blocks_per_plane = 64"),
    ("pages_per_block = 64", "pages_per_block = 32"),
    ("capacity = \"1GiB\"", "capacity = \"128MiB\""),
    ("warm_up = \"500ms\"", "warm_up = \"100ms\""),
    ("requests = 150000", "requests = 4000"),
];

#[test]
fn every_run_serves_all_and_windows_are_kept() {
    let mut text = show("plmlight").expect("it is built in");
    for (large, small) in SMALL {
        assert!(text.contains(large), "{large}");
        text = text.replace(large, small);
    }
    text = text.replace("\"workload.requests\" = 60000", "\"workload.requests\" = 2000");
    let plans = resolve(&text, "plmlight.toml", &[], None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plans.len(), 12);
    for plan in &plans {
        let finished = run(plan, 1, None, &mut |_, _| ControlFlow::Continue(())).expect("it runs");
        let summary = &finished.outcome.summary;
        assert!(summary.failed_requests.is_empty() && summary.requests > 1000, "{}", plan.name);
        let stack = finished.outcome.stack.expect("a stack");
        let mirror = &stack["mirrors"]["0"];
        if plan.name.ends_with("-baseline") {
            assert_eq!(mirror["windows_begun"], 0);
            continue;
        }
        assert!(number(&mirror["windows_begun"]) >= 20, "{}", plan.name);
        // What is written at once, in III and IV, may need both copies.
        if plan.name.starts_with("I-") || plan.name.starts_with("II-") {
            assert_eq!(mirror["none_deterministic"], 0, "{}", plan.name);
        }
        assert!(number(&stack["nvms"]["0"]["bytes_written"]) > 0);
        let hosts = stack["coordinators"]["0"]["hosts"].as_array().expect("three hosts");
        let mut beyond = Vec::new();
        for host in hosts {
            let [asked, used, more, given] =
                ["asked", "used", "beyond", "given"].map(|key| number(&host[key]));
            assert_eq!(used + more, asked, "{}: {host}", plan.name);
            assert!(used <= given, "{}: {host}", plan.name);
            beyond.push(more as f64 / asked as f64);
        }
        if plan.name.ends_with("-prioritised") {
            assert!(beyond.is_sorted(), "{}: high before medium before low: {beyond:?}", plan.name);
        } else {
            let spread = beyond.iter().fold(0.0, |most: f64, &each| most.max((each - beyond[0]).abs()));
            assert!(spread < 0.1, "{}: all alike: {beyond:?}", plan.name);
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}
