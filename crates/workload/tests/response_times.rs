//! What requests took when a trace was recorded, in the traces that are made of it.

mod common;

use std::path::Path;

use common::*;
use flashkeel_engine::Span;
use flashkeel_workload::trace::{DeviceSpaces, TimeWindow};
use flashkeel_workload::{
    Beginnings, LatencyLogOptions, Trace, WriterName, Written, convert, merge, read_latencies,
};

/// Times and response times are of 100 ns.
const MSR: &str = "10,usr,0,Read,4096,4096,1500\n20,usr,0,Write,0,8192,900\n\
                   1000,usr,0,Read,8192,512,250\n1500,usr,0,Read,0,4096,77\n";
const COLUMNS: &str = "time_us,op,offset,bytes,completed_us\n1,R,4096,4096,151\n2,W,0,8192,92\n";
const SYSTOR: &str =
    "1455592561.000000000,0.000250000,R,2,8192,4096\n1455592561.000200000,0.001,W,2,0,4096\n";

fn to(trace: &Trace, format: &str, out: &Path) -> Written {
    convert(trace, WriterName::parse(format).unwrap(), out, &mut go_on).unwrap()
}

fn took_us(path: &Path) -> Vec<u64> {
    let log = read_latencies(path, &LatencyLogOptions::default(), &mut go_on).unwrap();
    log.requests.iter().map(|served| served.latency.0 / 1000).collect()
}

#[test]
fn a_slice_of_a_log_is_a_log() {
    let mut trace = Trace::new(file("log.csv", MSR));
    trace.window = Some(TimeWindow { from: Span(1000), to: Some(Span(140_000)) });
    for format in ["msr", "columns", "parquet"] {
        let out = trace.path.with_file_name(format!("slice.{format}"));
        let written = to(&trace, format, &out);
        assert_eq!((written.requests, written.response_times), (2, 2), "{format}");
        assert_eq!(took_us(&out), [90, 25], "{format}");
        // And again, from what was written.
        let again = out.with_extension("again");
        assert_eq!(to(&Trace::new(&out), "columns", &again).response_times, 2);
        assert_eq!(took_us(&again), [90, 25], "{format}");
    }
    for (text, took) in [(COLUMNS, [150, 90]), (SYSTOR, [250, 1000])] {
        let path = file("other.csv", text);
        let out = path.with_file_name("out.csv");
        to(&Trace::new(path), "columns", &out);
        assert_eq!(took_us(&out), took);
    }
}

#[test]
fn response_times_that_are_left_out_are_noted() {
    let path = file("log.csv", MSR);
    let out = path.with_file_name("out");
    let noted = |trace: &Trace, format: &str| to(trace, format, &out).notes.join("; ");
    let trace = Trace::new(&path);
    let found = noted(&trace, "mqsim");
    let expected = "response times of 4 requests are left out: mqsim has no place for them; msr, columns, \
                    parquet have";
    assert_eq!(found, expected);
    assert!(noted(&trace, "fio").contains("fio has no place for them"));
    let faster = Trace { intensity: 2.0, ..trace.clone() };
    let found = noted(&faster, "columns");
    assert!(found.ends_with("left out: they are those of the requests as they were recorded"), "{found}");
    assert_eq!(std::fs::read_to_string(&out).unwrap().lines().next(), Some("time_ns,operation,offset,bytes"));
    // What nobody measured is not missing.
    let unmeasured = Trace::new(file("a.csv", "10,usr,0,Read,4096,4096,0\n"));
    assert_eq!(to(&unmeasured, "columns", &out).notes, [""; 0]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "time_ns,operation,offset,bytes\n0,R,4096,4096\n");
}

#[test]
fn merged_traces_keep_them_if_all_have_them() {
    let paths = [file("a.csv", MSR), file("b.csv", COLUMNS), file("c.csv", "20,usr,0,Read,4096,4096,0\n")];
    let traces = paths.each_ref().map(Trace::new);
    let out = paths[0].with_file_name("merged.csv");
    let merged = |traces: &[Trace]| {
        let format = WriterName::parse("columns").unwrap();
        merge(traces, Beginnings::Together, DeviceSpaces::Separate, format, &out, &mut go_on).unwrap()
    };
    assert_eq!(merged(&traces[..2]).response_times, 6);
    assert_eq!(took_us(&out), [150, 150, 90, 90, 25, 7]);
    let written = merged(&traces);
    assert_eq!(written.response_times, 0);
    let expected = "response times of 6 requests are left out: not all of the traces have them";
    assert!(written.notes.iter().any(|note| note == expected), "{:?}", written.notes);
}

/// Once text that is no response time ended in a panic, and one that is missing became 0, which was taken for
/// what the request took.
#[test]
fn a_response_time_that_is_missing_stays_so() {
    for (at, wrong) in ["", "abc", "-5", "99999999999999999999"].into_iter().enumerate() {
        let text = format!("time_ns,op,offset,bytes,latency_ns\n0,R,0,4096,5000\n1000,R,4096,4096,{wrong}\n");
        let trace = Trace::new(file("gap.csv", &text));
        for format in ["columns", "parquet", "msr"] {
            let out = trace.path.with_file_name(format!("{at}.{format}"));
            let written = to(&trace, format, &out);
            assert_eq!((written.requests, written.response_times), (2, 1), "{wrong:?} {format}");
            let [note] = &written.notes[..] else { panic!("one note: {:?}", written.notes) };
            assert!(note.starts_with("1 reads and writes have no response time"), "{note}");
            if format != "msr" {
                let log = read_latencies(&out, &LatencyLogOptions::default(), &mut go_on);
                assert!(log.is_err(), "{format} says that it took no time");
                let again = to(&Trace::new(&out), "columns", &out.with_extension("again"));
                assert_eq!((again.requests, again.response_times), (2, 1), "{format}");
            }
        }
        let text = std::fs::read_to_string(trace.path.with_file_name(format!("{at}.columns"))).unwrap();
        assert!(text.ends_with("1000,R,4096,4096,\n"), "{text}");
    }
}
