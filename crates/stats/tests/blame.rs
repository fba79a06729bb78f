//! The blame table: sums, the tail's owners, and both from a saved result.

mod support;

use flashkeel_engine::{Cause, Operation, Span, Stream, Time};
use flashkeel_stats::{Class, Summary, parse_percentile};
use support::{Sample, read, summarise};

/// 990 fast reads, 10 slow ones behind an erase, and as many writes.
fn mixed() -> Vec<Sample> {
    let mut samples = Vec::new();
    for n in 0..990 {
        samples.push(read(60_000 + n));
    }
    for n in 0..10 {
        let owners = vec![(Cause::OwnFlash, 60_000), (Cause::BehindErase, 3_000_000 + n * 100_000)];
        samples.push(Sample { owners, ..read(0) });
    }
    for n in 0..1_000 {
        let owners = vec![(Cause::Aggregation, 1_000 + n), (Cause::OwnFlash, 500_000)];
        samples.push(Sample { operation: Operation::Write, sectors: 256, owners, ..read(0) });
    }
    samples
}

#[test]
fn totals_are_sums_over_all_requests() {
    let samples = mixed();
    let summary = summarise(&samples, Span::from_secs(1));
    for &cause in Cause::ALL {
        let owned = samples.iter().flat_map(|sample| &sample.owners).filter(|(owner, _)| *owner == cause);
        assert_eq!(summary.blame_ns[cause], owned.map(|(_, ns)| ns).sum::<u64>(), "{}", cause.label());
    }
    assert_eq!(summary.blame_ns.total(), samples.iter().map(Sample::latency_ns).sum::<u64>());
    assert_eq!(summary.gc_blocked, 10);
    assert_eq!(summary.gc_blocked_fraction, 0.005);
}

#[test]
fn the_tail_is_explained_by_its_owners() {
    let summary = summarise(&mixed(), Span::from_secs(1));
    let tail = summary.explain(Class::SmallRead, 99.0).unwrap();
    assert_eq!((tail.class_count, tail.count), (1_000, 10));
    let threshold = tail.threshold_ns.unwrap();
    assert!(threshold <= 3_060_000 && threshold > 3_000_000, "{threshold}");
    assert_eq!(tail.mean_ns, Some(3_510_000.0));
    let owners: Vec<_> = tail.causes.iter().map(|c| (c.cause, c.total_ns, c.requests)).collect();
    assert_eq!(owners, [("behind_erase", 34_500_000, 10), ("own_flash", 600_000, 10)]);
    assert!((tail.causes.iter().map(|cause| cause.share).sum::<f64>() - 1.0).abs() < 1e-12);

    let all = summary.explain(Class::Read, 0.0).unwrap();
    assert_eq!(all.count, 1_000);
    assert_eq!(all.causes[0].cause, "own_flash");
    assert_eq!(all.causes[1].requests, 10);

    let writes = summary.explain(Class::Write, 0.0).unwrap();
    assert_eq!(writes.causes[1].requests, 1_000);
    assert_eq!(summary.explain(Class::Flush, 50.0).unwrap().count, 0);
}

#[test]
fn what_is_explained_is_near_what_was_asked() {
    let mut stream = Stream::new(5, "explain");
    let samples: Vec<Sample> =
        (0..200_000).map(|_| read(50_000 + stream.exponential(400_000.0) as u64)).collect();
    let summary = summarise(&samples, Span::from_secs(1));
    let mut sorted: Vec<u64> = samples.iter().map(Sample::latency_ns).collect();
    sorted.sort_unstable();
    for (percentile, asked) in [(50.0, 100_000u64), (99.0, 2_000), (99.9, 200), (99.99, 20)] {
        let explanation = summary.explain(Class::SmallRead, percentile).unwrap();
        let exact = sorted[sorted.len() - asked as usize];
        let threshold = explanation.threshold_ns.unwrap();
        assert!((threshold as f64 / exact as f64 - 1.0).abs() < 0.017, "p{percentile}: {threshold} {exact}");
        let above = sorted.iter().filter(|&&ns| ns >= threshold).count() as u64;
        assert_eq!(explanation.count, above);
    }
}

#[test]
fn a_saved_result_explains_the_same() {
    let summary = summarise(&mixed(), Span::from_secs(1));
    let saved = serde_json::to_string(&summary).unwrap();
    let loaded: Summary = serde_json::from_str(&saved).unwrap();
    assert!(serde_json::to_string(&loaded).unwrap() == saved);
    for class in Class::ALL {
        assert_eq!(loaded.explain(class, 99.9).unwrap(), summary.explain(class, 99.9).unwrap());
    }
}

#[test]
fn bad_questions_are_refused() {
    let summary = summarise(&mixed(), Span::from_secs(1));
    for percentile in [-1.0, 100.0, f64::NAN] {
        assert!(summary.explain(Class::Read, percentile).unwrap_err().contains("between 0 and 100"));
    }
    assert_eq!(parse_percentile("p99.9"), Ok(99.9));
    assert_eq!(parse_percentile("50"), Ok(50.0));
    for text in ["", "p", "pp9", "p100", "-3", "nan", "99,9"] {
        assert!(parse_percentile(text).unwrap_err().contains("p99.9"), "{text}");
    }
    assert!("reads".parse::<Class>().unwrap_err().contains("small_read"));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a ledger must sum to the latency")]
fn a_ledger_that_does_not_add_up_is_caught() {
    use flashkeel_engine::{Completion, Lba, Ledger, RequestId, Status, TenantId};
    use flashkeel_stats::Asked;
    let operation = Operation::Read;
    let (lba, arrived, tenant) = (Lba(0), Time::ZERO, TenantId(0));
    let asked = Asked { operation, lba, sectors: 8, asked_sectors: 8, arrived, tenant };
    let (status, ledger) = (Status::Ok, Ledger::ZERO);
    support::recorder().record(&asked, &Completion { id: RequestId(0), time: Time(10), status, ledger });
}
