//! Real traces, where they are at hand: what is known of them must come out.

mod common;

use std::path::PathBuf;

use common::{info, replay};
use flashkeel_workload::trace::Fold;
use flashkeel_workload::{Trace, TraceInfo};

/// A trace from the folder `FLASHKEEL_TRACES`.
fn trace(name: &str) -> Option<Trace> {
    let path = std::env::var_os("FLASHKEEL_TRACES").map(|folder| PathBuf::from(folder).join(name));
    if let Some(path) = path.filter(|path| path.exists()) {
        return Some(Trace::new(path));
    }
    println!("skipped: {name} is not in FLASHKEEL_TRACES");
    None
}

/// Checks format, requests and reads, and that a replay delivers each request.
fn check(name: &str, format: &str, requests: u64, reads: u64, devices: usize) -> Option<TraceInfo> {
    let mut trace = trace(name)?;
    let info = info(&trace).unwrap();
    assert_eq!(info.format.as_str(), format, "{name}");
    assert_eq!((info.requests, info.reads), (requests, reads), "{name}");
    assert_eq!(info.devices.len(), devices, "{name}");
    trace.fold = Fold::Wrap;
    let (arrivals, counts) = replay(trace).unwrap();
    assert_eq!((arrivals.len() as u64, counts.reads), (requests, reads), "{name}");
    assert_eq!(arrivals.last().unwrap().time.0, info.span_ns, "{name}");
    Some(info)
}

#[test]
fn cloudphysics_vm() {
    if let Some(info) = check("cloudphysics_vm.vscsi.gz", "vscsi", 113_872, 46_974, 1) {
        assert!((info.span_ns as f64 / 7.2e12 - 1.0).abs() < 0.01, "two hours");
        assert_eq!(info.max_address_bytes, 33_584_938_496);
    }
}

#[test]
fn msps_dtrs_slice() {
    if let Some(info) = check("msps_dtrs_slice.ssdsim.gz", "ssdsim", 127_043, 113_123, 1) {
        assert_eq!(info.span_ns, 299_999_516_000, "300 s, at a tick of 1 µs");
        assert!(info.notes[0].contains("1us"));
    }
}

#[test]
fn financial1_head() {
    if let Some(info) = check("financial1_head.ssdsim.gz", "ssdsim", 10_000, 4077, 22) {
        assert_eq!(info.span_ns, 259_601_203_125, "at a tick of 1 ns");
        assert!(info.notes[0].contains("1ns"));
    }
}

#[test]
fn tpcc_and_websearch() {
    check("tpcc_small.mqsim.gz", "mqsim", 6_999, 4381, 16);
    check("websearch_small.mqsim.gz", "mqsim", 24_783, 24_779, 6);
}

#[test]
fn java_on_nvme() {
    if let Some(info) = check("java_nvme.blkparse.txt.gz", "blkparse", 1_695, 1_695, 1) {
        assert_eq!(info.devices[0].name, "259,2");
    }
}

#[test]
fn blktrace_binary() {
    if let Some(info) = check("sample.blktrace.0.gz", "blktrace", 963, 963, 1) {
        assert_eq!(info.devices[0].name, "259,0");
        assert_eq!(info.not_io, 6_743 - 963);
    }
}

#[test]
fn files_that_are_no_request_traces_are_refused() {
    for (name, reason) in [("cloudphysics_write_demand_30min.csv.gz", "no known trace format")] {
        if let Some(trace) = trace(name) {
            let error = info(&trace).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
