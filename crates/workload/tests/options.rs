//! Every option does what it says, and what it changes or leaves out is counted.

mod common;

use common::*;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Span, Time};
use flashkeel_workload::pacing::{Closed, Think};
use flashkeel_workload::trace::{DeviceSpaces, Fold, TimeWindow, ZeroLength};
use flashkeel_workload::{
    Arrival, Compression, Pacing, Seeds, SourceConfig, Trace, WorkloadConfig, WriterName, convert,
};

/// Three devices' requests, 1 ms apart.
const TEXT: &str = "\
5000000 a 0 8 1
6000000 b 8 8 0
7000000 a 4096 8 1
8000000 c 16 8 0
";

fn trace() -> Trace {
    let numbered = TEXT.replace('a', "10").replace('b', "20").replace('c', "30");
    unaligned(file("t.mqsim", numbered))
}

fn lbas(arrivals: &[Arrival]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.lba.0).collect()
}

fn times_us(arrivals: &[Arrival]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.time.0 / 1000).collect()
}

#[test]
fn the_first_arrival_is_at_time_zero() {
    let (arrivals, counts) = replay(trace()).unwrap();
    assert_eq!(times_us(&arrivals), [0, 1000, 2000, 3000]);
    assert_eq!((counts.read, counts.delivered, counts.reads, counts.writes), (4, 4, 2, 2));
}

#[test]
fn devices_lie_one_after_the_other_or_on_one_another() {
    // Device 10 ends at sector 4104, which is 3 MiB rounded up; 20 within 1 MiB.
    let (arrivals, _) = replay(trace()).unwrap();
    assert_eq!(lbas(&arrivals), [0, 6144 + 8, 4096, 8192 + 16]);
    let merged = Trace { devices: DeviceSpaces::Merge, ..trace() };
    assert_eq!(lbas(&replay(merged).unwrap().0), [0, 8, 4096, 16]);
}

#[test]
fn a_device_can_be_chosen() {
    let chosen = Trace { device: Some("20".into()), ..trace() };
    let (arrivals, counts) = replay(chosen).unwrap();
    assert_eq!(arrivals, [write(0, 8, 8)]);
    assert_eq!((counts.read, counts.other_device), (4, 3));
}

#[test]
fn a_device_can_be_named_by_its_number() {
    for device in [serde_json::json!(20), serde_json::json!("20")] {
        let options = serde_json::json!({ "path": "x", "device": device });
        assert_eq!(serde_json::from_value::<Trace>(options).unwrap().device.as_deref(), Some("20"));
    }
}

#[test]
fn progress_follows_the_file_and_its_repetitions() {
    // Larger than what is read ahead, so that there are steps to see.
    let text: String = (0..100_000).map(|i| format!("{i} 0 0 8 1\n")).collect();
    // The compressed file is short enough to be read at once.
    for (contents, least) in [(text.clone().into_bytes(), 6), (gzip(text.as_bytes()), 1)] {
        let trace = Trace { repeat: 2, ..Trace::new(file("p.mqsim", contents)) };
        let mut source = open(&workload(SourceConfig::Trace(trace)), DEVICE_SECTORS).unwrap();
        let mut batch = Vec::new();
        let mut last = source.progress().unwrap();
        assert!(last <= 0.5, "{last}");
        let mut steps = 0;
        loop {
            source.fill(&mut batch, 1000).unwrap();
            let progress = source.progress().unwrap();
            assert!(progress >= last && progress <= 1.0, "{last} then {progress}");
            steps += usize::from(progress > last);
            last = progress;
            if batch.is_empty() {
                break;
            }
        }
        assert!(last == 1.0 && steps >= least, "{last} in {steps} steps");
    }
}

#[test]
fn addresses_fold_when_asked() {
    let text = "0 0 2032 8 1\n1 0 2040 16 1\n2 0 6 4 0\n";
    let mut trace = unaligned(file("f.mqsim", text));
    trace.fold = Fold::Wrap;
    let mut source = open(&workload(SourceConfig::Trace(trace)), 1000).unwrap();
    let arrivals = drain(&mut *source).unwrap();
    assert_eq!(arrivals, [read(0, 32, 8), read(1, 40, 16), write(2, 6, 4)]);
    assert_eq!((source.counts().folded, source.counts().clipped), (2, 0));

    let mut trace = unaligned(file("f.mqsim", "0 0 1996 8 1\n"));
    trace.fold = Fold::Wrap;
    let mut source = open(&workload(SourceConfig::Trace(trace)), 1000).unwrap();
    assert_eq!(drain(&mut *source).unwrap(), [asked(8, read(0, 996, 4))]);
    assert_eq!((source.counts().folded, source.counts().clipped), (1, 1));
}

#[test]
fn ranges_round_outwards_and_trims_inwards() {
    let text = "fio version 3 iolog\n0 f write 1000 100\n0 f read 4095 2\n0 f read 8192 4096\n\
                0 f trim 4000 9000\n0 f trim 100 4000\n0 f trim 4096 8192\n";
    let mut trace = Trace::new(file("a.log", text));
    let (arrivals, counts) = replay(trace.clone()).unwrap();
    let expected = [
        asked(1, write(0, 0, 8)),
        asked(1, read(0, 0, 16)),
        read(0, 16, 8),
        asked(18, trim(0, 8, 16)),
        trim(0, 8, 16),
    ];
    assert_eq!(arrivals, expected);
    assert_eq!((counts.aligned, counts.trims_dropped), (3, 1));
    trace.align = Some(Bytes(16 << 10));
    let (arrivals, counts) = replay(trace).unwrap();
    let expected = [asked(1, write(0, 0, 32)), asked(1, read(0, 0, 32)), asked(8, read(0, 0, 32))];
    assert_eq!(arrivals, expected);
    assert_eq!((counts.aligned, counts.trims_dropped), (3, 3));
}

#[test]
fn zeros_that_cover_a_block_in_part_are_written() {
    let text = "0 Z 4096 8192\n0 Z 4000 9000\n0 Z 100 4000\n0 Z 4096 100\n0 Z 0 4097\n0 W 0 512\n";
    let columns = Some("time=1,unit=us,op=2,offset=3,length=4".into());
    let trace = Trace { columns, write_magnification: 8, ..Trace::new(file("zeros.txt", text)) };
    let (arrivals, counts) = replay(trace).unwrap();
    let zeros = |lba, sectors| Arrival { operation: Operation::WriteZeroes, ..write(0, lba, sectors) };
    let expected = [
        zeros(8, 16),
        // Its edges, and what lies between.
        asked(1, write(0, 0, 8)),
        zeros(8, 16),
        asked(2, write(0, 24, 8)),
        // Within two blocks, and within one.
        asked(8, write(0, 0, 16)),
        asked(1, write(0, 8, 8)),
        zeros(0, 8),
        asked(1, write(0, 8, 8)),
        write(0, 0, 8),
    ];
    assert_eq!(arrivals, expected);
    assert_eq!((counts.read, counts.delivered, counts.write_zeroes, counts.aligned), (9, 9, 3, 5));
}

#[test]
fn intensity_divides_times() {
    let half = |intensity| replay(Trace { intensity, ..trace() }).unwrap().0;
    assert_eq!(times_us(&half(2.0)), [0, 500, 1000, 1500]);
    assert_eq!(times_us(&half(0.1)), [0, 10_000, 20_000, 30_000]);
}

#[test]
fn magnification_makes_writes_longer_and_nothing_else() {
    let replayed = |write_magnification| replay(Trace { write_magnification, ..trace() }).unwrap().0;
    let (once, thrice) = (replayed(1), replayed(3));
    assert!(once.iter().any(|arrival| arrival.operation == Operation::Write));
    for (before, after) in once.iter().zip(&thrice) {
        let times = if before.operation == Operation::Write { 3 } else { 1 };
        assert_eq!((before.time, before.lba), (after.time, after.lba));
        assert_eq!(after.sectors, times * before.sectors);
    }
}

#[test]
fn magnification_beyond_every_address_is_refused() {
    let text = "fio version 3 iolog\n0 d write 18446744073709543424 4096\n";
    let trace = |write_magnification| Trace { write_magnification, ..unaligned(file("big.log", text)) };
    assert!(refusal(trace(1)).contains("beyond the simulated device's"));
    assert_eq!(
        refusal(trace(64)),
        "big.log:2: a write at byte 18446744073709543424, magnified to 262144 bytes, ends beyond any 64-bit address"
    );
}

#[test]
fn gaps_are_no_longer_than_the_longest() {
    let text = "0 0 0 8 1\n1000001 0 8 8 1\n2000002 0 16 8 1\n";
    let gaps = info(&Trace::new(file("g.mqsim", text))).unwrap().inter_arrival_ns.unwrap();
    assert_eq!((gaps.median, gaps.p99, gaps.max), (1_000_001, 1_000_001, 1_000_001));
}

#[test]
fn a_window_is_in_recorded_time() {
    let window = Some(TimeWindow { from: Span::from_ms(1), to: Some(Span::from_ms(3)) });
    let (arrivals, counts) = replay(Trace { window, ..trace() }).unwrap();
    assert_eq!(times_us(&arrivals), [0, 1000]);
    assert_eq!((counts.delivered, counts.outside_window), (2, 2));
    assert_eq!(lbas(&arrivals), [6144 + 8, 4096]);
}

#[test]
fn requests_and_duration_end_the_workload() {
    let limited = WorkloadConfig { requests: Some(3), ..workload(SourceConfig::Trace(trace())) };
    assert_eq!(times_us(&run(&limited).unwrap().0), [0, 1000, 2000]);
    let limited =
        WorkloadConfig { duration: Some(Span::from_ms(2)), ..workload(SourceConfig::Trace(trace())) };
    assert_eq!(times_us(&run(&limited).unwrap().0), [0, 1000]);
    // The driver decides times under other pacings, so the driver ends there.
    for pacing in [Pacing::Closed(Closed { depth: 4, low: None }), Pacing::Think(Think {})] {
        let closed = WorkloadConfig { pacing, ..limited.clone() };
        assert_eq!(run(&closed).unwrap().0.len(), 4);
    }
}

#[test]
fn a_trace_repeats_after_its_mean_gap() {
    let (arrivals, counts) = replay(Trace { repeat: 3, ..trace() }).unwrap();
    assert_eq!(times_us(&arrivals), (0..12).map(|n| n * 1000).collect::<Vec<_>>());
    assert_eq!(counts.delivered, 12);
    assert_eq!(lbas(&arrivals)[..4], lbas(&arrivals)[8..]);
}

#[test]
fn an_intensity_is_that_which_was_asked() {
    let last_ns = |intensity| {
        let trace = Trace { intensity, ..unaligned(file("i.mqsim", "0 0 0 8 1\n98875 0 8 8 0\n")) };
        replay(trace).unwrap().0[1].time.0
    };
    assert_eq!(last_ns(0.000_001_4), 70_625_000_000);
    assert_eq!(last_ns(0.000_001_5), 65_916_666_666);
    assert_eq!(last_ns(0.000_012_34), 8_012_560_777);
    assert_eq!([last_ns(1.0), last_ns(1.000_000_1)], [98_875, 98_874]);
    // What millionths say, they say exactly.
    let millionths = [1, 3, 999_999, 1_100_000, 2_500_000, 3_000_001, 999_999_999_999, 1_000_000_000_000];
    for millionth in millionths {
        let exact = 98_875 * 1_000_000 / millionth;
        assert_eq!(last_ns(millionth as f64 / 1e6), exact, "{millionth}");
    }
}

#[test]
fn a_trace_that_the_clock_cannot_count_is_refused() {
    let hours = |hours: u64| file("y.mqsim", format!("0 0 0 8 1\n{} 0 8 8 0\n", hours * 3_600_000_000_000));
    let slowest = |path| Trace { intensity: 1e-6, ..unaligned(path) };
    assert_eq!(replay(slowest(hours(2))).unwrap().0.len(), 2);
    // In the last half of what 64 bits count, and beyond it.
    for late in [3, 5, 6] {
        let refused = refusal(slowest(hours(late)));
        assert!(refused.contains("beyond the 292 years that can be simulated"), "{refused}");
    }
    let refused = refusal(unaligned(file("l.mqsim", "0 0 0 8 1\n18446744060000000000 0 8 8 0\n")));
    assert!(refused.contains("see its times and their unit"), "{refused}");
    // A duration ends it before.
    let timed = WorkloadConfig {
        duration: Some(Span::from_ms(1000)),
        ..workload(SourceConfig::Trace(slowest(hours(6))))
    };
    assert_eq!(drain(&mut *open(&timed, DEVICE_SECTORS).unwrap()).unwrap().len(), 1);
}

#[test]
fn a_reorder_window_puts_requests_in_order() {
    let text = "100 0 0 8 1\n300 0 1 8 1\n250 0 2 8 1\n300 0 3 8 1\n200 0 4 8 1\n400 0 5 8 1\n";
    let mut trace = unaligned(file("r.mqsim", text));
    trace.reorder = Some(Span(100));
    let (arrivals, counts) = replay(trace.clone()).unwrap();
    assert_eq!(lbas(&arrivals), [0, 4, 2, 1, 3, 5]);
    assert_eq!(arrivals[5].time, Time(300));
    assert_eq!(counts.reordered, 2);
    trace.reorder = Some(Span(99));
    assert_eq!(
        refusal(trace),
        "r.mqsim:5: the time goes back by 100ns; more than the reorder window of 99ns"
    );
}

#[test]
fn requests_of_no_length_can_be_skipped() {
    let mut trace = unaligned(file("z.mqsim", "0 0 0 8 1\n5 0 8 0 1\n9 0 8 8 1\n"));
    trace.zero_length = ZeroLength::Skip;
    let (arrivals, counts) = replay(trace).unwrap();
    assert_eq!((arrivals.len(), counts.zero_length, counts.read), (2, 1, 3));
}

#[test]
fn so_many_bad_lines_are_left_out_and_counted() {
    let mut trace = unaligned(file("b.mqsim", "0 0 0 8 1\n5 0 x 8 1\n7 0\n8 0 8 9999999999 1\n9 0 8 8 1\n"));
    assert!(refusal(trace.clone()).starts_with("b.mqsim:2: "));
    trace.bad_lines = 2;
    let message = refusal(trace.clone());
    assert!(message.starts_with("b.mqsim:4: a request of 5119999999488 bytes"), "{message}");
    assert!(message.ends_with("; bad_lines = 2 were left out before it"), "{message}");
    trace.bad_lines = 3;
    let (arrivals, counts) = replay(trace.clone()).unwrap();
    assert_eq!((lbas(&arrivals), counts.bad_lines, counts.read), (vec![0, 8], 3, 2));
    let found = info(&trace).unwrap();
    assert_eq!((found.requests, found.bad_lines), (2, 3));
    // With the devices merged nothing is read before the replay, and each pass leaves them out.
    (trace.devices, trace.repeat) = (DeviceSpaces::Merge, 2);
    let (arrivals, counts) = replay(trace).unwrap();
    assert_eq!((lbas(&arrivals), counts.bad_lines), (vec![0, 8, 0, 8], 6));
}

#[test]
fn a_line_that_never_ends_is_no_bad_line() {
    let mut trace = unaligned(file("l.mqsim", format!("0 0 0 8 1\n{}", "x".repeat(200_000))));
    trace.bad_lines = u64::MAX;
    assert_eq!(refusal(trace), "l.mqsim:2: longer than 64 KiB; this is not a text trace");
}

#[test]
fn a_conversion_keeps_sectors_and_its_options() {
    let path = file("c.mqsim", "0 0 3 5 1\n1000 0 9 1 0\n");
    let out = path.with_extension("csv");
    let mut from = Trace::new(&path);
    from.intensity = 0.5;
    let written = convert(&from, WriterName::parse("msr").unwrap(), &out, &mut go_on).unwrap();
    assert_eq!((written.requests, written.counts.aligned), (2, 0));
    assert_eq!(replay(unaligned(out)).unwrap().0, [read(0, 3, 5), write(2000, 9, 1)]);
}

#[test]
fn a_conversion_is_compressed_where_its_name_says_so() {
    let path = file("c.mqsim", "0 0 8 8 1\n1000 0 16 8 0\n");
    let msr = WriterName::parse("msr").unwrap();
    let packed = path.with_extension("csv.gz");
    convert(&Trace::new(&path), msr, &packed, &mut go_on).unwrap();
    assert_eq!(info(&Trace::new(&packed)).unwrap().compression, Compression::Gzip);
    assert_eq!(replay(Trace::new(&packed)).unwrap().0, replay(Trace::new(&path)).unwrap().0);
    let zstd = path.with_extension("zst");
    let refusal = convert(&Trace::new(&path), msr, &zstd, &mut go_on).unwrap_err().to_string();
    assert!(refusal.contains("c.zst: traces are written plain, or with gzip"), "{refusal}");
    assert!(!zstd.exists());
}

#[test]
fn configuration_reads_names_and_units() {
    let json = serde_json::json!({
        "source": {
            "policy": "trace", "path": "x.csv", "format": "msr", "align": "8KiB", "fold": "wrap",
            "devices": "merge", "reorder": "10ms", "window": {"from": "1h"}, "intensity": 2.0, "repeat": 2
        },
        "pacing": {"policy": "closed", "depth": 8},
        "warm_up": "10s",
    });
    let config: WorkloadConfig = serde_json::from_value(json).unwrap();
    let again: WorkloadConfig = serde_json::from_value(serde_json::to_value(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let SourceConfig::Trace(trace) = &config.source else { panic!("{config:?}") };
    assert_eq!(trace.align, Some(Bytes(8192)));
    assert_eq!((trace.fold, trace.repeat), (Fold::Wrap, 2));
    assert_eq!(config.pacing, Pacing::Closed(Closed { depth: 8, low: None }));

    let wrong = |json| serde_json::from_value::<WorkloadConfig>(json).unwrap_err().to_string();
    let format = wrong(serde_json::json!({"source": {"policy": "trace", "path": "x", "format": "mrs"}}));
    assert!(
        format.contains("unknown trace format \"mrs\"") && format.contains("did you mean \"msr\""),
        "{format}"
    );
    let key = wrong(serde_json::json!({"source": {"policy": "trace", "path": "x", "allign": "4KiB"}}));
    assert!(key.contains("allign"), "{key}");
}

#[test]
fn what_a_trace_touches_is_compacted() {
    // 20 requests spread over 1.6 TiB, two of them neighbours, and a trim of 1 TiB.
    let mut text: String = (0..20u64).map(|n| format!("{n} d write {} 4096\n", n * 87_961_600_000)).collect();
    text += "30 d read 4096 4096\n31 d read 0 8192\n32 d trim 0 1099511627776\n33 d trim 40960 4096\n";
    let path = file("c.log", format!("fio version 3 iolog\n{text}"));
    let trace = Trace { fold: Fold::Compact, ..Trace::new(path) };
    let mut source = open(&workload(SourceConfig::Trace(trace.clone())), 24 * 8).unwrap();
    let arrivals = drain(&mut *source).unwrap();
    assert_eq!(arrivals.len(), 23);
    assert_eq!(lbas(&arrivals)[..3], [0, 16, 24]);
    assert_eq!((arrivals[20].lba.0, arrivals[20].sectors), (8, 8));
    assert_eq!((arrivals[21].lba.0, arrivals[21].sectors), (0, 16));
    assert_eq!((arrivals[22].lba.0, arrivals[22].sectors), (0, 14 * 8));
    assert_eq!((source.counts().folded, source.counts().trims_dropped), (19, 1));
    assert!(source.notes()[0].contains("the 84KiB that it touches"), "{:?}", source.notes());
    // On a device that it fits, it stays where it is.
    let (arrivals, counts) = replay(Trace {
        window: Some(TimeWindow { from: Span::ZERO, to: Some(Span::from_us(5)) }),
        ..trace.clone()
    })
    .unwrap();
    assert_eq!((arrivals[4].lba.0, counts.folded), (4 * 87_961_600_000 / 512, 0));
    let error = open(&workload(SourceConfig::Trace(trace)), 20 * 8).err().unwrap().to_string();
    assert!(error.contains("it touches 86016 bytes, more than the simulated device's 81920"), "{error}");
}

#[test]
fn zeros_of_what_a_trace_never_touches_are_left_out() {
    let text = "time_ns,operation,offset,bytes\n0,W,1099511627776,4096\n10,Z,4096,8192\n20,Z,1099511627776,4096\n\
                30,R,1099511627776,4096\n";
    let trace = Trace { fold: Fold::Compact, ..Trace::new(file("z.csv", text)) };
    let mut source = open(&workload(SourceConfig::Trace(trace)), 24 * 8).unwrap();
    let arrivals = drain(&mut *source).unwrap();
    assert_eq!(arrivals.iter().map(|arrival| arrival.sectors).collect::<Vec<_>>(), [8, 8, 8]);
    assert_eq!((source.counts().write_zeroes, source.counts().trims_dropped), (1, 1));
}

#[test]
fn a_rate_beyond_any_drive_is_noted() {
    let text: String = (0..1000).map(|n| format!("{} 0 {n} 8 1\n", n * 10)).collect();
    let path = file("r.mqsim", text);
    let note = "1000 requests of 4096000 bytes together in 9990ns are more than any drive serves: a tick of its clock is taken for 1ns; \
                time_unit = \"100ns\" would make it";
    assert!(info(&Trace::new(&path)).unwrap().notes[0].starts_with(note));
    let mut source = open(&workload(SourceConfig::Trace(Trace::new(&path))), DEVICE_SECTORS).unwrap();
    drain(&mut *source).unwrap();
    assert!(source.notes()[0].starts_with(note), "{:?}", source.notes());
    let told = Trace { time_unit: Some(Span::from_us(1)), ..Trace::new(path) };
    assert!(info(&told).unwrap().notes.is_empty());
}

#[test]
fn a_rate_beyond_any_drive_is_noted_where_a_limit_ends_the_trace() {
    // Microseconds since 1970, for which no longer unit would do; and as many nanoseconds.
    let text: String = (0..1000).map(|n| format!("{} 0 {n} 8 1\n", n * 10)).collect();
    let since_1970: String = (0..1000).map(|n| format!("1577808000{n:06},W,0,4096\n")).collect();
    let long = Trace::new(file("r.mqsim", text));
    let epoch = file("e.csv", format!("time_us,operation,offset,bytes\n{since_1970}"));
    let notes = |trace: &Trace, requests, duration| {
        let source = SourceConfig::Trace(trace.clone());
        let mut source =
            open(&WorkloadConfig { requests, duration, ..workload(source) }, DEVICE_SECTORS).unwrap();
        drain(&mut *source).unwrap();
        source.notes().to_vec()
    };
    for devices in [DeviceSpaces::Separate, DeviceSpaces::Merge] {
        let trace = Trace { devices, ..long.clone() };
        for (requests, duration) in [(Some(999), None), (Some(1000), None), (None, Some(Span::from_us(5)))] {
            let notes = notes(&trace, requests, duration);
            assert!(notes.len() == 1 && notes[0].contains("\"100ns\" would make it"), "{notes:?}");
        }
        // A second pass says nothing new, nor does one that hardly begins forget the first.
        for requests in [1010, 2000] {
            assert_eq!(notes(&Trace { repeat: 2, ..trace.clone() }, Some(requests), None).len(), 1);
        }
        let fast = Trace { devices, time_unit: None, ..Trace::new(&epoch) };
        let notes = notes(&Trace { intensity: 1000.0, ..fast }, Some(999), None);
        assert!(notes.iter().all(|note| !note.contains("would make it")), "{notes:?}");
    }
}

#[test]
fn a_window_of_years_is_not_advised() {
    let message = refusal(Trace::new(file("r.mqsim", "1266874889640194296 0 0 8 1\n0 0 1 8 1\n")));
    assert_eq!(
        message,
        "r.mqsim:2: the time goes back by 40.1 years, too far to put requests in order: is this the time, and are \
         these not two traces joined?"
    );
}

#[test]
fn a_conversion_neither_folds_nor_lays_devices_out_in_silence() {
    let to = |trace: &Trace| {
        let out = trace.path.with_file_name("out.csv");
        convert(trace, WriterName::parse("msr").unwrap(), &out, &mut go_on)
    };
    let path = file("t.csv", "100,a,0,Read,0,4096,0\n200,b,0,Write,4096,4096,0\n");
    let refused = wrong(to(&Trace { fold: Fold::Wrap, ..Trace::new(&path) }).unwrap_err());
    assert_eq!(refused.subject, "workload.source.fold");
    let notes = to(&Trace::new(&path)).unwrap().notes;
    assert_eq!(
        notes,
        ["its 2 devices lie one after the other, as one: they begin at 0B, 1MiB; device = \"…\" takes one"]
    );
}

#[test]
fn where_devices_lie_is_found_anew_only_once_the_file_has_changed() {
    // As many that whoever reads it all is asked on the way whether to go on.
    let text = |sector: u64| format!("1000 1 {sector} 8 1\n").repeat(20_000) + "2000 2 0 8 1\n";
    let path = file("t.mqsim", text(0));
    let workload = workload(SourceConfig::Trace(unaligned(path.clone())));
    // Where the second device lies, and how often who opens it is asked.
    let open = || {
        let mut asked = 0;
        let watch = &mut |_| {
            asked += 1;
            std::ops::ControlFlow::Continue(())
        };
        let mut source = workload.open_watched(DEVICE_SECTORS, Bytes(512), Seeds::alone(1), watch).unwrap();
        let mut batch = Vec::new();
        source.fill(&mut batch, usize::MAX).unwrap();
        (batch.last().unwrap().lba.0, asked)
    };
    assert_eq!([open(), open()], [(2048, 1), (2048, 0)]);
    std::fs::write(&path, text(6144)).unwrap();
    assert_eq!([open(), open()], [(8192, 1), (8192, 0)]);
}
