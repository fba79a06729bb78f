//! Traces merged, written where they must not be, and made like others.

mod common;

use std::path::{Path, PathBuf};

use common::*;
use flashkeel_workload::profiles::measure;
use flashkeel_workload::trace::DeviceSpaces;
use flashkeel_workload::{
    Basis, Beginnings, Context, Seeds, Source, Stopped, Trace, TraceInfo, WriterName, conversion, convert,
    merge, save,
};

fn msr() -> WriterName {
    WriterName::parse("msr").unwrap()
}

#[test]
fn a_trace_is_not_written_over_itself() {
    let path = file("a.csv", "100,hm,1,Read,0,4096,0\n");
    let link = path.with_file_name("b.csv");
    std::fs::hard_link(&path, &link).unwrap();
    let symbolic = path.with_file_name("c.csv");
    std::os::unix::fs::symlink(&path, &symbolic).unwrap();
    let roundabout =
        path.parent().unwrap().join("../").join(path.strip_prefix(env!("CARGO_TARGET_TMPDIR")).unwrap());
    for out in [path.clone(), link, symbolic, roundabout] {
        let message = convert(&Trace::new(&path), msr(), &out, &mut go_on).unwrap_err().to_string();
        assert!(message.contains("it is the trace that is read"), "{message}");
        let message = merge(
            &[Trace::new(&path)],
            Beginnings::Together,
            DeviceSpaces::Separate,
            msr(),
            &out,
            &mut go_on,
        );
        assert!(message.unwrap_err().to_string().contains("it is the trace that is read"));
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), "100,hm,1,Read,0,4096,0\n");
}

#[test]
fn spaces_behind_each_other_end_where_addresses_do() {
    let far = Trace::new(file("far.csv", "100,hm,1,Read,13835058055282163712,4096,0\n"));
    let out = far.path.with_file_name("both.csv");
    let both =
        |spaces| merge(&[far.clone(), far.clone()], Beginnings::Together, spaces, msr(), &out, &mut go_on);
    let message = both(DeviceSpaces::Separate).unwrap_err().to_string();
    assert!(message.contains("far.csv") && message.contains("beyond 2^64 bytes"), "{message}");
    assert!(!far.path.with_file_name("both.csv").exists());
    both(DeviceSpaces::Merge).unwrap();
}

#[test]
fn what_is_no_file_is_written_to_and_stays() {
    use std::os::unix::fs::FileTypeExt;
    let path = file("a.csv", "100,hm,1,Read,0,4096,0\n");
    convert(&Trace::new(path), msr(), Path::new("/dev/null"), &mut go_on).unwrap();
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
}

#[test]
fn a_full_disk_is_no_mistake_in_the_name_of_a_file() {
    let trace = Trace::new(file("a.csv", "100,hm,1,Read,0,4096,0\n"));
    let stopped = convert(&trace, msr(), Path::new("/dev/full"), &mut go_on).unwrap_err();
    assert!(matches!(stopped, Stopped::Unwritten(_)), "{stopped}");
    assert_eq!(stopped.to_string(), "/dev/full: cannot write it: No space left on device");
    for out in [trace.path.join("b.csv"), trace.path.with_file_name("nowhere").join("b.csv")] {
        let stopped = convert(&trace, msr(), &out, &mut go_on).unwrap_err();
        assert!(matches!(stopped, Stopped::Wrong(_)), "{stopped}");
    }
}

fn two() -> [PathBuf; 2] {
    // The second begins 1 µs later.
    [file("a.mqsim", "1000 0 8 8 1\n3000 0 16 8 0\n"), file("b.mqsim", "2000 0 0 8 0\n2500 1 8 8 1\n")]
}

#[test]
fn merged_traces_come_by_time() {
    let paths = two();
    let traces = paths.clone().map(Trace::new);
    let out = paths[0].with_file_name("merged.mqsim");
    let mqsim = WriterName::parse("mqsim").unwrap();
    let merged = |beginnings, spaces| {
        let written = merge(&traces, beginnings, spaces, mqsim, &out, &mut go_on).unwrap();
        assert_eq!((written.requests, written.counts.read, written.basis), (4, 4, Basis::Trace));
        replay(unaligned(out.clone())).unwrap().0
    };
    // The first reaches sector 24, so that the second begins at 1 MiB.
    assert_eq!(
        merged(Beginnings::Together, DeviceSpaces::Separate),
        [read(0, 8, 8), write(0, 2048, 8), read(500, 2 * 2048 + 8, 8), write(2000, 16, 8)]
    );
    assert_eq!(
        merged(Beginnings::Recorded, DeviceSpaces::Merge),
        [read(0, 8, 8), write(1000, 0, 8), read(1500, 2048 + 8, 8), write(2000, 16, 8)]
    );
}

#[test]
fn traces_of_different_clocks_are_not_merged_as_recorded() {
    // Windows counts from 1601, a log of fio from its start.
    let paths = [
        file("a.csv", "128166372003061629,hm,1,Read,0,4096,0\n"),
        file("b.log", "fio version 3 iolog\n1500 f read 0 4096\n"),
    ];
    let out = paths[0].with_file_name("merged");
    let traces = paths.each_ref().map(Trace::new);
    let refused = merge(&traces, Beginnings::Recorded, DeviceSpaces::Merge, msr(), &out, &mut go_on);
    let message = refused.unwrap_err().to_string();
    assert!(message.starts_with("--times recorded: the traces are not of one clock: by their own, they"));
    assert!(message.contains("a.csv at 12816637200.306162900s, "), "{message}");
    assert!(message.contains("b.log at 0.001500000s); --times together"), "{message}");
    assert!(!out.exists());
}

#[test]
fn merged_parts_of_a_recording_keep_their_distance() {
    let first = file("a.mqsim", "1000 1 0 8 0\n5000 0 8 8 0\n6000 0 16 8 0\n");
    let second = first.with_file_name("b.mqsim");
    std::fs::write(&second, "2000 0 24 8 0\n9000 0 32 8 0\n").unwrap();
    let out = first.with_file_name("merged.mqsim");
    let merged = |change: fn(&mut Trace)| {
        let traces = [&first, &second].map(|path| {
            let mut trace = Trace::new(path);
            change(&mut trace);
            trace
        });
        let mqsim = WriterName::parse("mqsim").unwrap();
        merge(&traces, Beginnings::Recorded, DeviceSpaces::Merge, mqsim, &out, &mut go_on).unwrap();
        replay(unaligned(out.clone())).unwrap().0
    };
    // Of a device: its requests were recorded at 5 and 6 µs, and at 2 and 9.
    let of_device = |trace: &mut Trace| trace.device = Some("0".into());
    assert_eq!(
        merged(of_device),
        [write(0, 24, 8), write(3000, 8, 8), write(4000, 16, 8), write(7000, 32, 8)]
    );
    let twice_as_fast = |trace: &mut Trace| {
        trace.device = Some("0".into());
        trace.intensity = 2.0;
    };
    assert_eq!(
        merged(twice_as_fast),
        [write(0, 24, 8), write(1500, 8, 8), write(2000, 16, 8), write(3500, 32, 8)]
    );
}

/// A trace made like another, and what is in both.
fn like(trace: &Trace, requests: Option<u64>) -> (TraceInfo, TraceInfo) {
    let original = info(trace).unwrap();
    let measured = measure(trace, &conversion(), &mut go_on).unwrap();
    let context = Context { seeds: Seeds::alone(3), requests, ..conversion() };
    let mut source: Box<dyn Source> = measured.source(&context);
    let out = file("like.log", "").with_file_name("out.log");
    save(&mut *source, WriterName::parse("fio").unwrap(), &out, &mut go_on).unwrap();
    assert!(source.notes()[0].contains("synthetic, no recorded trace"));
    (original, info(&Trace::new(out)).unwrap())
}

#[test]
fn a_trace_made_like_another_is_like_it() {
    // Three quarters writes, of 4 KiB and a few of 64; half go to one place of sixteen.
    let mut text = String::from("fio version 3 iolog\n");
    let (mut time, mut end) = (0, 0);
    for n in 0..20_000u64 {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        time += if mixed % 10 == 0 { 900 } else { 20 + mixed % 11 };
        let (action, bytes) =
            (if mixed % 4 == 0 { "read" } else { "write" }, if mixed % 7 == 0 { 65_536 } else { 4096 });
        let extent = if mixed % 2 == 0 { 7 } else { mixed / 64 % 16 };
        let offset = if n % 3 == 0 { end } else { extent * (64 << 20) + mixed % 200 * 4096 };
        end = offset + bytes;
        text += &format!("{time} f {action} {offset} {bytes}\n");
    }
    let trace = Trace::new(file("original.log", text));
    let (original, made) = like(&trace, None);
    assert_eq!((made.basis, made.requests), (Basis::Synthetic, original.requests));
    let near = |a: Option<f64>, b: Option<f64>, part: f64| {
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!((a - b).abs() <= part * b, "{a} is not near {b}");
    };
    near(made.read_fraction, original.read_fraction, 0.02);
    near(made.mean_read_bytes, original.mean_read_bytes, 0.02);
    near(made.mean_write_bytes, original.mean_write_bytes, 0.02);
    near(made.random_fraction, original.random_fraction, 0.02);
    let gaps = |info: &TraceInfo| info.inter_arrival_ns.clone().unwrap();
    near(Some(gaps(&made).mean), Some(gaps(&original).mean), 0.05);
    near(Some(gaps(&made).median as f64), Some(gaps(&original).median as f64), 0.1);
    assert!(made.max_address_bytes <= original.max_address_bytes.next_multiple_of(1 << 20) + 65_536);
    for requests in [100, 30_000] {
        assert_eq!(like(&trace, Some(requests)).1.requests, requests);
    }
}

#[test]
fn a_trace_made_like_one_of_a_coarse_clock_has_no_more_requests_at_one_time() {
    // In whole ms: three at each, and gaps of 1 ms, few of 40. In whole s: four at each. All at
    // one time.
    let clocks: [fn(u64) -> u64; 3] =
        [|n| (n / 3 + n / 1000 * 40) * 1000, |n| n / 4 * 1_000_000, |_| 1_000_000];
    for time_us in clocks {
        let text: String = (0..20_000u64).map(|n| format!("{},W,{},4096\n", time_us(n), n * 4096)).collect();
        let path = file("ms.csv", format!("time_us,operation,offset,bytes\n{text}"));
        let (original, made) = like(&Trace::new(&path), None);
        assert_eq!(made.requests, original.requests);
        let [mean, original_mean] =
            [&made, &original].map(|info| info.inter_arrival_ns.as_ref().unwrap().mean);
        assert!((mean - original_mean).abs() <= 0.02 * original_mean, "{mean} {original_mean}");
        let most_at_once = |times: &[u64]| times.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap();
        let context = Context { seeds: Seeds::alone(3), ..conversion() };
        let measured = measure(&Trace::new(path), &context, &mut go_on).unwrap();
        let times: Vec<u64> =
            drain(&mut *measured.source(&context)).unwrap().iter().map(|arrival| arrival.time.0).collect();
        let original: Vec<u64> = (0..20_000).map(time_us).collect();
        assert_eq!(most_at_once(&times), most_at_once(&original));
    }
}

#[test]
fn a_part_of_a_trace_is_measured_as_it_would_be_replayed() {
    // A request a millisecond on one device, nine on another.
    let text: String = (0..20_000u64)
        .map(|n| match n % 10 {
            0 => format!("{},a,W,{},4096\n", n * 100, n * 4096),
            _ => format!("{},b,R,0,4096\n", n * 100),
        })
        .collect();
    let path = file("dev.csv", format!("time_us,device,operation,offset,bytes\n{text}"));
    let gap = |trace: &Trace| like(trace, None).1.inter_arrival_ns.unwrap().mean;
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.05, "{found}");
    let trace = Trace { device: Some("a".into()), ..Trace::new(path) };
    near(gap(&trace), 1e6);
    near(gap(&Trace { intensity: 2.0, ..trace }), 5e5);
}

#[test]
fn what_follows_on_its_device_is_sequential_and_keeps_its_mix() {
    let text: String = (0..4000u64)
        .map(|n| {
            let operation = if n / 2 % 2 == 0 { "R" } else { "W" };
            format!("{},{},{operation},{},4096\n", n * 100, n % 2, n / 2 * 4096)
        })
        .collect();
    let path = file("two.csv", format!("time_us,device,operation,offset,bytes\n{text}"));
    let (original, made) = like(&Trace::new(path), None);
    assert!(original.sequential_fraction.unwrap() > 0.99);
    assert!(made.sequential_fraction.unwrap() > 0.98, "{:?}", made.sequential_fraction);
    assert!((made.read_fraction.unwrap() - 0.5).abs() < 0.05, "{:?}", made.read_fraction);
}
