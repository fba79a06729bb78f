//! Each format is read as its authors meant it, whatever its compression, and
//! what is written is read back as it was.

mod common;

use common::*;
use flashkeel_engine::{Lba, Operation, Span, Time};
use flashkeel_workload::Times;
use flashkeel_workload::trace::DeviceSpaces;
use flashkeel_workload::{
    Arrival, Basis, Compression, Counts, FormatName, Source, SourceConfig, Trace, WorkloadConfig,
    WorkloadError, WriterName, save,
};
use proptest::prelude::*;

const MSR: &str = "128166372003061629,hm,1,Read,2449408,4096,3200\n\
                   128166372003061639,hm,1,Write,8192,1024,10\n";

fn arrivals(trace: Trace) -> Vec<Arrival> {
    replay(trace).unwrap().0
}

#[test]
fn msr_has_file_times_and_bytes() {
    let path = file("hm_1.csv", MSR);
    assert_eq!(info(&Trace::new(&path)).unwrap().format.as_str(), "msr");
    assert_eq!(arrivals(unaligned(path)), [read(0, 4784, 8), write(1000, 16, 2)]);
    let header =
        file("h.csv", format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n{MSR}"));
    let (arrivals, counts) = replay(unaligned(header)).unwrap();
    assert_eq!((arrivals.len(), counts.not_io), (2, 0));
}

#[test]
fn five_columns_of_numbers_say_what_they_are_taken_for() {
    let notes = |name: &str, text: &str, format: Option<&str>| {
        let mut trace = Trace::new(file(name, text));
        trace.format = format.map(|name| FormatName::parse(name).unwrap());
        info(&trace).unwrap().notes
    };
    let says =
        |notes: Vec<String>, format: &str| notes.iter().any(|it| it.contains(&format!("read as {format}:")));
    let five = "1562,0,393351168,4096,1\n1600,0,4096,8192,0\n";
    assert!(says(notes("n5.csv", five, None), "replayer"));
    assert!(!says(notes("n5.csv", five, Some("replayer")), "replayer"));
    assert!(!says(notes("replayer.csv", five, None), "replayer"));
    let cloud = "1538323200,393351168,8,1,1283\n1538323201,4096,16,0,1283\n";
    assert!(says(notes("c.csv", cloud, None), "tencent"));
    assert!(!says(notes("c.csv", cloud, Some("tencent")), "tencent"));
}

#[test]
fn columns_are_known_by_the_names_that_people_give_them() {
    for names in ["timestamp_ms,op,offset_bytes,size", "ts_ms,rw,offset,size_bytes"] {
        let path = file("named.csv", format!("{names}\n0,R,8192,4096\n2,W,4096,4096\n"));
        let (found, counts) = replay(unaligned(path)).unwrap();
        assert_eq!(found, [read(0, 16, 8), write(2_000_000, 8, 8)], "{names}");
        assert_eq!(counts.not_io, 0);
    }
}

#[test]
fn a_column_of_volumes_tells_them_apart_and_what_is_not_read_is_told() {
    let rows = "vm1,a,0,R,8192,4096\nvm1,b,2,W,8192,4096\n";
    for name in ["volume", "disk", "lun", "dev", "device_id", "Volume"] {
        let path = file("named.csv", format!("vm,{name},time_ms,op,offset,size\n{rows}"));
        let described = info(&Trace::new(path)).unwrap();
        let devices: Vec<_> = described.devices.iter().map(|device| &*device.name).collect();
        assert_eq!(devices, ["a", "b"], "{name}");
        assert_eq!(described.notes, ["columns that are not read: vm"], "{name}");
    }
    // A device beside a disk that it is on.
    let path = file("named.csv", format!("disk,device,time_ms,op,offset,size\n{rows}"));
    let described = info(&Trace::new(path)).unwrap();
    let devices: Vec<_> = described.devices.iter().map(|device| &*device.name).collect();
    assert_eq!(devices, ["a", "b"]);
    assert_eq!(described.notes, ["columns that are not read: disk"]);
}

#[test]
fn vscsi_is_read_in_both_layouts() {
    let mut short = Vec::new();
    for (opcode, time_us) in [(0x28, 5), (0x12, 6), (0x8a, 8), (0x0a, 8), (0x88, 9)] {
        short.extend(vscsi(opcode, 4096, 80, 1_000_000 + time_us));
    }
    let expected = [read(0, 80, 8), write(3000, 80, 8), write(3000, 80, 8), read(4000, 80, 8)];
    let (got, counts) = replay(unaligned(file("t.vscsi", &short))).unwrap();
    assert_eq!((got.as_slice(), counts.not_io), (&expected[..], 1));

    let mut long = Vec::new();
    for record in short.chunks(32) {
        long.extend(&record[12..14]);
        long.extend(0x200u16.to_le_bytes());
        long.extend(&record[..12]);
        long.extend(&record[16..32]);
        long.extend(99u64.to_le_bytes());
    }
    assert_eq!(arrivals(unaligned(file("t2.vscsi", &long))), expected);
}

#[test]
fn ssdsim_and_mqsim_differ_in_the_name_and_the_tick() {
    let slow = "0 0 100 8 1\n26214000 0 200 16 0\n";
    let fast = "0 0 100 8 1\n979 0 200 16 0\n";
    let expected = |gap_ns| [read(0, 100, 8), write(gap_ns, 200, 16)];
    let format_of = |path| info(&Trace::new(path)).unwrap().format.as_str();
    for (name, text, format, gap_ns) in [
        ("a.mqsim", fast, "mqsim", 979),
        ("a.trace", slow, "mqsim", 26_214_000),
        ("a.ssdsim", slow, "ssdsim", 26_214_000),
        ("a.ssdsim", fast, "ssdsim", 979_000),
    ] {
        let path = file(name, text);
        assert_eq!(format_of(path.clone()), format);
        assert_eq!(arrivals(unaligned(path)), expected(gap_ns), "{name}");
    }
    let mut forced = unaligned(file("a.txt", fast));
    forced.format = Some(FormatName::parse("ssdsim").unwrap());
    assert_eq!(arrivals(forced.clone()), expected(979_000));
    forced.time_unit = Some(Span::from_ms(1));
    assert_eq!(arrivals(forced), expected(979_000_000));
}

#[test]
fn an_assumed_tick_is_noted() {
    let mut trace = unaligned(file("a.ssdsim", "0 0 100 8 1\n979 0 200 16 0\n"));
    let notes = |trace: &Trace| info(trace).unwrap().notes;
    assert!(notes(&trace)[0].contains("assumed to be 1us"));
    trace.time_unit = Some(Span(1));
    assert_eq!(notes(&trace), Vec::<String>::new());
}

/// Columns as in Microsoft's production server traces, but for the order of
/// those of a write and a second name of the offset's case.
const ETW: &str = "\
BeginHeader
             DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
            DiskWrite,  TimeStamp,     Process Name ( PID),    DiskNum,         byteoffset,       IOSize, ElapsedTime
            DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,  ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri
         DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr
          DiskSpinDown,  TimeStamp
              P-Start,  TimeStamp,     Process Name ( PID)
EndHeader
OS Version: 6.0.6001, Trace Size: 12KB
         DiskReadInit,       1000,           sql.exe (  12),       4020, 0xfffffade6b0a2010
             DiskRead,       1183,           sql.exe (  12),       4020, 0xfffffade6b0a2010, 0x0000001000, 0x00002000,         183,        3, 0x060043,         183,       0,  Unknown, 0xfffffade72165e40, \"Disk3:\\a, b.dat\"
            DiskWrite,       1200,           sql.exe (  12),          3,             0X1A00,         4096,          17
         DiskSpinDown,       1300
            DiskFlush,       1500,           sql.exe (  12),       4020, 0xfffffade6b0a2010,          10,        5, 0x060043,          10,       0
              P-Start,       1600,           sql.exe (  12)

             DiskRead,       9999,           sql.exe (  12),       4020, 0xfffffade6b0a2010, 0x00FF000000, 0x00000200,           1,        5, 0x060043,           1,       0,  Unknown, 0xfffffade72165e40, Unknown
";

#[test]
fn etw_finds_its_columns_in_the_header() {
    let path = file("dtrs.csv", ETW);
    let found = info(&Trace::new(&path)).unwrap();
    assert_eq!(found.format.as_str(), "etw");
    let devices: Vec<_> =
        found.devices.iter().map(|device| (device.name.as_str(), device.requests)).collect();
    assert_eq!(devices, [("3", 2), ("5", 2)]);
    assert!(found.notes[0].contains("completed"), "{:?}", found.notes);
    let mut trace = unaligned(path);
    trace.devices = DeviceSpaces::Merge;
    let expected = [read(0, 8, 16), write(17_000, 13, 8), flush(317_000), read(8_816_000, 32_640 << 8, 1)];
    let (got, counts) = replay(trace.clone()).unwrap();
    assert_eq!((got.as_slice(), counts.read, counts.not_io), (&expected[..], 4, 13));
    trace.device = Some("3".into());
    let (got, counts) = replay(trace.clone()).unwrap();
    assert_eq!((got.as_slice(), counts.other_device), (&expected[..2], 2));
    for packed in [gzip(ETW.as_bytes()), zstd(ETW.as_bytes())] {
        trace.path = file("dtrs.csv", packed);
        assert_eq!(arrivals(trace.clone()), expected[..2]);
    }
}

#[test]
fn etw_has_times_of_issue_too() {
    let reorder = |us| Some(Span::from_us(us));
    let reads = ETW.lines().filter(|line| line.trim_start().starts_with("DiskRead,")).skip(1);
    for (text, expected) in [
        (
            ETW.to_owned(),
            vec![read(0, 8, 16), write(183_000, 13, 8), flush(490_000), read(8_998_000, 32_640 << 8, 1)],
        ),
        (
            reads.map(|line| format!("{line}\n")).collect(),
            vec![read(0, 8, 16), read(8_998_000, 32_640 << 8, 1)],
        ),
    ] {
        let trace = Trace {
            times: Times::Issued,
            devices: DeviceSpaces::Merge,
            ..unaligned(file("issued.csv", text))
        };
        assert_eq!(arrivals(trace.clone()), expected);
        assert!(!info(&trace).unwrap().notes.iter().any(|note| note.contains("completed")));
    }
    // The second was issued before the first, and both before the trace began.
    let line = |time: u32, elapsed: u32, sector: u32| {
        format!("DiskRead, {time}, a (1), 1, 0x1, 0x{:x}, 0x200, {elapsed}, 0\n", 512 * sector)
    };
    let trace = Trace {
        times: Times::Issued,
        reorder: reorder(900),
        ..unaligned(file("began.csv", line(10, 20, 1) + &line(20, 930, 2)))
    };
    assert_eq!(arrivals(trace.clone()), [read(0, 2, 1), read(900_000, 1, 1)]);
    assert!(info(&Trace { reorder: reorder(899), ..trace }).is_err());
}

#[test]
fn etw_without_a_header_has_the_published_columns() {
    let reads = ETW.lines().filter(|line| line.trim_start().starts_with("DiskRead,")).skip(1);
    let path = file("part.csv", reads.map(|line| format!("{line}\r\n")).collect::<String>());
    let found = info(&Trace::new(&path)).unwrap();
    assert_eq!((found.format.as_str(), found.reads), ("etw", 2));
    assert!(found.notes[1].contains("has no header"), "{:?}", found.notes);
    let trace = Trace { device: Some("5".into()), ..unaligned(path) };
    assert_eq!(arrivals(trace), [read(0, 32_640 << 8, 1)]);
}

const BLKPARSE: &str = "\
259,2    0        1     0.000000000  4020  Q   R 282624 + 8 [java]
259,2    0        2     0.000001581  4020  G   R 282624 + 8 [java]
259,2    0        3     0.000003650  4020  U   N [java] 1
259,2    0        0     0.000004000     0  m   N cfq4020S / alloced
259,2    0        4     0.000005462  4020  D  RS 282624 + 8 [java]
259,2    0        5     0.013359202  4020  Q  WS 286720 + 128 [java]
259,2    0        6     0.013359300  4020  Q FWS [jbd2]
259,2    0        7     0.013359400  4020  Q  DS 64 + 16 [fstrim]
259,2    0        8     1.000000001  4020  Q FWFS 8 + 8 [jbd2]
CPU0 (259,2):
 Reads Queued:           2,        8KiB\t Writes Queued:           0,        0KiB

Throughput (R/W): 80KiB/s / 0KiB/s
";

#[test]
fn blkparse_gives_one_action() {
    let path = file("b.txt", BLKPARSE);
    let (got, counts) = replay(unaligned(path.clone())).unwrap();
    assert_eq!(
        got,
        [
            read(0, 282_624, 8),
            write(13_359_202, 286_720, 128),
            flush(13_359_300),
            trim(13_359_400, 64, 16),
            flush(1_000_000_001),
            write(1_000_000_001, 8, 8)
        ]
    );
    assert_eq!((counts.read, counts.not_io), (6, 8));
    let mut issued = unaligned(path);
    issued.action = Some("D".into());
    assert_eq!(arrivals(issued), [read(0, 282_624, 8)]);
}

#[test]
fn blkparse_has_flushes_before_requests() {
    let text = "8,0 0 1 0.000000100 9 Q FWFS 8 + 8 [a]\n8,0 0 2 0.000000300 9 Q FWS 16 + 8 [a]\n\
                8,0 0 3 0.000000400 9 Q WFS 24 + 8 [a]\n8,0 0 4 0.000000400 9 Q FF [a]\n";
    let expected = [flush(0), write(0, 8, 8), flush(200), write(200, 16, 8), write(300, 24, 8), flush(300)];
    let mut trace = unaligned(file("b.txt", text));
    let note = "2 writes with FUA, forced to the medium, are taken for any other";
    assert_eq!(info(&trace).unwrap().notes, [note]);
    for devices in [DeviceSpaces::Separate, DeviceSpaces::Merge] {
        trace.devices = devices;
        for reorder in [None, Some(Span(50))] {
            trace.reorder = reorder;
            assert_eq!(arrivals(trace.clone()), expected);
        }
        for requests in [None, Some(4)] {
            let limited = WorkloadConfig { requests, ..workload(SourceConfig::Trace(trace.clone())) };
            let mut source = open(&limited, DEVICE_SECTORS).unwrap();
            drain(&mut *source).unwrap();
            assert_eq!(source.notes(), [note], "{devices:?} {requests:?}");
        }
    }
}

#[test]
fn blkparse_has_events_without_data() {
    let text = "8,3 12 1 0.000000100 9 Q FWS [btrfs]\n8,3 12 2 0.000000200 7 D FN [kworker/12:0H]\n\
                8,3 12 3 0.000000300 0 C FN 0 [0]\n8,3 12 4 0.000000400 0 C WS 0 [0]\n\
                8,3 12 5 0.000000500 0 C WS 0 (    1200) [0]\n8,3 12 6 0.000000600 9 Q WS [a]\n\
                8,3 12 7 0.000000700 7 D R 96 (a1 08 2e ..) [smartd]\n\
                8,3 12 8 0.000000800 0 C R (a1 08 2e ..) [2]\n8,3 12 9 0.000000900 7 D R 8 + 8 [a]\n\
                8,3 12 10 0.000001000 0 C R 8 + 8 [0]\n";
    for (action, expected, not_io) in [
        ("Q", vec![flush(0)], 9),
        ("D", vec![flush(0), read(700, 8, 8)], 8),
        ("C", vec![flush(0), read(700, 8, 8)], 8),
    ] {
        let trace = Trace { action: Some(action.into()), ..unaligned(file("b.txt", text)) };
        let (got, counts) = replay(trace).unwrap();
        assert_eq!((got, counts.not_io), (expected, not_io), "{action}");
    }
}

#[test]
fn fio_logs_have_waits_or_timestamps() {
    let second = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a wait 100 0\n/dev/a read 4096 8192\n\
                  /dev/a wait 250 0\n/dev/a write 0 512\n/dev/a trim 8192 4096\n/dev/a sync 0 0\n/dev/a close\n";
    let third = "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n100 /dev/a read 4096 8192\n\
                 350 /dev/a write 0 512\n350 /dev/a trim 8192 4096\n350 /dev/a datasync\n400 /dev/a close\n";
    let expected = [read(0, 8, 16), write(250_000, 0, 1), trim(250_000, 16, 8), flush(250_000)];
    for text in [second, third] {
        assert_eq!(arrivals(unaligned(file("log", text))), expected);
    }
}

#[test]
fn compression_is_told_by_content() {
    let plain = arrivals(unaligned(file("p.csv", MSR)));
    let many = MSR.as_bytes();
    let joined = |compress: fn(&[u8]) -> Vec<u8>| {
        let half = many.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        [compress(&many[..half]), compress(&many[half..])].concat()
    };
    // A skippable frame of three bytes, then two frames.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &joined(zstd)].concat();
    for (contents, compression) in [
        (gzip(many), Compression::Gzip),
        (joined(gzip), Compression::Gzip),
        (zstd(many), Compression::Zstd),
        (joined(zstd), Compression::Zstd),
        (skippable, Compression::Zstd),
    ] {
        let path = file("p.csv", contents);
        assert_eq!(info(&Trace::new(&path)).unwrap().compression, compression);
        assert_eq!(arrivals(unaligned(path)), plain);
    }
}

#[test]
fn a_large_file_is_read_across_buffers() {
    let lines: String = (0..60_000u64).map(|n| format!("{} 0 {} 8 1\n", n * 100_000, n * 8)).collect();
    for contents in [lines.clone().into_bytes(), gzip(lines.as_bytes()), zstd(lines.as_bytes())] {
        let got = arrivals(unaligned(file("l.mqsim", contents)));
        assert_eq!(got.len(), 60_000);
        assert!((0..).zip(&got).all(|(n, arrival)| *arrival == read(n * 100_000, n * 8, 8)));
    }
    let records: Vec<u8> = (0..60_000).flat_map(|n| vscsi(0x28, 512, n, n)).collect();
    let got = arrivals(unaligned(file("l.vscsi", records)));
    assert!((0..60_000).zip(&got).all(|(n, arrival)| *arrival == read(n * 1000, n, 1)));
}

/// A source made of given arrivals.
struct Given(Vec<Arrival>, Counts);

impl Source for Given {
    fn fill(&mut self, batch: &mut Vec<Arrival>, _: usize) -> Result<(), WorkloadError> {
        batch.clear();
        batch.append(&mut self.0);
        self.1.delivered += batch.len() as u64;
        Ok(())
    }

    fn counts(&self) -> &Counts {
        &self.1
    }

    fn progress(&self) -> Option<f64> {
        None
    }

    fn basis(&self) -> Basis {
        Basis::Synthetic
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}

fn any_arrivals(operations: u8) -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0..operations, 0..1u64 << 24, 1..10_000u32, 0..100_000u64);
    prop::collection::vec(one, 1..50).prop_map(|all| {
        let mut time_us = 0;
        let to_arrival = |(operation, lba, sectors, gap_us)| {
            let arrival = match operation {
                0 => read(time_us * 1000, lba, sectors),
                1 => write(time_us * 1000, lba, sectors),
                2 => trim(time_us * 1000, lba, sectors),
                3 => flush(time_us * 1000),
                _ => Arrival { operation: Operation::WriteZeroes, ..read(time_us * 1000, lba, sectors) },
            };
            time_us += gap_us;
            arrival
        };
        all.into_iter().map(to_arrival).collect()
    })
}

fn round_trip(format: &str, arrivals: &[Arrival]) {
    let path = file("synthetic", "");
    let written = save(
        &mut Given(arrivals.to_vec(), Counts::default()),
        WriterName::parse(format).unwrap(),
        &path,
        &mut go_on,
    )
    .unwrap();
    assert_eq!((written.requests, written.times_rounded), (arrivals.len() as u64, 0));
    assert_eq!(info(&Trace::new(&path)).unwrap().format.as_str(), format);
    assert_eq!(replay(unaligned(path.clone())).unwrap().0, arrivals);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn reading_gives_back_what_was_written(
        arrivals in any_arrivals(2),
        flushes in any_arrivals(4),
        everything in any_arrivals(5),
    ) {
        round_trip("msr", &arrivals);
        round_trip("mqsim", &arrivals);
        round_trip("fio", &flushes);
        round_trip("columns", &everything);
        round_trip("parquet", &everything);
    }
}

#[test]
fn what_a_format_cannot_express_is_refused_and_nothing_is_left() {
    let path = file("out", "");
    std::fs::remove_file(&path).unwrap();
    let zeroes = Arrival { operation: Operation::WriteZeroes, ..trim(1, 0, 8) };
    let flush = Arrival { operation: Operation::Flush, ..trim(1, 0, 0) };
    for (format, arrival, message) in [
        ("msr", trim(1, 0, 8), "out: msr cannot express a trim; fio, columns, parquet can"),
        ("fio", zeroes, "out: fio cannot express a write of zeroes; columns, parquet can"),
        ("msr", flush, "out: msr cannot express a flush; fio, columns, parquet can"),
    ] {
        let mut source = Given(vec![read(0, 0, 8), arrival], Counts::default());
        let error = save(&mut source, WriterName::parse(format).unwrap(), &path, &mut go_on).unwrap_err();
        assert_eq!(strip(&error.to_string(), &path), message);
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 0);
    }
}

#[test]
fn rounded_times_are_counted() {
    let path = file("out", "");
    let odd =
        Arrival { time: Time(1050), operation: Operation::Read, lba: Lba(0), sectors: 8, asked_sectors: 8 };
    let mut source = Given(vec![read(0, 0, 8), odd], Counts::default());
    let written = save(&mut source, WriterName::parse("msr").unwrap(), &path, &mut go_on).unwrap();
    assert_eq!(written.times_rounded, 1);
    assert_eq!(arrivals(unaligned(path))[1].time, Time(1000));
}

#[test]
fn info_counts_what_is_there() {
    let text = "0 0 0 8 1\n1000000 0 8 8 1\n2000000 1 0 16 0\n6000000 0 4 8 0\n";
    let info = info(&Trace::new(file("i.mqsim", text))).unwrap();
    assert_eq!((info.requests, info.reads, info.writes, info.trims), (4, 2, 2, 0));
    assert_eq!((info.read_bytes, info.write_bytes), (8192, 12_288));
    assert_eq!(info.mean_write_bytes, Some(6144.0));
    assert_eq!(info.span_ns, 6_000_000);
    assert_eq!(info.mean_iops, Some(500.0));
    let gaps = info.inter_arrival_ns.unwrap();
    assert_eq!((gaps.mean, gaps.max / 10_000), (2_000_000.0, 400));
    assert!(gaps.median.abs_diff(1_000_000) < 1000);
    // Device 0: sectors 0 to 16, device 1: 0 to 16; the unaligned write adds none.
    assert_eq!(info.footprint_bytes, 4 * 4096);
    assert_eq!(info.write_footprint_bytes, 4 * 4096);
    assert_eq!(info.sequential_fraction, Some(0.25));
    assert_eq!(info.max_address_bytes, 8192);
    let sizes: Vec<_> = info.sizes.iter().map(|s| (s.up_to_bytes, s.reads, s.writes)).collect();
    assert_eq!(sizes, [(4096, 2, 1), (8192, 0, 1)]);
    let devices: Vec<_> = info.devices.iter().map(|d| (d.name.as_str(), d.requests)).collect();
    assert_eq!(devices, [("0", 3), ("1", 1)]);
}
