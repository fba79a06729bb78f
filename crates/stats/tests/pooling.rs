//! Results survive being saved, and pool into what one recorder would measure.

mod support;

use flashkeel_engine::{Cause, Operation, Span, Stream, Time};
use flashkeel_stats::{Class, Summary};
use proptest::prelude::*;
use support::{Sample, feed, recorder, summarise};

fn random_samples(seed: u64, count: u64) -> Vec<Sample> {
    let mut stream = Stream::new(seed, "pooling");
    let operations = [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush];
    (0..count)
        .map(|_| {
            let operation = operations[stream.below(4) as usize];
            let owners = (0..stream.between(1, 4))
                .map(|_| {
                    let cause = Cause::ALL[stream.below(Cause::COUNT as u64) as usize];
                    (cause, stream.exponential(200_000.0) as u64)
                })
                .collect();
            let sectors = if operation == Operation::Flush { 0 } else { 1 << stream.below(12) };
            Sample { operation, sectors, submitted: Time(stream.below(1_000_000_000)), owners }
        })
        .collect()
}

/// Everything in a summary but the digest, which depends on the order, and how long requests came
/// and were served, which are sums of a pool.
fn without_digest(summary: &Summary) -> serde_json::Value {
    let mut value = serde_json::to_value(summary).unwrap();
    for key in ["digest", "last_arrival_s", "last_completion_s"] {
        assert!(value.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    for key in ["last_arrival_ns", "last_completion_ns"] {
        assert!(value["detail"].as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn merging_equals_recording_both(seed in any::<u64>(), left in 0u64..400, right in 0u64..400) {
        let samples = random_samples(seed, left + right);
        let (a, b) = samples.split_at(left as usize);
        let mut pooled = summarise(a, Span::from_secs(2));
        let saved = serde_json::to_string(&summarise(b, Span::from_secs(3))).unwrap();
        pooled.merge(&serde_json::from_str(&saved).unwrap());
        let together = summarise(&samples, Span::from_secs(5));
        prop_assert_eq!(without_digest(&pooled), without_digest(&together));
    }
}

#[test]
fn latencies_that_sum_to_more_than_two_to_the_64_ns_keep_their_mean() {
    let ns = 200_000_000_000_000_000;
    let mut half = summarise(&vec![support::read(ns); 100], Span(ns));
    let saved = serde_json::to_string(&half).unwrap();
    half.merge(&serde_json::from_str(&saved).unwrap());
    let json = serde_json::to_value(&half).unwrap();
    assert_eq!((&json["read"]["count"], &json["read"]["mean_ns"]), (&200.into(), &(ns as f64).into()));
}

#[test]
fn a_summary_survives_flattening_into_a_run() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Run {
        name: String,
        #[serde(flatten)]
        summary: Summary,
    }
    let summary = summarise(&random_samples(1, 500), Span::from_secs(1));
    let saved = serde_json::to_string(&Run { name: "fifo".into(), summary }).unwrap();
    let loaded: Run = serde_json::from_str(&saved).unwrap();
    assert!(serde_json::to_string(&loaded).unwrap() == saved);
    let json: serde_json::Value = serde_json::from_str(&saved).unwrap();
    for key in ["digest", "requests", "simulated_s", "gc_blocked_fraction", "read", "write", "small_read"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["blame_ns"].as_object().unwrap().len(), Cause::COUNT);
    for key in ["count", "iops", "bytes", "mean_ns", "max_ns", "percentile", "beyond", "ci95"] {
        assert!(json["read"].get(key).is_some(), "{key}");
    }
    let keys: Vec<&str> =
        json["read"]["percentile"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.len(), 12);
    assert_eq!((keys[0], keys[8], keys[11]), ("50.000000", "99.995000", "99.999900"));
    assert_eq!(json["read"]["ci95"]["99.900000"].as_array().unwrap().len(), 2);
}

#[test]
fn a_damaged_result_is_refused() {
    let summary = summarise(&random_samples(1, 50), Span::from_secs(1));
    let saved = serde_json::to_string(&summary).unwrap();
    for (from, to, reason) in [
        ("\"detail\"", "\"details\"", "missing field `detail`"),
        ("\"own_flash\"", "\"own_flesh\"", "unknown cause \"own_flesh\""),
        ("\"digest\":\"", "\"digest\":\"x", "16 hex digits"),
        ("\"max_bytes\":4096,\"bytes\"", "\"max_bytes\":4097,\"bytes\"", "unknown histogram"),
    ] {
        let damaged = saved.replace(from, to);
        assert_ne!(damaged, saved, "{from}");
        let error = serde_json::from_str::<Summary>(&damaged).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn absurd_counts_in_a_result_do_not_panic() {
    let summary = summarise(&random_samples(1, 50), Span::from_secs(1));
    let mut json = serde_json::to_value(&summary).unwrap();
    for cell in json["detail"]["histograms"].as_array_mut().unwrap() {
        cell["counts"] = serde_json::json!([[5, u64::MAX], [u64::MAX, u64::MAX]]);
    }
    for row in json["detail"]["blame"].as_array_mut().unwrap() {
        row["count"] = u64::MAX.into();
        row["from_ns"] = u64::MAX.into();
        row["ns"]["own_flash"] = u64::MAX.into();
    }
    let mut loaded: Summary = serde_json::from_value(json).unwrap();
    let copy = loaded.clone();
    loaded.merge(&copy);
    assert_eq!(loaded.read.count, u64::MAX);
    assert_eq!(loaded.explain(Class::Read, 50.0).unwrap().count, u64::MAX);
}

#[test]
fn a_pooled_digest_depends_on_both_and_their_order() {
    let (a, b) =
        (summarise(&random_samples(1, 50), Span::ZERO), summarise(&random_samples(2, 50), Span::ZERO));
    let pool = |first: &Summary, second: &Summary| {
        let mut pooled = first.clone();
        pooled.merge(second);
        pooled.digest
    };
    assert_eq!(pool(&a, &b), pool(&a, &b));
    assert_ne!(pool(&a, &b), pool(&b, &a));
    assert_ne!(pool(&a, &b), a.digest);
}

#[test]
fn the_digest_is_the_same_in_every_version() {
    let mut recorder = recorder();
    feed(&mut recorder, &random_samples(7, 100));
    recorder.absorb(42);
    assert_eq!(recorder.finish(Time(1), &[]).summary.digest.to_string(), "ac1707cfebc8f057");
}

#[test]
fn the_digest_sees_order_time_and_counters() {
    let samples = random_samples(7, 100);
    let digest = |samples: &[Sample], counter| {
        let mut recorder = recorder();
        feed(&mut recorder, samples);
        recorder.absorb(counter);
        recorder.finish(Time(1), &[]).summary.digest
    };
    let reference = digest(&samples, 1);
    let mut late = samples.clone();
    late[50].submitted += Span(1);
    let mut swapped = samples.clone();
    swapped.swap(3, 4);
    assert_ne!(digest(&late, 1), reference);
    assert_ne!(digest(&swapped, 1), reference);
    assert_ne!(digest(&samples, 2), reference);
    assert_eq!(digest(&samples, 1), reference);
}
