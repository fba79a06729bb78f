//! Warm-up, errors, time series, the request log, and the settings.

mod support;

use std::sync::mpsc::sync_channel;

use flashkeel_engine::{Cause, Completion, Lba, Ledger, Operation, RequestId, Span, Status, TenantId, Time};
use flashkeel_stats::{Asked, Column, LogRows, MeasureConfig, Recorder, Series, Summary};
use support::{Sample, feed, feed_one, read};

fn column(columns: &[(String, Column)], name: &str) -> Column {
    columns.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

fn at_ms(ms: u64, latency_ns: u64) -> Sample {
    Sample { submitted: Time::ZERO + Span::from_ms(ms), ..read(latency_ns) }
}

#[test]
fn requests_submitted_during_the_warm_up_count_in_the_digest_only() {
    let run = |first_latency_ns| {
        let (out, rows) = sync_channel(8);
        let mut recorder = Recorder::new(&MeasureConfig::default(), Span::from_ms(10), &[]);
        recorder.log_to(out, u64::MAX, false);
        // The first is submitted before the end of the warm-up and completes after it.
        feed(&mut recorder, &[at_ms(9, first_latency_ns), at_ms(10, 1_000), at_ms(11, 1_000)]);
        (
            recorder.finish(Time::ZERO + Span::from_ms(30), &[]),
            rows.iter().map(|lot| lot.len()).sum::<usize>(),
        )
    };
    let ((fast, logged), (slow, _)) = (run(5_000_000), run(6_000_000));
    assert_eq!(fast.summary.requests, 2);
    assert_eq!(fast.summary.read.max_ns, Some(1_000));
    assert_eq!(fast.summary.blame_ns[Cause::OwnFlash], 2_000);
    assert_eq!(fast.summary.simulated_s, 0.020);
    assert_eq!((fast.summary.last_arrival_s, fast.summary.last_completion_s), (0.001, 0.001_001));
    let mut two = fast.summary.clone();
    two.merge(&slow.summary);
    assert_eq!((two.last_arrival_s, two.last_completion_s), (0.002, 0.002_002));
    assert_eq!(fast.summary.read.iops, 100.0);
    assert_eq!(logged, 2);
    assert_eq!(column(&fast.series.columns(), "start_ns"), Column::U64(vec![10_000_000]));
    assert_eq!(column(&fast.series.columns(), "reads"), Column::U64(vec![2]));
    assert_ne!(fast.summary.digest, slow.summary.digest);
}

#[test]
fn requests_that_end_in_an_error_are_counted_apart() {
    let mut recorder = support::recorder();
    feed_one(&mut recorder, RequestId(0), &read(1_000), Status::Ok);
    feed_one(&mut recorder, RequestId(1), &read(9_000), Status::Invalid);
    feed_one(&mut recorder, RequestId(2), &read(9_000), Status::Lost);
    feed_one(&mut recorder, RequestId(3), &read(9_000), Status::Lost);
    let summary = recorder.finish(Time(1), &[]).summary;
    assert_eq!((summary.requests, summary.invalid_requests, summary.lost_requests), (4, 1, 2));
    assert_eq!(summary.read.count, 1);
    assert_eq!(summary.blame_ns.total(), 1_000);

    let text = serde_json::to_string(&summary).unwrap();
    let mut pooled: Summary = serde_json::from_str(&text).unwrap();
    pooled.merge(&summary);
    assert_eq!((pooled.requests, pooled.invalid_requests, pooled.lost_requests), (8, 2, 4));
}

#[test]
fn a_read_is_small_by_what_was_asked_for() {
    // 64 KiB off the device's pages: aligned, it is 68 KiB long.
    let asked = Asked {
        operation: Operation::Read,
        lba: Lba(0),
        sectors: 136,
        asked_sectors: 128,
        arrived: Time::ZERO,
        tenant: TenantId(0),
    };
    let mut ledger = Ledger::ZERO;
    ledger.charge(Cause::OwnFlash, Span(1_000));
    let completion = Completion { id: RequestId(0), time: Time(1_000), status: Status::Ok, ledger };
    let mut recorder = support::recorder();
    recorder.record(&asked, &completion);
    let summary = recorder.finish(Time(1_000), &[]).summary;
    assert_eq!((summary.small_read.count, summary.read.count), (1, 1));
    assert_eq!(summary.read.bytes, 136 * 512, "bytes are what was read");
}

fn series_of(config: &MeasureConfig, samples: &[Sample], end: Time) -> Series {
    let mut recorder = Recorder::new(config, Span::ZERO, &["free_blocks", "queue_depth"]);
    for (id, sample) in (0..).map(RequestId).zip(samples) {
        while recorder.next_window_end() <= sample.completed() {
            let window_end = recorder.next_window_end();
            recorder.close_windows(window_end, &[window_end.0, 7]);
        }
        feed_one(&mut recorder, id, sample, Status::Ok);
    }
    recorder.finish(end, &[1, 2]).series
}

#[test]
fn a_window_holds_what_completed_in_it_and_the_gauges_at_its_end() {
    let ms = 1_000_000;
    let samples = [
        at_ms(0, 40 * ms),
        at_ms(0, 60 * ms),
        Sample { sectors: 256, ..at_ms(0, 100 * ms) },
        Sample { operation: Operation::Write, ..at_ms(0, 299 * ms) },
    ];
    let series = series_of(&MeasureConfig::default(), &samples, Time(330 * ms));
    let columns = series.columns();
    let u64s = |values: &[u64]| Column::U64(values.to_vec());
    assert_eq!(column(&columns, "start_ns"), u64s(&[0, 100 * ms, 200 * ms, 300 * ms]));
    assert_eq!(column(&columns, "reads"), u64s(&[2, 1, 0, 0]));
    assert_eq!(column(&columns, "small_reads"), u64s(&[2, 0, 0, 0]));
    assert_eq!(column(&columns, "read_bytes"), u64s(&[8_192, 131_072, 0, 0]));
    assert_eq!(column(&columns, "read_max_ns"), u64s(&[60 * ms, 100 * ms, 0, 0]));
    assert_eq!(column(&columns, "read_mean_ns"), Column::F64(vec![Some(5e7), Some(1e8), None, None]));
    assert_eq!(column(&columns, "writes"), u64s(&[0, 0, 1, 0]));
    assert_eq!(column(&columns, "free_blocks"), u64s(&[100 * ms, 200 * ms, 1, 1]));
    assert_eq!(column(&columns, "queue_depth"), u64s(&[7, 7, 2, 2]));
    assert!(columns.iter().all(|(_, column)| column.len() == series.len()));
}

#[test]
fn a_run_that_ends_with_a_window_has_no_empty_one_after_it() {
    let series = series_of(&MeasureConfig::default(), &[at_ms(0, 5)], Time(200_000_000));
    assert_eq!(series.len(), 2);
}

#[test]
fn a_request_that_completes_in_the_last_instant_has_a_window() {
    let series = series_of(&MeasureConfig::default(), &[at_ms(0, 200_000_000)], Time(200_000_000));
    assert_eq!(column(&series.columns(), "reads"), Column::U64(vec![0, 0, 1]));
}

#[test]
fn a_completion_closes_windows_that_the_caller_did_not() {
    let mut recorder = Recorder::new(&MeasureConfig::default(), Span::ZERO, &["free_blocks"]);
    recorder.close_windows(Time(100_000_000), &[9]);
    feed_one(&mut recorder, RequestId(0), &at_ms(0, 350_000_000), Status::Ok);
    let series = recorder.finish(Time(350_000_000), &[4]).series;
    assert_eq!(column(&series.columns(), "reads"), Column::U64(vec![0, 0, 0, 1]));
    assert_eq!(column(&series.columns(), "free_blocks"), Column::U64(vec![9, 9, 9, 4]));
}

#[test]
fn a_long_run_doubles_its_windows_and_loses_nothing() {
    let config = MeasureConfig { series_window: Span(1_000), ..MeasureConfig::default() };
    let samples: Vec<Sample> =
        (0..300_000).map(|n| Sample { submitted: Time(n * 1_000), ..read(n % 1_000) }).collect();
    let end = Time(300_000_000);
    let series = series_of(&config, &samples, end);
    assert_eq!(series.window(), Span(8_000));
    assert_eq!(series.len(), 300_000 / 8);
    let columns = series.columns();
    assert_eq!(column(&columns, "reads"), Column::U64(vec![8; 37_500]));
    assert_eq!(column(&columns, "start_ns"), Column::U64((0..37_500).map(|row| row * 8_000).collect()));
    let ends: Vec<u64> = (1..37_500).map(|row| row * 8_000).chain([1]).collect();
    assert_eq!(column(&columns, "free_blocks"), Column::U64(ends));
}

#[test]
fn a_window_that_the_clock_cannot_end_stays_open() {
    let near_the_end = Span(u64::MAX - 10);
    let config = MeasureConfig { series_window: Span(u64::MAX / 2), ..MeasureConfig::default() };
    let mut recorder = Recorder::new(&config, near_the_end, &[]);
    assert_eq!(recorder.next_window_end(), Time::MAX);
    let last = Sample { submitted: Time::ZERO + near_the_end, ..read(5) };
    feed(&mut recorder, &[last]);
    recorder.close_windows(Time::MAX, &[]);
    let series = recorder.finish(Time::MAX, &[]).series;
    assert_eq!(column(&series.columns(), "reads"), Column::U64(vec![1]));
}

/// The rows of a log of at most `max_rows`, in lots, and how many requests are missing in it.
fn logged(samples: &[Sample], max_rows: u64) -> (Vec<LogRows>, u64) {
    let (out, rows) = sync_channel(8);
    let mut recorder = Recorder::new(&MeasureConfig::default(), Span::ZERO, &[]);
    recorder.log_to(out, max_rows, false);
    feed(&mut recorder, samples);
    let measurement = recorder.finish(Time(5_000_000), &[]);
    assert_eq!(measurement.summary.requests, samples.len() as u64);
    (rows.iter().collect(), measurement.summary.requests_not_logged)
}

fn three() -> [Sample; 3] {
    let slow = Sample { owners: vec![(Cause::OwnFlash, 10), (Cause::BehindErase, 90)], ..at_ms(1, 0) };
    [read(50), slow, Sample { operation: Operation::Write, ..at_ms(2, 70) }]
}

#[test]
fn rows_of_several_tenants_say_whose_they_are() {
    let (out, rows) = sync_channel(8);
    let mut recorder = support::recorder();
    recorder.log_to(out, u64::MAX, true);
    for (id, tenant) in [1, 0, 300].map(TenantId).into_iter().enumerate() {
        let (operation, lba, arrived) = (Operation::Read, Lba(0), Time::ZERO);
        let asked = Asked { operation, lba, sectors: 8, asked_sectors: 8, arrived, tenant };
        let id = RequestId(id as u64);
        recorder.record(&asked, &Completion { id, time: arrived, status: Status::Ok, ledger: Ledger::ZERO });
    }
    recorder.finish(Time(1), &[]);
    let columns = rows.recv().expect("the last lot").into_columns();
    assert_eq!(column(&columns, "tenant"), Column::U64(vec![1, 0, 300]));
}

#[test]
fn the_log_has_a_row_for_each_request() {
    let (mut lots, not_logged) = logged(&three(), 3);
    assert_eq!((lots.len(), not_logged), (1, 0));
    let columns = lots.remove(0).into_columns();
    let indices = vec![0, 0, 1];
    let vocabulary = &["read", "write", "trim", "flush", "write_zeroes", "demote"];
    assert_eq!(column(&columns, "operation"), Column::Word { indices, vocabulary });
    assert_eq!(column(&columns, "lba"), Column::U64(vec![0, 8, 16]));
    assert_eq!(column(&columns, "submitted_ns"), Column::U64(vec![0, 1_000_000, 2_000_000]));
    assert_eq!(column(&columns, "latency_ns"), Column::U64(vec![50, 100, 70]));
    assert_eq!(column(&columns, "behind_erase_ns"), Column::U64(vec![0, 90, 0]));
    // Causes that none of them has met have no column.
    let causes: Vec<_> = columns[7..].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(causes, ["own_flash_ns", "behind_erase_ns"]);
}

#[test]
fn a_full_log_stops_and_counts() {
    let (lots, not_logged) = logged(&three(), 2);
    assert_eq!((lots[0].len(), not_logged), (2, 1));
}

#[test]
fn a_log_comes_in_lots_and_its_columns_stay() {
    let most = LogRows::MOST;
    let mut samples = vec![read(1); 2 * most];
    samples[most + 3].owners = vec![(Cause::BehindErase, 7)];
    let (lots, _) = logged(&samples, u64::MAX);
    assert_eq!(lots.iter().map(LogRows::len).collect::<Vec<_>>(), [most, most, 0]);
    let columns: Vec<_> = lots.into_iter().map(LogRows::into_columns).collect();
    assert_eq!(columns.iter().map(Vec::len).collect::<Vec<_>>(), [8, 9, 9]);
    let mut waits = vec![0; most];
    waits[3] = 7;
    assert_eq!(column(&columns[1], "behind_erase_ns"), Column::U64(waits));
}

#[test]
fn settings_are_checked() {
    let parse = |json| serde_json::from_str::<MeasureConfig>(json).map_err(|error| error.to_string());
    assert_eq!(parse("{}").unwrap(), MeasureConfig::default());
    assert_eq!(parse(r#"{"series_window": "1s"}"#).unwrap().series_window, Span::from_secs(1));
    assert!(parse(r#"{"series_window": "0s"}"#).unwrap_err().contains("longer than 0"));
    assert!(parse(r#"{"windows": "1s"}"#).unwrap_err().contains("unknown field `windows`"));
    assert!(parse(r#"{"series_window": 100}"#).unwrap_err().contains("expected a duration such as"));
}
