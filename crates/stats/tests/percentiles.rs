//! Distributions against sorted samples, and what their intervals promise.

mod support;

use flashkeel_engine::{Operation, Span, Stream};
use flashkeel_stats::{Distribution, HISTOGRAM_PRECISION, Percentile};
use proptest::prelude::*;
use support::{Sample, read, summarise};

fn check_against_sort(distribution: &Distribution, mut latencies: Vec<u64>) {
    latencies.sort_unstable();
    let count = latencies.len();
    assert_eq!(distribution.count, count as u64);
    assert_eq!(distribution.max_ns, latencies.last().copied());
    let mean = latencies.iter().map(|&ns| ns as f64).sum::<f64>() / count as f64;
    assert!((distribution.mean_ns.unwrap() / mean - 1.0).abs() < 1e-12);
    for percentile in Percentile::all() {
        let needed = (count as u64 * u64::from(percentile.parts_per_million())).div_ceil(1_000_000);
        let exact = latencies[needed as usize - 1];
        let got = distribution.percentile.get(percentile).unwrap();
        assert!(
            got >= exact && got as f64 <= exact as f64 * (1.0 + HISTOGRAM_PRECISION),
            "{got} for {exact}"
        );
        let beyond = latencies.iter().filter(|&&ns| ns > got).count() as u64;
        assert_eq!(*distribution.beyond.get(percentile), beyond);
        let [low, high] = distribution.ci95.get(percentile).map(Option::unwrap);
        assert!(low <= got && got <= high);
    }
}

proptest! {
    #[test]
    fn percentiles_match_a_sort(
        latencies in prop::collection::vec(
            prop_oneof![0u64..200, 50_000u64..60_000, 1_000_000u64..5_000_000_000, Just(91_000u64)], 1..2_000),
    ) {
        let samples: Vec<Sample> = latencies.iter().map(|&ns| read(ns)).collect();
        let summary = summarise(&samples, Span::from_secs(1));
        check_against_sort(&summary.small_read, latencies);
    }
}

#[test]
fn six_nines_match_a_sort() {
    let mut stream = Stream::new(3, "six nines");
    let latencies: Vec<u64> = (0..3_000_000).map(|_| stream.exponential(200_000.0) as u64).collect();
    let samples: Vec<Sample> = latencies.iter().map(|&ns| read(ns)).collect();
    let summary = summarise(&samples, Span::from_secs(1));
    let six_nines = Percentile::all().last().unwrap();
    assert!((1..=3).contains(summary.read.beyond.get(six_nines)));
    check_against_sort(&summary.read, latencies);
}

#[test]
fn equal_latencies_are_reported_exactly() {
    let summary = summarise(&vec![read(91_003); 1_000], Span::from_secs(2));
    assert!(summary.read.percentile.iter().all(|(_, &ns)| ns == Some(91_003)));
    assert_eq!(summary.read.mean_ns, Some(91_003.0));
    assert_eq!(summary.read.iops, 500.0);
    assert_eq!(summary.read.bytes, 4_096_000);
}

#[test]
fn without_requests_counts_are_zero_and_latencies_none() {
    let summary = summarise(&[], Span::ZERO);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(summary.requests, 0);
    assert_eq!(summary.gc_blocked_fraction, 0.0);
    assert_eq!(json["read"]["count"], 0);
    assert_eq!(json["read"]["iops"], 0.0);
    assert_eq!(json["read"]["mean_ns"], serde_json::Value::Null);
    assert_eq!(json["read"]["percentile"]["99.900000"], serde_json::Value::Null);
    assert_eq!(json["read"]["beyond"]["99.900000"], 0);
    assert!(json.get("trim").is_none());
}

#[test]
fn requests_are_classed_by_operation_and_size() {
    let mut samples = Vec::new();
    for operation in [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush] {
        // 4 KiB, one sector more, 64 KiB, one sector more, 256 KiB, one sector more.
        for sectors in [8, 9, 128, 129, 512, 513] {
            samples.push(Sample { operation, sectors, ..read(1_000) });
        }
    }
    let summary = summarise(&samples, Span::from_secs(1));
    let counts = [
        summary.read.count,
        summary.write.count,
        summary.small_read.count,
        summary.trim.unwrap().count,
        summary.flush.unwrap().count,
    ];
    assert_eq!(counts, [6, 6, 3, 6, 6]);
    let reads: Vec<_> = summary
        .by_size
        .iter()
        .filter(|sized| sized.operation == "read")
        .map(|sized| (sized.max_bytes, sized.distribution.count))
        .collect();
    let expected =
        [(Some(4 << 10), 1), (Some(16 << 10), 1), (Some(64 << 10), 1), (Some(256 << 10), 2), (None, 1)];
    assert_eq!(reads, expected);
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    let mut stream = Stream::new(11, "coverage");
    let mean = 1e6;
    let (trials, count) = (400, 3_000);
    for ppm in [500_000, 990_000, 995_000] {
        let percentile = Percentile::all().find(|p| p.parts_per_million() == ppm).unwrap();
        let truth = -mean * (1.0 - f64::from(ppm) / 1e6).ln();
        let covered = (0..trials).filter(|_| {
            let samples: Vec<Sample> = (0..count).map(|_| read(stream.exponential(mean) as u64)).collect();
            let summary = summarise(&samples, Span::from_secs(1));
            assert!(*summary.read.ci95_bounded.get(percentile));
            let [low, high] = summary.read.ci95.get(percentile).map(|ns| ns.unwrap() as f64);
            low <= truth && truth <= high
        });
        let share = covered.count() as f64 / f64::from(trials);
        // Four standard deviations of 400 trials at 95 % are 4.4 %.
        assert!((0.91..=0.995).contains(&share), "p{ppm}: covered {share}");
    }
}

#[test]
fn an_end_that_cannot_be_bounded_says_so() {
    let samples: Vec<Sample> = (1..=1_000).map(|n| read(n * 1_000)).collect();
    let summary = summarise(&samples, Span::from_secs(1));
    for (percentile, bounded) in summary.read.ci95_bounded.iter() {
        assert_eq!(*bounded, percentile.parts_per_million() <= 995_000, "{}", percentile.key());
        if !bounded {
            assert_eq!(summary.read.ci95.get(percentile)[1], Some(1_000_000));
        }
    }
}
