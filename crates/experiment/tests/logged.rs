//! Predictions scored on a log of latencies, and what the log itself says.

use std::ops::ControlFlow;

use flashkeel_experiment::{log_options, predict_log};

#[test]
fn what_requests_took_is_told_of_the_whole_log() {
    let path = std::env::temp_dir().join(format!("flashkeel-log-{}.csv", std::process::id()));
    let line = |index: u64| {
        let operation = if index % 4 == 3 { "write" } else { "read" };
        let latency_us = if index.is_multiple_of(100) { 2000 } else { 101 + index % 3 };
        format!("{},{operation},{},8,{latency_us}\n", index * 1000 + index % 7, index * 8)
    };
    let lines: String = (0..8000).map(line).collect();
    std::fs::write(&path, format!("submitted_us,operation,lba,sectors,latency_us\n{lines}")).unwrap();
    let options = log_options(None, None, None).unwrap();
    let found = predict_log(&path, &options, None, None, &mut |_, _| ControlFlow::Continue(())).unwrap();
    std::fs::remove_file(path).unwrap();
    let (read, write) = (&found.read, &found.write);
    assert_eq!((read.latency.count, read.slow, write.latency.count, write.slow), (6000, 80, 2000, 0));
    assert_eq!(read.slow + write.slow, found.scored.slow + found.scored.slow_before);
    assert_eq!((read.latency.max_ns, write.latency.max_ns), (Some(2_000_000), Some(103_000)));
    // 8 s from the first to the last.
    assert!((read.latency.iops - 750.0).abs() < 1.0, "{}", read.latency.iops);
    assert!(log_options(None, None, Some("1")).unwrap_err().to_string().contains("--time-unit: "));
}
