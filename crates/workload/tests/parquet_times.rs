//! Times in Parquet files: what text may have, and what types say.

mod common;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use common::tables::{Cells, table, table_of};
use common::*;
use flashkeel_engine::Span;
use flashkeel_workload::{LatencyLogOptions, Trace, WriterName, Written, convert, read_latencies};

/// What arrow-rs leaves beside a column `time` of durations in us.
const TIME_IN_US: &str = "/////3gAAAAQAAAAAAAKAAwACgAJAAQACgAAABAAAAAAAQQACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUABAADg\
    APAAQAAAAIABAAAAAcAAAADAAAAAAAARIYAAAAAAAAAAAABgAIAAYABgAAAAAAAgAEAAAAdGltZQAAAAA=";
const REST: &str = "REQUIRED INT64 offset; REQUIRED INT64 bytes; REQUIRED BYTE_ARRAY op (UTF8);";

/// A file of three requests whose times, and perhaps more, are these.
fn file_of(arrow: Option<&str>, columns: &str, cells: Vec<Cells<'_>>) -> PathBuf {
    let rest = [Cells::Whole(&[0, 4096, 8192]), Cells::Whole(&[4096; 3]), Cells::Words(&["R", "W", "R"])];
    let cells: Vec<Cells<'_>> = cells.into_iter().chain(rest).collect();
    table_of(arrow, &format!("{columns} {REST}"), &[&cells])
}

fn times(path: PathBuf) -> Vec<u64> {
    replay(Trace::new(path)).unwrap().0.iter().map(|arrival| arrival.time.0).collect()
}

#[test]
fn decimals_count_as_in_text() {
    // Seconds since 1970 as pandas makes them of microseconds.
    let seconds =
        [1_600_000_000_123_457.0 / 1e6, 1_600_000_000_123_958.0 / 1e6, 1_600_000_001_000_001.0 / 1e6];
    for (column, cells, expected) in [
        ("DOUBLE time_s", Cells::Double(&seconds), [0, 501_000, 876_544_000]),
        ("DOUBLE Timestamp_us", Cells::Double(&[0.25, 350.731, 2e6]), [0, 350_481, 1_999_999_750]),
        ("FLOAT ts_ms", Cells::Single(&[0.0, 0.1, 16.5]), [0, 100_000, 16_500_000]),
        ("DOUBLE time_ns", Cells::Double(&[0.0, 7.9, 8.0]), [0, 7, 8]),
        ("INT32 time_s", Cells::Narrow(&[0, 1, 3]), [0, 1_000_000_000, 3_000_000_000]),
        ("BYTE_ARRAY time_us (UTF8)", Cells::Words(&["1", "1.5", "20"]), [0, 500, 19_000]),
        (
            "BYTE_ARRAY time (UTF8)",
            Cells::Words(&["2024-03-01T12:00:00.25Z", "2024-03-01 12:00:01", "2024-03-01T13:00:01+01:00"]),
            [0, 750_000_000, 750_000_000],
        ),
    ] {
        assert_eq!(times(file_of(None, &format!("REQUIRED {column};"), vec![cells])), expected, "{column}");
    }
}

#[test]
fn what_is_no_time_names_the_row_and_the_column() {
    for (values, why) in [
        ([0.0, f64::NAN, 1.0], "row 2: column Time_s: \"NaN\" is not a whole number or one with decimals"),
        (
            [0.0, f64::INFINITY, 1.0],
            "row 2: column Time_s: \"inf\" is not a whole number or one with decimals",
        ),
        ([0.0, 0.5, -0.5], "row 3: column Time_s: \"-0.5\" is negative"),
        ([-1.0, 0.5, -0.5], "row 1: column Time_s: \"-1\" is negative"),
        ([0.0, 0.5, 2e10], "row 3: column Time_s: \"20000000000\" is too large for a time in nanoseconds"),
    ] {
        let path = file_of(None, "REQUIRED DOUBLE Time_s;", vec![Cells::Double(&values)]);
        assert_eq!(refusal(Trace::new(path)), format!("t.parquet: {why}"));
    }
    for (column, times, why) in [
        (
            "time (TIMESTAMP(NANOS,true))",
            [-3_599_999_595, 0, 0],
            "row 1: column time: -3599999595 is negative",
        ),
        (
            "time_s",
            [0, 1 << 40, 0],
            "row 2: column time_s: 1099511627776 is too large for a time in nanoseconds",
        ),
        ("time (TIME(MICROS,true))", [0, 0, 0], "it has to hold numbers, timestamps, durations or text"),
    ] {
        let path = file_of(None, &format!("REQUIRED INT64 {column};"), vec![Cells::Whole(&times)]);
        let message = refusal(Trace::new(path));
        assert!(message.ends_with(why), "{message}");
    }
    let words = Cells::Words(&["12", "13", "14"]);
    let message = refusal(Trace::new(file_of(None, "REQUIRED BYTE_ARRAY time (UTF8);", vec![words])));
    assert!(message.contains("row 1: column time: \"12\" is no time such as 2024-03-01"), "{message}");
}

#[test]
fn a_unit_is_set_where_neither_name_nor_type_says_it() {
    let in_ticks = |unit: Option<u64>, column: &str, cells: Cells<'_>| Trace {
        time_unit: unit.map(Span),
        ..Trace::new(file_of(None, &format!("REQUIRED {column};"), vec![cells]))
    };
    for (column, cells, expected) in [
        ("INT64 time", Cells::Whole(&[5, 7, 1005]), [0, 200, 100_000]),
        ("DOUBLE timestamp", Cells::Double(&[5.0, 7.25, 1005.5]), [0, 225, 100_050]),
        ("BYTE_ARRAY ts (UTF8)", Cells::Words(&["5", "7.25", "1005.5"]), [0, 225, 100_050]),
    ] {
        let trace = in_ticks(Some(100), column, cells);
        let found: Vec<u64> = replay(trace).unwrap().0.iter().map(|arrival| arrival.time.0).collect();
        assert_eq!(found, expected, "{column}");
    }
    let refused = |unit, column| refusal(in_ticks(unit, column, Cells::Whole(&[5, 7, 1005])));
    let by_text = refusal(Trace::new(file("t.csv", "time,op,offset,bytes\n5,R,0,4096\n")));
    let sentence = by_text.strip_prefix("t.csv:1: ").unwrap();
    assert_eq!(refused(None, "INT64 time"), format!("t.parquet: column time: {sentence}"));
    let key = "workload.source.time_unit: ";
    let message = refused(Some(1000), "INT64 time_us");
    assert_eq!(message, format!("{key}the column time_us says what its unit is; give no other"));
    assert!(refused(Some(1000), "INT64 time (TIMESTAMP(NANOS,true))").starts_with(key));
    assert!(refused(Some(0), "INT64 time").starts_with(key));
}

#[test]
fn durations_count_in_their_own_unit() {
    let cells = |values| vec![Cells::Whole(values)];
    let path = file_of(Some(TIME_IN_US), "OPTIONAL INT64 time;", vec![Cells::Some(&[1; 3], &[3, 4, 1003])]);
    let described = info(&Trace::new(&path)).unwrap();
    assert_eq!(described.notes, ["a whole one of time is 1us, as its type says"]);
    assert_eq!(times(path), [0, 1000, 1_000_000]);
    let message = refusal(Trace::new(file_of(Some(TIME_IN_US), "REQUIRED INT64 time;", cells(&[3, -4, 5]))));
    assert_eq!(message, "t.parquet: row 2: column time: -4 is negative");
    // A schema that is none says nothing.
    let message = refusal(Trace::new(file_of(Some("/////w=="), "REQUIRED INT64 time;", cells(&[3, 4, 5]))));
    assert!(message.starts_with("t.parquet: column time: unit is missing"), "{message}");
}

#[test]
fn a_type_says_more_than_a_name_and_a_name_with_a_unit_counts_first() {
    let columns = "REQUIRED INT64 time_us (TIMESTAMP(NANOS,true));";
    let path = file_of(None, columns, vec![Cells::Whole(&[3, 4, 1003])]);
    assert_eq!(info(&Trace::new(&path)).unwrap().notes, ["a whole one of time_us is 1ns, as its type says"]);
    assert_eq!(times(path), [0, 1, 1000]);
    let columns = "REQUIRED INT64 time; REQUIRED INT64 timestamp (TIMESTAMP_MILLIS); REQUIRED INT64 ts_us;";
    let three = || vec![Cells::Whole(&[0; 3]), Cells::Whole(&[0, 1, 2]), Cells::Whole(&[0, 5, 6])];
    assert_eq!(times(file_of(None, columns, three())), [0, 5000, 6000]);
    let columns = columns.replace("ts_us", "row");
    assert_eq!(times(file_of(None, &columns, three())), [0, 1_000_000, 2_000_000]);
    let columns = columns.replace("INT64 time;", "INT64 submitted (TIMESTAMP(MICROS,true));");
    let message = refusal(Trace::new(file_of(None, &columns, three())));
    assert_eq!(message, "t.parquet: the columns submitted and timestamp say the same");
}

fn to_columns(path: &Path) -> (Written, String) {
    let out = path.with_file_name("out.csv");
    let format = WriterName::parse("columns").unwrap();
    let written = convert(&Trace::new(path), format, &out, &mut |_| ControlFlow::Continue(())).unwrap();
    (written, std::fs::read_to_string(out).unwrap())
}

#[test]
fn what_requests_took_is_as_forgiving() {
    let took = "0,R,0,4096,150\n1000,W,4096,4096,250731\n2000,R,8192,4096,3000\n";
    let us = |cells| vec![Cells::Whole(&[1, 2, 3]), cells];
    for (column, cells) in [
        ("DOUBLE latency_us", Cells::Double(&[0.15, 250.731, 3.0])),
        ("FLOAT latency_ms", Cells::Single(&[0.000_15, 0.250_731, 0.003])),
        ("INT64 latency_ns", Cells::Whole(&[150, 250_731, 3000])),
        ("DOUBLE completed_us", Cells::Double(&[1.15, 252.731, 6.0])),
        ("INT64 completed (TIMESTAMP(NANOS,true))", Cells::Whole(&[1150, 252_731, 6000])),
        ("BYTE_ARRAY latency_us (UTF8)", Cells::Words(&["0.15", "250.731", "3"])),
    ] {
        let path = file_of(None, &format!("REQUIRED INT64 time_us; REQUIRED {column};"), us(cells));
        let (written, text) = to_columns(&path);
        assert_eq!(written.response_times, 3, "{column}");
        assert_eq!(text, format!("time_ns,operation,offset,bytes,latency_ns\n{took}"), "{column}");
        let log = read_latencies(&path, &LatencyLogOptions::default(), &mut go_on).unwrap();
        assert_eq!(log.requests.iter().map(|it| it.latency.0).collect::<Vec<_>>(), [150, 250_731, 3000]);
    }
    let refused = |column: &str, cells| {
        let path = file_of(None, &format!("REQUIRED INT64 time_us; REQUIRED {column};"), us(cells));
        let out = path.with_file_name("out.csv");
        let format = WriterName::parse("columns").unwrap();
        let error = convert(&Trace::new(&path), format, &out, &mut go_on).unwrap_err().to_string();
        let log = read_latencies(&path, &LatencyLogOptions::default(), &mut go_on).unwrap_err().to_string();
        // Who only replays does without.
        assert_eq!(replay(Trace::new(&path)).unwrap().0.len(), 3);
        (strip(&error, &path), strip(&log, &path))
    };
    let why = "t.parquet: row 2: column latency_s: \"NaN\" is not a whole number or one with decimals";
    let (error, log) = refused("DOUBLE latency_s", Cells::Double(&[0.0, f64::NAN, 0.0]));
    assert_eq!((error.as_str(), log.as_str()), (why, why));
    let why = "t.parquet: row 3: column completed_us: the completion is 3000 ns before its submission";
    let (error, log) = refused("INT64 completed_us", Cells::Whole(&[1, 2, 0]));
    assert_eq!((error.as_str(), log.as_str()), (why, why));
}

#[test]
fn what_requests_took_may_be_unknown() {
    let columns = "REQUIRED INT64 time_us; OPTIONAL INT64 latency_us;";
    let cells = vec![Cells::Whole(&[1, 2, 3]), Cells::Some(&[1, 0, 1], &[7, 9])];
    let (written, text) = to_columns(&file_of(None, columns, cells));
    assert_eq!(written.response_times, 2);
    assert!(text.ends_with("\n0,R,0,4096,7000\n1000,W,4096,4096,\n2000,R,8192,4096,9000\n"), "{text}");
    for (other, count, why) in [
        ("more", 0, "column completed: unit is missing"),
        ("latency_us", 3, "column completed: unit is missing"),
    ] {
        let columns = format!("REQUIRED INT64 time_us; REQUIRED INT64 completed; REQUIRED INT64 {other};");
        let cells = vec![Cells::Whole(&[1, 2, 3]), Cells::Whole(&[1, 2, 3]), Cells::Whole(&[1, 2, 3])];
        let (written, _) = to_columns(&file_of(None, &columns, cells));
        assert_eq!(written.response_times, count);
        let note = format!("what requests took is not read: {why}");
        assert!(written.notes.iter().any(|it| it.starts_with(&note)), "{:?}", written.notes);
    }
}

#[test]
fn logs_have_timestamps_and_durations_too() {
    let columns = "REQUIRED INT64 Submitted (TIMESTAMP(MICROS,true)); REQUIRED INT64 time;";
    let arrow = TIME_IN_US;
    let path = file_of(Some(arrow), columns, vec![Cells::Whole(&[1, 2, 3]), Cells::Whole(&[4, 4, 4])]);
    let message = refusal(Trace::new(path));
    assert_eq!(message, "t.parquet: the columns Submitted and time say the same");
    let columns =
        "REQUIRED INT64 Submitted (TIMESTAMP(MICROS,true)); REQUIRED INT64 completed (TIMESTAMP_MILLIS);";
    let path = file_of(None, columns, vec![Cells::Whole(&[1, 2, 3]), Cells::Whole(&[4, 5, 6])]);
    let log = read_latencies(&path, &LatencyLogOptions::default(), &mut go_on).unwrap();
    let told: Vec<_> = log.requests.iter().map(|it| (it.submitted.0, it.latency.0)).collect();
    assert_eq!(told, [(1000, 3_999_000), (2000, 4_998_000), (3000, 5_997_000)]);
}

#[test]
fn our_logs_of_requests_are_traces() {
    let columns = "REQUIRED INT64 lba; REQUIRED INT64 sectors; REQUIRED BYTE_ARRAY operation; \
                   REQUIRED INT64 submitted_ns; REQUIRED INT64 completed_ns; REQUIRED INT64 latency_ns;";
    let cells = [
        Cells::Whole(&[8, 16]),
        Cells::Whole(&[8, 16]),
        Cells::Words(&["read", "write"]),
        Cells::Whole(&[10, 30]),
        Cells::Whole(&[100, 200]),
        Cells::Whole(&[90, 170]),
    ];
    let (_, text) = to_columns(&table(columns, &[&cells]));
    assert!(text.ends_with("\n0,R,4096,4096,90\n20,W,8192,8192,170\n"), "{text}");
    let columns = columns.replace("INT64 latency_ns", "INT64 more");
    let far = [
        Cells::Whole(&[1 << 60, 16]),
        Cells::Whole(&[8, 16]),
        Cells::Words(&["read", "write"]),
        Cells::Whole(&[10, 30]),
        Cells::Whole(&[100, 200]),
        Cells::Whole(&[90, 170]),
    ];
    let message = refusal(Trace::new(table(&columns, &[&far])));
    assert_eq!(message, "t.parquet: row 1: column lba: 1152921504606846976 is beyond any 64-bit address");
}
