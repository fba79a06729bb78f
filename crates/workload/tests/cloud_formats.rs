//! Formats of columns, of cloud storage and of other simulators, and any other
//! that is described in a line; binary formats of Linux and of a cache simulator.

mod common;

use common::*;
use flashkeel_workload::trace::DeviceSpaces;
use flashkeel_workload::{FormatName, Trace};

fn format_of(trace: &Trace) -> &'static str {
    info(trace).unwrap().format.as_str()
}

/// Each is a read of 16 sectors at sector 8, 1.5 ms later a write of 1 at 24,
/// unless its clock is coarser.
#[test]
fn each_format_has_its_own_columns_and_units() {
    for (name, format, gap_ns, text) in [
        (
            "a.csv",
            "alibaba",
            1_500_000,
            "419,R,4096,8192,1577808000000000\n419,W,12288,512,1577808000001500\n",
        ),
        ("a.csv", "tencent", 1_000_000_000, "1538323200,8,16,0,1063\n1538323201,24,1,1,1063\n"),
        ("a.spc", "spc", 1_500_000, "0,8,8192,R,0.551706\n0, 24, 512, w, 0.553206, more\n"),
        (
            "a.csv",
            "systor",
            1_500_000,
            "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.0008,R,0,4096,8192\n\
             1456095145.134000000,0.0008,,0,0,0\n1456095145.134576000,0.0008,W,0,12288,512\n",
        ),
        ("a.txt", "disksim", 1_500_000, "0.5 0 8 16 1\n2.0 0 24 1 0\n"),
        ("b.disksim", "disksim", 2_000_000, "0 0 8 16 3\n2 0 24 1 2\n"),
        ("a.csv", "replayer", 1_500_000, "0.5,0,4096,8192,1\n2,0,12288,512,0\n"),
        ("a.csv", "replayer", 1_500_000, "time,disk,offset,size,type\n0.5,0,4096,8192,1\n2,0,12288,512,0\n"),
    ] {
        let trace = unaligned(file(name, text));
        assert_eq!(format_of(&trace), format, "{text}");
        let (arrivals, _) = replay(trace).unwrap();
        assert_eq!(arrivals, [read(0, 8, 16), write(gap_ns, 24, 1)], "{text}");
    }
}

#[test]
fn a_format_that_may_be_another_names_both() {
    let text = "419,R,4096,8192,1577808000000000\n0,8,8192,R,0.55\n";
    let message = refusal(Trace::new(file("x.csv", text)));
    assert!(message.starts_with("x.csv: it may be of several formats, and format = "), "{message}");
    assert!(message.contains("alibaba (") && message.contains("spc ("), "{message}");
    let mut trace = unaligned(file("x.csv", text));
    trace.format = Some(FormatName::parse("spc").unwrap());
    assert!(refusal(trace).starts_with("x.csv:1: field 5 (timestamp): "));
    // MQSim's columns are also SSDsim's: taken, and noted.
    let notes = |name: &str| info(&Trace::new(file(name, "0 0 8 8 1\n9 0 8 8 0\n"))).unwrap().notes;
    assert!(notes("x.trace")[0].contains("have the same columns"));
    assert!(notes("x.mqsim").is_empty());
}

#[test]
fn times_of_msr_may_be_of_another_unit() {
    let mut trace = unaligned(file("m.csv", "0.25,hm,1,Read,4096,8192,0.1\n1.75,hm,1,Write,12288,512,0.1\n"));
    trace.time_unit = Some(flashkeel_engine::Span::from_ms(1));
    assert_eq!(format_of(&trace), "msr");
    assert_eq!(replay(trace).unwrap().0, [read(0, 8, 16), write(1_500_000, 24, 1)]);
}

#[test]
fn columns_can_be_described() {
    let expected = [read(0, 8, 16), write(1_500_000, 24, 1)];
    for (columns, text) in [
        (
            "time=1,unit=us,offset=3,length=4,op=2,device=5",
            "100,R,4096,8192,sda,more\n1600,w,12288,512,sda,of,this\n",
        ),
        (
            "time=5,unit=ms,op=1,read=0,write=1,offset=2,length=3,offset_unit=512,length_unit=512,separator=space",
            "op lba n dev t\n0 8 16 0 0.1\n1 24 1 0 1.6\n",
        ),
        (
            "time=1,unit=100ns,offset=2,length=3,op=4,separator=tab",
            "0\t4096\t8192\tread\n15000\t12288\t512\tWRITE\n",
        ),
        ("op=3, offset=2, length=4, time=1, unit=s", "1.0; 4096;R;8192\n1.0015; 12288;W;512\n"),
    ] {
        let mut trace = unaligned(file("c.txt", text));
        trace.columns = Some(columns.into());
        assert_eq!(format_of(&trace), "columns");
        assert_eq!(replay(trace).unwrap().0, expected, "{columns}");
    }
    let mut reads = unaligned(file("c.txt", "1,8\n2,16\n"));
    reads.columns = Some("time=1,unit=us,offset=2,offset_unit=512,length=3,op=read".into());
    assert!(refusal(reads.clone()).starts_with("c.txt:1: expected 3 fields separated by commas"));
}

#[test]
fn a_description_that_is_wrong_says_how() {
    for (columns, expected) in [
        ("tiem=1", "unknown key \"tiem\"; the keys are time, unit, "),
        ("time=1,unit=us,offset=2,length=3", "op is missing"),
        ("unit=us,offset=2,length=3,op=4", "time is missing"),
        ("time=1,offset=2,length=3,op=4", "unit is missing"),
        ("time=1,unit=u,offset=2,length=3,op=4", "unit=u: it is s, ms, us, ns"),
        ("time=1,unit=us,offset=2,length=2,op=4", "column 2 is two things"),
        ("time=0,unit=us,offset=2,length=3,op=4", "time=0: a column is a number from 1 to 24"),
        ("time=1,time=2", "time is given twice"),
        ("time=1,unit=us,offset=2,length=3,op=4,offset_unit=0", "offset_unit is a number of bytes"),
        ("time=1,unit=us,offset=2,length=3,op=4,separator=dot", "separator=dot: it is comma"),
        ("time", "\"time\" is not KEY=VALUE"),
    ] {
        let mut trace = Trace::new(file("c.txt", "1,2,3,4\n"));
        trace.columns = Some(columns.into());
        let message = refusal(trace);
        assert!(message.starts_with(&format!("workload.source.columns: {expected}")), "{message}");
    }
    let mut trace = Trace::new(file("c.txt", "1,4096,4096,1\n"));
    trace.columns = Some("time=1,unit=us,offset=2,length=3,op=4".into());
    assert!(refusal(trace.clone()).starts_with("c.txt:1: field 4 (op): unknown operation \"1\""));
    trace.format = Some(FormatName::parse("msr").unwrap());
    assert!(refusal(trace).contains("only the format columns has a description"));
}

const QUEUED_READ: u32 = 0x0011_0001;
const QUEUED_WRITE: u32 = 0x0012_0001;
const COMPLETED_WRITE: u32 = 0x0082_0008;

#[test]
fn blktrace_gives_one_action() {
    let records = [
        // A message, a passed-through command, and requests of every kind.
        blktrace(0, 0x0400_0002, 0, 0, b"hello"),
        blktrace(5, 0x0211_0001, 0, 512, b""),
        blktrace(10, QUEUED_READ, 8, 4096, b""),
        blktrace(20, QUEUED_WRITE, 16, 512, b"12345678"),
        blktrace(30, 0x0014_0001, 0, 0, b""),
        blktrace(30, 0x2012_0001, 64, 8192, b""),
        blktrace(40, COMPLETED_WRITE, 16, 512, b""),
    ]
    .concat();
    let path = file("disk.blktrace.0", &records);
    let (arrivals, counts) = replay(unaligned(path.clone())).unwrap();
    assert_eq!(arrivals, [read(0, 8, 8), write(10, 16, 1), flush(20), trim(20, 64, 16)]);
    assert_eq!((counts.read, counts.not_io), (4, 3));
    assert_eq!(info(&Trace::new(&path)).unwrap().devices[0].name, "259,2");
    let mut completed = unaligned(path);
    completed.action = Some("C".into());
    assert_eq!(replay(completed).unwrap().0, [write(0, 16, 1)]);
}

#[test]
fn blktrace_has_flushes_before_requests_and_cgroups() {
    const FLUSHED: u32 = 1 << 18;
    const FORCED: u32 = 1 << 31;
    const OF_CGROUP: u32 = 1 << 8;
    let records = [
        blktrace(10, QUEUED_READ | OF_CGROUP, 8, 4096, b"12345678"),
        blktrace(20, QUEUED_WRITE | FLUSHED | FORCED, 16, 512, b""),
        blktrace(30, QUEUED_WRITE | FORCED | OF_CGROUP, 24, 512, b"12345678"),
    ]
    .concat();
    let trace = unaligned(file("disk.blktrace.0", records));
    let expected = [read(0, 8, 8), flush(10), write(10, 16, 1), write(20, 24, 1)];
    assert_eq!(replay(trace.clone()).unwrap().0, expected);
    assert_eq!(
        info(&trace).unwrap().notes,
        ["2 writes with FUA, forced to the medium, are taken for any other"]
    );
}

#[test]
fn blktrace_reads_the_files_of_all_cpus() {
    let first = file(
        "disk.blktrace.0",
        [blktrace(10, QUEUED_READ, 8, 512, b""), blktrace(30, QUEUED_READ, 16, 512, b"")].concat(),
    );
    for (cpu, records) in [
        ("1", blktrace(20, QUEUED_WRITE, 24, 512, b"")),
        ("2", Vec::new()),
        ("10", blktrace(25, QUEUED_WRITE, 32, 512, b"")),
    ] {
        std::fs::write(first.with_extension(cpu), records).unwrap();
    }
    let trace = unaligned(first);
    assert!(info(&trace).unwrap().notes[0].contains("the files of 3 CPUs"));
    let (arrivals, _) = replay(trace).unwrap();
    assert_eq!(arrivals, [read(0, 8, 1), write(10, 24, 1), write(15, 32, 1), read(20, 16, 1)]);
}

#[test]
fn a_change_of_another_cpus_file_is_seen() {
    let first = file("disk.blktrace.0", blktrace(10, QUEUED_READ, 8, 512, b""));
    let second = first.with_extension("1");
    let replayed = || replay(unaligned(first.clone())).unwrap().0;
    std::fs::write(&second, blktrace(20, QUEUED_WRITE, 24, 512, b"")).unwrap();
    assert_eq!(replayed(), [read(0, 8, 1), write(10, 24, 1)]);
    let more = [blktrace(20, QUEUED_WRITE, 32, 512, b""), blktrace(30, QUEUED_READ, 40, 512, b"")];
    std::fs::write(&second, more.concat()).unwrap();
    assert_eq!(replayed(), [read(0, 8, 1), write(10, 32, 1), read(20, 40, 1)]);
}

#[test]
fn what_is_wrong_with_another_cpus_file_is_said_of_it() {
    let first = file("disk.blktrace.0", blktrace(10, QUEUED_READ, 8, 512, b""));
    let backwards = [blktrace(20, QUEUED_WRITE, 24, 512, b""), blktrace(5, QUEUED_READ, 32, 512, b"")];
    std::fs::write(first.with_extension("1"), backwards.concat()).unwrap();
    let message = refusal(unaligned(first.clone()));
    assert!(message.starts_with("disk.blktrace.1: byte 48: the time goes back by "), "{message}");
    std::fs::write(first.with_extension("1"), blktrace(20, QUEUED_WRITE, 1 << 40, 512, b"")).unwrap();
    for devices in [DeviceSpaces::Separate, DeviceSpaces::Merge] {
        let message = refusal(Trace { devices, ..unaligned(first.clone()) });
        assert!(message.starts_with("disk.blktrace.1: byte 0: "), "{message}");
    }
}

#[test]
fn blktrace_merges_the_cpus_of_one_stream() {
    // As from a pipe: a piece of one CPU, then one of the other, which began earlier.
    let of = |cpu: u32, times: &[u64]| -> Vec<u8> {
        let records = times.iter().map(|time| {
            let mut record = blktrace(*time, QUEUED_READ, *time * 8, 512, b"more");
            record[40..44].copy_from_slice(&cpu.to_le_bytes());
            record
        });
        records.flatten().collect()
    };
    let stream = [of(0, &[10, 40, 50]), of(1, &[0, 20, 60]), of(0, &[55, 70]), of(1, &[61])].concat();
    let trace = unaligned(file("stream.bin", stream));
    let times: Vec<u64> = replay(trace).unwrap().0.iter().map(|arrival| arrival.lba.0 / 8).collect();
    assert_eq!(times, [0, 10, 20, 40, 50, 55, 60, 61, 70]);
    // A CPU is in order in itself; where it is not, the trace is.
    let message = refusal(Trace::new(file("stream.bin", of(0, &[10, 5]))));
    assert!(message.contains("reorder"), "{message}");
}

#[test]
fn blktrace_is_read_in_both_byte_orders() {
    let little = blktrace(7, QUEUED_READ, 8, 512, b"");
    let mut big = Vec::new();
    let mut rest = &little[..];
    for size in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
        big.extend(rest[..size].iter().rev());
        rest = &rest[size..];
    }
    for records in [little, big] {
        assert_eq!(replay(unaligned(file("b.blktrace.0", records))).unwrap().0, [read(0, 8, 1)]);
    }
}

#[test]
fn events_of_another_action_are_advised() {
    let advice = "none of its events has the action Q, 1 have C: action = \"C\" takes those";
    let text = "8,0 3 1 0.000000000 697 C R 0 + 8 [0]\n";
    for path in [file("c.txt", text), file("c.blktrace.0", blktrace(1, COMPLETED_WRITE, 0, 512, b""))] {
        assert!(refusal(Trace::new(&path)).contains(advice));
        assert!(info(&Trace::new(&path)).unwrap_err().message.contains(advice));
    }
}

#[test]
fn oracle_general_has_objects_and_no_operations() {
    let records = [oracle(5, 8, 4096, 2), oracle(5, 24, 512, -1), oracle(6, 8, 4096, -1)].concat();
    for contents in [records.clone(), zstd(&records)] {
        let trace = unaligned(file("t.oracleGeneral", contents));
        assert_eq!(format_of(&trace), "oracle-general");
        assert_eq!(
            replay(trace.clone()).unwrap().0,
            [read(0, 8, 8), read(0, 24, 1), read(1_000_000_000, 8, 8)]
        );
        let notes = info(&trace).unwrap().notes;
        assert!(notes[0].contains("every request is taken for a read"));
        assert!(notes[1].contains("all requests of a second arrive at its beginning"), "{notes:?}");
        let told = Trace { time_unit: Some(flashkeel_engine::Span::from_ms(1)), ..trace };
        assert_eq!(info(&told).unwrap().notes.len(), 1);
    }
    let hashed = [oracle(5, 1 << 60, 4096, 2), oracle(5, 24, 512, -1)].concat();
    let message = refusal(Trace::new(file("t.oracleGeneral", hashed)));
    assert!(
        message.starts_with("t.oracleGeneral: record 1 (byte 0): object 1152921504606846976 is no sector")
    );
}

#[test]
fn thousands_of_volumes_are_told_apart() {
    let text: String = (0..60_000u64).map(|n| format!("{},W,0,4096,{n}\n", n * 7919 % 5584)).collect();
    let trace = Trace { devices: DeviceSpaces::Merge, ..Trace::new(file("v.csv", text)) };
    assert_eq!(info(&trace).unwrap().devices.len(), 5584);
    assert_eq!(replay(trace).unwrap().0.len(), 60_000);
}

#[test]
fn the_lowest_bit_of_disksims_flags_is_a_read() {
    let text = "0.5 0 8 16 9\n1.5 0 8 16 a\n2.5 0 8 16 8\n3.5 0 8 16 1f\n4.5 0 8 16 B\n";
    let found = info(&Trace::new(file("x.txt", text))).unwrap();
    assert_eq!((found.format.as_str(), found.reads, found.writes), ("disksim", 3, 2));
    let refused = refusal(Trace::new(file("x.txt", text.to_owned() + "5.5 0 8 16 x\n")));
    assert!(refused.ends_with("field 5 (flags): \"x\" is no hexadecimal number"), "{refused}");
}

#[test]
fn disksims_flags_may_begin_with_0x() {
    let text = "0 0 8 16 0x1\n1 0 8 16 0X0\n2 0 8 16 0x1b\n3 0 8 16 1\n";
    let found = info(&Trace::new(file("x.txt", text))).unwrap();
    assert_eq!((found.format.as_str(), found.reads, found.writes), ("disksim", 3, 1));
    let refused = refusal(Trace::new(file("x.txt", text.to_owned() + "4 0 8 16 0x\n")));
    assert!(refused.ends_with("field 5 (flags): \"0x\" is no hexadecimal number"), "{refused}");
}

#[test]
fn columns_say_how_operations_are_written() {
    let columns = |columns: &str, text: &str| {
        refusal(Trace { columns: Some(columns.to_owned()), ..Trace::new(file("x.csv", text)) })
    };
    let refused = columns("time=1,unit=us,op=2,offset=3,length=4", "1,0,0,4096\n");
    assert!(refused.contains("unknown operation \"0\"; read=… and write=…"), "{refused}");
    let refused = columns("time=1,unit=us,op=2,offset=3,length=4", "1,X,0,4096\n");
    assert!(refused.contains("unknown operation \"X\", expected one of R, W, "), "{refused}");
    let refused = columns("time=1,unit=us,op=2,offset=3,length=4,read=x,write=x", "1,x,0,4096\n");
    assert!(refused.contains("read=x and write=x are the same"), "{refused}");
}

#[test]
fn our_own_columns_are_known_again() {
    let found =
        info(&Trace::new(file("x.csv", "time_ns,operation,offset,bytes\n5,R,0,512\n9,T,512,512\n"))).unwrap();
    assert_eq!((found.format.as_str(), found.trims, found.span_ns), ("columns", 1, 4));
}

#[test]
fn writes_of_zeros_are_counted_by_themselves() {
    let text = "time_ns,operation,offset,bytes\n5,W,0,512\n9,Z,4096,8192\n9,T,0,4096\n";
    let trace = Trace::new(file("x.csv", text));
    let found = info(&trace).unwrap();
    assert_eq!((found.requests, found.writes, found.trims, found.write_zeroes), (3, 1, 1, 1));
    assert_eq!((found.write_bytes, found.write_zeroes_bytes, found.max_address_bytes), (512, 8192, 12288));
    let (_, counts) = replay(trace).unwrap();
    assert_eq!((counts.writes, counts.trims, counts.write_zeroes), (1, 1, 1));
}

#[test]
fn the_unit_of_columns_is_set_among_them() {
    let text: String = (0..500).map(|n| format!("{n},W,{},4096\n", n * 4096)).collect();
    let columns = Some("time=1,unit=ns,op=2,offset=3,length=4".to_owned());
    let notes = info(&Trace { columns, ..Trace::new(file("x.csv", text)) }).unwrap().notes;
    assert!(notes[0].contains("; unit=1us among its columns would make it"), "{notes:?}");
}

#[test]
fn an_idle_cpu_is_no_empty_trace() {
    let idle = file("t.blktrace.0", "");
    std::fs::write(idle.with_file_name("t.blktrace.1"), blktrace(10, 0x0011_0001, 8, 4096, b"")).unwrap();
    assert_eq!(info(&Trace::new(idle)).unwrap().requests, 1);
}
