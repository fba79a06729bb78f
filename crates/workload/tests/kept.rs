//! A trace that was read to lay out its devices is replayed from memory, as it would be read.

mod common;

use std::fmt::Write;

use common::*;
use flashkeel_engine::{Span, Stream};
use flashkeel_workload::trace::{DeviceSpaces, Fold, TimeWindow, ZeroLength};
use flashkeel_workload::{Arrival, Basis, Counts, SourceConfig, Trace, WorkloadConfig};

/// So many requests of any kind and length at any gap, lines between them that are none, and
/// some behind.
fn text(requests: u32) -> String {
    let (mut random, mut time_ns) = (Stream::new(1, "kept"), 1 << 60);
    let mut text = String::from("time_ns,operation,offset,bytes\n");
    for _ in 0..requests {
        let mut any = |bits: u64| random.word() >> (64 - random.between(1, bits));
        time_ns += any(30);
        let word = ["R", "W", "W", "D", "Z"][any(3) as usize % 5];
        let bytes = any(21).saturating_sub(1);
        writeln!(text, "{time_ns},{word},{},{bytes}", any(39)).unwrap();
        if bytes == 5 {
            text.push('\n');
        }
    }
    text + "\n\n"
}

/// What a replay delivers, and all that it says of its input.
fn replayed(config: &WorkloadConfig, device_sectors: u64) -> (Vec<Arrival>, Counts, Basis, Vec<String>) {
    let mut source = open(config, device_sectors).unwrap();
    let arrivals = drain(&mut *source).unwrap();
    (arrivals, source.counts().clone(), source.basis(), source.notes().to_vec())
}

#[test]
fn what_was_kept_is_what_would_be_read() {
    let path = file("mine.csv", text(3_000));
    let base = Trace { zero_length: ZeroLength::Skip, ..Trace::new(&path) };
    let window = Some(TimeWindow { from: Span::from_ms(20), to: Some(Span::from_ms(400)) });
    let half = DEVICE_SECTORS / 4;
    let traces = [
        base.clone(),
        Trace { repeat: 3, ..base.clone() },
        Trace { intensity: 3.0, write_magnification: 2, ..base.clone() },
        Trace { window, fold: Fold::Wrap, ..base.clone() },
    ];
    for (trace, requests, duration) in traces.iter().flat_map(|trace| {
        let ends = [
            (None, None),
            (Some(1), None),
            (Some(1_024), None),
            (Some(4_000), None),
            (None, Some(7)),
            (None, Some(150)),
        ];
        ends.map(|(requests, ms)| (trace, requests, ms.map(Span::from_ms)))
    }) {
        let of = |devices| {
            let source = SourceConfig::Trace(Trace { devices, ..trace.clone() });
            let config = WorkloadConfig { requests, duration, ..workload(source) };
            replayed(&config, if trace.fold == Fold::Wrap { half } else { DEVICE_SECTORS })
        };
        // Where devices are merged nothing is read before it is replayed.
        let (kept, read) = (of(DeviceSpaces::Separate), of(DeviceSpaces::Merge));
        assert!(kept.0 == read.0, "{trace:?} {requests:?} {duration:?}");
        assert_eq!(
            (&kept.1, &kept.2, &kept.3),
            (&read.1, &read.2, &read.3),
            "{trace:?} {requests:?} {duration:?}"
        );
        assert!(!kept.0.is_empty());
    }
}

#[test]
fn what_was_kept_is_not_read_again() {
    let text = text(20_000);
    let path = file("mine.csv", &text);
    let trace = Trace { zero_length: ZeroLength::Skip, ..Trace::new(&path) };
    let read = replay(Trace { devices: DeviceSpaces::Merge, ..trace.clone() }).unwrap();
    let mut whole = open(&workload(SourceConfig::Trace(trace.clone())), DEVICE_SECTORS).unwrap();
    // Half of its lines go, far behind what is read to tell its format.
    let half = text[..text.len() / 2].rfind('\n').expect("there are lines") + 1;
    std::fs::File::options().write(true).open(&path).unwrap().set_len(half as u64).unwrap();
    let arrivals = drain(&mut *whole).unwrap();
    assert!(arrivals == read.0 && *whole.counts() == read.1);
    // The file is another from now on.
    let (left, _) = replay(trace).unwrap();
    assert!(left.len() < arrivals.len() && left == arrivals[..left.len()]);
}

#[test]
fn a_flush_has_no_address_on_any_device() {
    let of = |device: u32, time_ns, action, bytes| {
        let mut record = blktrace(time_ns, action, 0, bytes, b"");
        record[36..40].copy_from_slice(&device.to_le_bytes());
        record
    };
    let (write, flush_only) = (0x0012_0001, 0x0014_0001);
    let records = [of(1, 1, write, 4096), of(2, 2, write, 4096), of(2, 3, flush_only, 0)].concat();
    let trace = unaligned(file("two.bin", records));
    assert_eq!(replay(trace.clone()).unwrap().0[2], flush(2));
    // Nor where addresses are compacted, or folded.
    for fold in [Fold::Compact, Fold::Wrap] {
        let source = SourceConfig::Trace(Trace { fold, ..trace.clone() });
        assert_eq!(replayed(&workload(source), 16).0[2], flush(2));
    }
}

/// A trim of which nothing was left counted as delivered where the layout was made: what came in
/// its place was cut to what had been laid out, or to nothing.
#[test]
fn what_is_delivered_in_the_place_of_trims_is_laid_out_whole() {
    let text = "time_ns,operation,offset,bytes\n0,W,0,4096\n10,T,1099511627776,1048576\n\
                20,T,1100000000000,4096\n30,R,499999997952,1048576\n40,R,699999997952,4194304\n";
    let trace = Trace { fold: Fold::Compact, ..Trace::new(file("t.csv", text)) };
    let mut workload = workload(SourceConfig::Trace(trace));
    workload.requests = Some(3);
    let mut source = open(&workload, 64 << 11).unwrap();
    let arrivals = drain(&mut *source).unwrap();
    assert_eq!(arrivals.iter().map(|arrival| arrival.sectors).collect::<Vec<_>>(), [8, 2048, 8192]);
    assert_eq!((source.counts().folded, source.counts().trims_dropped), (2, 2));
}
