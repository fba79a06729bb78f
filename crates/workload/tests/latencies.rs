//! Logs of submissions and latencies: read as they were written, refused where they are wrong.

mod common;

use std::path::PathBuf;

use common::*;
use flashkeel_engine::Span;
use flashkeel_workload::{LatencyLog, LatencyLogOptions, Stopped, read_latencies};
use proptest::prelude::*;

const CSV: &str = "submitted_us,operation,lba,sectors,latency_us\n0,read,8,8,100.5\n\
                   50,WRITE,16,16,20\n60,flush,0,0,900\n70,R,0,8,90\n";
const BLKPARSE: &str = "8,0 3 1 0.000000000 697 D R 0 + 8 [a]\n8,0 3 2 0.000000100 697 Q R 0 + 8 [a]\n\
                        8,0 3 3 0.000010000 697 D WS 64 + 16 [a]\n8,0 3 4 0.000030000 0 C WS 64 + 16 [0]\n\
                        8,0 3 5 0.000090000 0 C R 0 + 8 [0]\n8,0 3 6 0.000100000 697 D R 8 + 8 [a]\n\
                        8,0 3 7 0.000110000 0 C R 512 + 8 [0]\nCPU3 (8,0):\n Reads Queued: 1\n";
const FIO: &str = "0, 300000, 0, 4096, 8192, 0\n0, 600000, 1, 4096, 0, 0\n1, 500000, 2, 4096, 0, 0\n\
                   1, 500000, 0, 8192, 4096, 0\n";
const MSR: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
                   128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                   128166372003061729,usr,0,Write,512,512,10\n";
const SYSTOR: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n1455592561.000000000,0.000250000,R,2,8192,4096\n\
                      1455592561.000100000,,,2,0,0\n1455592561.000200000,0.001000000,W,2,0,4096\n";
const ETW: &str = "BeginHeader\n\
    DiskRead, TimeStamp, Process Name, IOSize, DiskNum, ByteOffset, ElapsedTime\n\
    DiskWrite, TimeStamp, Process Name, IOSize, DiskNum, ByteOffset, ElapsedTime\n\
    DiskFlush, TimeStamp, Process Name, DiskNum, ElapsedTime\nEndHeader\n\
    DiskRead, 300, a, 0x1000, 0, 0x2000, 200\nDiskFlush, 310, a, 0, 5\n\
    DiskWrite, 350, a, 0x200, 0, 0x400, 400\n";
const IOLOG: &str = "fio version 3 iolog\n0 /d add\n5 /d open\n10 /d read 8192 4096\n350 /d write 0 4096\n\
                     960 /d read 4096 8192\n970 /d read 0 4096\n";

fn read_with(path: PathBuf, options: &LatencyLogOptions) -> Result<LatencyLog, Stopped> {
    read_latencies(&path, options, &mut go_on)
}

fn log(name: &str, text: &str) -> Result<LatencyLog, Stopped> {
    read_with(file(name, text), &LatencyLogOptions::default())
}

fn refused(name: &str, text: &str) -> String {
    let message = log(name, text).expect_err("it is wrong").to_string();
    // Without the folder, which is another each time.
    let at = message.find(name).expect("it names the file");
    message[at..].to_owned()
}

/// Times of submission and latencies in us, first sectors and sectors.
fn told(log: &LatencyLog) -> Vec<(u64, u64, u64, u32)> {
    let of = |served: &flashkeel_workload::Served| {
        (served.submitted.0 / 1000, served.latency.0 / 1000, served.lba.0, served.sectors)
    };
    log.requests.iter().map(of).collect()
}

#[test]
fn columns_without_a_unit_have_times_of_a_calendar() {
    const NOON_US: u64 = 1_709_294_400_000_000;
    let on_that_day = |(time_us, latency_us, lba, sectors)| (NOON_US + time_us, latency_us, lba, sectors);
    let plain = told(&log("log.csv", CSV).expect("it is a log"));
    let expected: Vec<_> = plain.into_iter().map(on_that_day).collect();
    let calendar = |line: &str| match line.split_once(',') {
        Some(("submitted_us", rest)) => format!("submitted,{rest}\n"),
        Some((time, rest)) => format!("\"2024-03-01T12:00:00.{time:0>6}Z\",{rest}\n"),
        None => unreachable!("each line has commas"),
    };
    let text: String = CSV.lines().map(calendar).collect();
    assert_eq!(told(&log("log.csv", &text).expect("it is a log")), expected);
    let message = refused("log.csv", &CSV.replace("submitted_us", "submitted"));
    assert_eq!(
        message,
        "log.csv:2: field 1 (submitted): \"0\" is no time such as 2024-03-01T12:00:00.25; of numbers the \
         name says the unit, as submitted_us"
    );
}

#[test]
fn columns_go_by_their_names() {
    let found = log("log.csv", CSV).expect("it is a log");
    assert_eq!((found.format, found.passed_over), ("columns", 1));
    assert_eq!(told(&found), [(0, 100, 8, 8), (50, 20, 16, 16), (70, 90, 0, 8)]);
    assert_eq!(found.requests[0].latency.0, 100_500);
    let bytes = "device;op;offset;bytes;time_ns;completed_ns;x\nsda;W;4096;512;2000;5000;1\n";
    assert_eq!(told(&log("log.csv", bytes).expect("it is a log")), [(2, 3, 8, 1)]);
}

#[test]
fn a_log_may_have_more_columns_than_are_read() {
    let wide = |text: &str| -> String {
        let more = |line: &str| format!("{line}{}\n", ",x".repeat(70));
        text.lines().map(more).collect()
    };
    let found = log("log.csv", &wide(CSV)).expect("it is a log");
    assert_eq!(told(&found), [(0, 100, 8, 8), (50, 20, 16, 16), (70, 90, 0, 8)]);
    let message = refused("log.csv", &(wide(CSV) + "1,2\n"));
    assert!(message.contains("found 2"), "{message}");
    // What lies beyond those is not taken.
    let behind = CSV.lines().map(|line| format!("{}{line}\n", "x,".repeat(70))).collect::<String>();
    assert!(log("log.csv", &behind).is_err());
}

#[test]
fn block_events_are_paired() {
    let found = log("trace.txt", BLKPARSE).expect("it is a log");
    assert_eq!(told(&found), [(0, 90, 0, 8), (10, 20, 64, 16)]);
    assert!(found.notes[0].starts_with("1 completions without a submission and 1 submissions"));
    let backwards = BLKPARSE.replace("0.000090000", "0.000000000").replacen("0.000000000", "0.000000050", 1);
    let message = refused("trace.txt", &backwards);
    assert_eq!(message, "trace.txt:5: the completion is 50 ns before its submission");
    let message = refused("trace.txt", "8,0 3 1 0.000000000 697 Q R 0 + 8 [a]\n");
    assert!(message.starts_with("trace.txt: 0 D events and 0 C events"), "{message}");
}

#[test]
fn block_events_of_a_file_system_are_paired() {
    let flushed = BLKPARSE.replace("CPU3 (8,0)", "8,0 3 8 0.000120000 0 C FN 0 [0]\nCPU3 (8,0)").replace(
        "8,0 3 4",
        "8,0 3 3 0.000020000 7 D FN [a]\n8,0 3 3 0.000021000 0 C WS 0 [0]\n\
         8,0 3 3 0.000022000 7 D R 36 (12 00 ..) [a]\n8,0 3 3 0.000023000 0 C R (12 00 ..) [0]\n8,0 3 4",
    );
    let found = log("trace.txt", &flushed).expect("it is a log");
    assert_eq!(told(&found), told(&log("trace.txt", BLKPARSE).expect("it is a log")));
}

#[test]
fn a_lost_completion_does_not_move_those_after_it() {
    let text = "8,0 3 1 0.000000000 697 D W 64 + 8 [a]\n8,0 3 2 0.000100000 697 D W 64 + 8 [a]\n\
                8,0 3 3 0.000120000 0 C W 64 + 8 [0]\n8,0 3 4 0.000200000 697 D W 64 + 8 [a]\n\
                8,0 3 5 0.000230000 0 C W 64 + 8 [0]\n";
    let found = log("trace.txt", text).expect("it is a log");
    assert_eq!(told(&found), [(100, 20, 64, 8), (200, 30, 64, 8)]);
    assert!(found.notes[0].starts_with("0 completions without a submission and 1 submissions"));
}

#[test]
fn traces_with_response_times_are_logs() {
    let found = log("usr_0.csv", MSR).expect("it has response times");
    assert_eq!((found.format, found.passed_over), ("msr", 0));
    assert_eq!(told(&found), [(0, 4128, 13_700_410, 48), (10, 1, 1, 1)]);
    let bare: String = MSR.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert_eq!(log("usr_0.csv", &bare).expect("a header may be missing").requests.len(), 2);
    let found = log("lun.csv", SYSTOR).expect("it has response times");
    assert_eq!((found.format, found.passed_over), ("systor", 1));
    assert_eq!(told(&found), [(0, 250, 16, 8), (200, 1000, 0, 8)]);
    let found = log("dtrs.csv", ETW).expect("it has both times");
    assert_eq!((found.format, found.passed_over), ("etw", 1));
    // The write was issued before the trace began.
    let began = found.requests[0].submitted.0 / 1000;
    assert_eq!(told(&found), [(began, 400, 2, 1), (began + 150, 200, 16, 8)]);
}

#[test]
fn logs_of_fio_with_and_without_the_io_log() {
    let found = log("l_lat.1.log", FIO).expect("it is a log");
    assert_eq!((found.format, found.passed_over), ("fio", 1));
    // One after the other, which the milliseconds allow, with the same gap between them.
    assert_eq!(told(&found), [(0, 300, 16, 8), (400, 600, 0, 8), (1_100, 500, 8, 16)]);
    assert!(found.notes[0].contains("one request at a time"), "{:?}", found.notes);
    let options = LatencyLogOptions { iolog: Some(file("io.log", IOLOG)), device: None, time_unit: None };
    let exact = read_with(file("l_lat.1.log", FIO), &options).expect("they are of one job");
    assert_eq!(told(&exact), [(10, 300, 16, 8), (350, 600, 0, 8), (960, 500, 8, 16)]);
    assert_eq!(exact.notes, ["1 submissions of the I/O log never ended"]);
    // Of newer versions, which say when each was issued.
    let issued = FIO.replace("\n", ", 7000\n");
    assert_eq!(told(&log("l_lat.1.log", &issued).expect("it is a log"))[1], (7, 600, 0, 8));
}

#[test]
fn a_tick_of_a_log_may_be_another_and_that_it_is_assumed_is_said() {
    let lines: String =
        (0..200).map(|at| format!("{},usr,0,Read,{},4096,90\n", at * 150, at * 4096)).collect();
    let with = |time_unit| LatencyLogOptions { time_unit, ..LatencyLogOptions::default() };
    let found = read_with(file("us.csv", &lines), &with(None)).expect("it is a log");
    assert_eq!(told(&found)[1], (15, 9, 8, 8));
    assert!(found.notes[0].contains("taken for ticks of 100ns; --time-unit"), "{:?}", found.notes);
    let found = read_with(file("us.csv", &lines), &with(Some(Span(1000)))).expect("it is a log");
    assert_eq!(told(&found)[1], (150, 90, 8, 8));
    assert_eq!(found.notes, [""; 0]);
    let found = read_with(file("usr.csv", MSR), &with(None)).expect("it is a log");
    assert_eq!(found.notes, [""; 0]);
    // More than any drive serves.
    let ns: String = (0..200).map(|at| format!("{at},usr,0,Read,{},4096,90\n", at * 4096)).collect();
    let found = read_with(file("ns.csv", &ns), &with(Some(Span(1)))).expect("it is a log");
    assert!(found.notes[0].ends_with("--time-unit 1us would make it 1000000 a second"), "{:?}", found.notes);
    let found = read_with(file("dtrs.csv", ETW), &with(Some(Span(100)))).expect("it is a log");
    assert_eq!(found.requests[1].latency, Span(20_000));
    for (text, time_unit) in [(CSV, Span(1000)), (FIO, Span(1000)), (MSR, Span(0))] {
        let message =
            read_with(file("log", text), &with(Some(time_unit))).expect_err("it has none").to_string();
        assert!(message.starts_with("--time-unit: "), "{message}");
    }
}

#[test]
fn times_that_are_coarse_beside_latencies_are_noted() {
    let noted = |tick_us: u64, latency_tick_us: u64| {
        let line = |each: u64| {
            let (at, took) = (each * 170 / tick_us, (80 + each * 37 % 90) / latency_tick_us);
            format!("{},R,{},4096,{}\n", at * tick_us, each * 4096, took * latency_tick_us)
        };
        let lines: String = (0..400).map(line).collect();
        log("log.csv", &format!("submitted_us,op,offset,bytes,latency_us\n{lines}"))
            .expect("it is a log")
            .notes
    };
    assert_eq!(noted(1, 1), [""; 0]);
    assert_eq!(noted(10, 10), [""; 0]);
    assert_eq!(
        noted(1000, 1),
        ["its times of submission are whole 1ms, with a median latency of 125us: which requests were \
          outstanding together is not known any better"]
    );
    let found = noted(1, 100);
    assert_eq!(
        found,
        ["its latencies are whole 100us, with a median of 100us: what is slow is not known any better"]
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (name, text, words) in [
        ("l.log", FIO.replace(", 8192, 0\n", ", 0\n"), "l.log:2: 6 fields, where the lines before it have 5"),
        ("l.log", "0, 30, 0, 4096, 0\n".into(), "l.log: it says of no request where it lies"),
        ("l.log", FIO.replace(" 600000", " -600"), "l.log:2: field 2 (latency_ns): \"-600\" is negative"),
        ("l.log", FIO.replace("4096, 0, 0", "0, 0, 0"), "l.log:2: field 4 (bytes): 0, as in logs of means"),
        ("l.log", FIO.replace("1, 500000, 2", "1, 500000, 9"), "l.log:3: field 3 (direction): \"9\" is none"),
        ("io.log", IOLOG.into(), "io.log:1: an I/O log of fio has no latencies"),
        ("a.csv", "1,R,0,512,5\n".into(), "a.csv:1: a trace of the format alibaba"),
        ("c.csv", CSV.replace(",latency_us", ",latency"), "c.csv:1: no column latency_ns or completed_ns"),
        (
            "c.csv",
            CSV.replace("operation", "operatoin"),
            "c.csv:1: no column operation; is that \"operatoin\"?",
        ),
        ("c.csv", CSV.replace("100.5", "-1"), "c.csv:2: field 5 (latency_us): \"-1\" is negative"),
        (
            "c.csv",
            CSV.replace("latency", "completed"),
            "c.csv:3: field 5 (completed_us): the completion is 30000 ns before",
        ),
        ("c.csv", CSV.replace("0,8,90\n", "0"), "c.csv:5: expected 5 fields separated by commas"),
        ("c.csv", CSV.replace("R,0,8", "R,0,0"), "c.csv:5: a read or write of 0 bytes"),
        ("c.csv", CSV.replace(",R,", ",X,"), "c.csv:5: field 2 (operation): unknown operation \"X\""),
        (
            "c.csv",
            "submitted_us,operation,lba,sectors,latency_us\n".into(),
            "c.csv: it has no read and no write",
        ),
        ("m.csv", MSR.replace(",10\n", ",-10\n"), "m.csv:3: field 7 (response time): \"-10\" is negative"),
        (
            "s.csv",
            SYSTOR.replace(",0.001000000,W", ",,W"),
            "s.csv:4: field 2 (response): \"\" is not a whole",
        ),
        (
            "e.csv",
            ETW.replace("0x2000, 200\n", "0x2000, many\n"),
            "e.csv:6: field 7 (ElapsedTime): \"many\" is not a whole number",
        ),
        ("c.csv", String::new(), "c.csv: the file is empty"),
        ("c.txt", "hello world\n".into(), "c.txt:1: no known log of latencies; known are fio's"),
    ] {
        let message = refused(name, &text);
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn times_with_which_nothing_can_be_reckoned_are_refused() {
    let most = u64::MAX;
    for (text, words) in [
        (
            "18446744073709, 1000, 0, 4096, 8192, 0\n".to_owned(),
            "log:1: a time of 18446744073709000000 ns, more than",
        ),
        (
            format!("1, {most}, 0, 4096, 8192, 0\n"),
            "log:1: a latency of 18446744073709551615 ns, more than a day",
        ),
        (format!("op,lba,sectors,time_ns,latency_ns\nR,0,8,{most},0\n"), "log:2: a time of"),
        (format!("op,lba,sectors,time_ns,latency_ns\nR,0,8,0,{most}\n"), "log:2: a latency of"),
    ] {
        let message = refused("log", &text);
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn of_several_devices_one_is_named() {
    let two = BLKPARSE.replacen("8,0 3 3", "8,16 3 3", 1).replacen("8,0 3 4", "8,16 3 4", 1);
    let message = refused("trace.txt", &two);
    assert!(
        message.starts_with("trace.txt: requests to several devices: 8,0, 8,16; --device NAME"),
        "{message}"
    );
    let options = LatencyLogOptions { iolog: None, device: Some("8,16".into()), time_unit: None };
    assert_eq!(told(&read_with(file("trace.txt", &two), &options).expect("it is there")), [(10, 20, 64, 16)]);
    let options = LatencyLogOptions { iolog: None, device: Some("8,17".into()), time_unit: None };
    let message = read_with(file("trace.txt", &two), &options).expect_err("it is not").to_string();
    assert!(message.starts_with("--device: ") && message.contains("did you mean \"8,16\"?"), "{message}");
}

#[test]
fn io_logs_of_another_job_are_refused() {
    let other = IOLOG.replace("write 0 4096", "write 4096 4096");
    let options = LatencyLogOptions { iolog: Some(file("io.log", other)), device: None, time_unit: None };
    let message = read_with(file("l.log", FIO), &options).expect_err("not of one job").to_string();
    assert!(message.contains("l.log:2: ") && message.contains("both logs of the same job?"), "{message}");
    let late = IOLOG.replace("350 /d", "9350 /d");
    let options = LatencyLogOptions { iolog: Some(file("io.log", late)), device: None, time_unit: None };
    let message = read_with(file("l.log", FIO), &options).expect_err("not of one job").to_string();
    assert!(message.contains("l.log:2: the request ended 8950 us before"), "{message}");
    let options = LatencyLogOptions { iolog: Some(file("io.log", IOLOG)), device: None, time_unit: None };
    assert!(read_with(file("c.csv", CSV), &options).expect_err("no fio").to_string().contains("--iolog: "));
}

proptest! {
    /// Whatever a log holds, reading it ends with requests or an error.
    #[test]
    fn nothing_panics(which in 0..7usize, at in 0..400usize, byte in any::<u8>(), cut in 0..400usize) {
        let mut text = [CSV, BLKPARSE, FIO, IOLOG, MSR, SYSTOR, ETW][which].as_bytes().to_vec();
        let length = text.len();
        text[at % length] = byte;
        text.truncate(length - cut % length);
        let options = LatencyLogOptions { iolog: (which == 3).then(|| file("io.log", &text)), device: None, time_unit: None };
        let path = if which == 3 { file("l.log", FIO) } else { file("l.log", &text) };
        if let Ok(log) = read_with(path, &options) {
            prop_assert!(log.requests.is_sorted_by_key(|served| served.submitted));
        }
    }
}
