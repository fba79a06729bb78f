//! What cannot be used is refused with its place and a reason; nothing panics.

mod common;

use common::*;
use flashkeel_engine::Span;
use flashkeel_workload::{FormatName, Location, SourceConfig, Trace};
use proptest::prelude::*;

const MSR: &str = "100,hm,1,Read,0,4096,0\n200,hm,1,Write,4096,4096,0\n300,hm,1,Read,8192,4096,0\n";
const MQSIM: &str = "100 0 0 8 1\n200 0 8 8 0\n300 0 16 8 1\n";
const FIO: &str = "fio version 3 iolog\n0 f open\n1 f read 0 4096\n2 f write 4096 4096\n";
const ETW: &str = "BeginHeader\n DiskRead, TimeStamp, DiskNum, ByteOffset, IOSize\nEndHeader\n DiskRead, 10, 0, 0x0, 0x1000\n DiskRead, 20, 0, 0x1000, 0x1000\n";
const BLKPARSE: &str = "8,0 3 1 0.000000000 697 Q R 0 + 8 [a]\n8,0 3 2 0.000000100 697 Q W 8 + 8 [a]\n";

fn refused(name: &str, contents: impl AsRef<[u8]>) -> String {
    refusal(Trace::new(file(name, contents)))
}

#[test]
fn files_that_cannot_be_read() {
    let path = file("hm_1.csv", MSR);
    let missing = refusal(Trace::new(path.with_file_name("hm_l.csv")));
    assert_eq!(missing, "hm_l.csv: cannot read it: No such file or directory; did you mean \"hm_1.csv\"?");
    let folder = refusal(Trace::new(path.parent().unwrap()));
    assert!(folder.contains("Is a directory"), "{folder}");
    assert_eq!(refused("e.csv", ""), "e.csv: the file is empty");
    assert_eq!(refused("e.csv.gz", gzip(b"")), "e.csv.gz: the file is empty");
    let only_actions = refused("f.log", "fio version 3 iolog\n0 f add\n0 f open\n");
    assert_eq!(only_actions, "f.log: no request in it (2 lines or records of other kinds)");
}

#[test]
fn compressed_data_that_is_cut_off_or_damaged() {
    let text: Vec<u8> = (0..20_000).flat_map(|n| format!("{n} 0 {n} 8 1\n").into_bytes()).collect();
    for (compress, name) in [(gzip as fn(&[u8]) -> Vec<u8>, "t.gz"), (zstd, "t.zst")] {
        let whole = compress(&text);
        let cut = refused(name, &whole[..whole.len() / 2]);
        assert!(cut.starts_with(&format!("{name}: the compressed data is cut off; ")), "{cut}");
        let cut = refused(name, &whole[..whole.len() - 3]);
        assert!(cut.contains("the compressed data is cut off"), "{cut}");
        let mut damaged = whole.clone();
        let at = damaged.len() - 6;
        damaged[at] ^= 0x55;
        let damaged = refused(name, damaged);
        assert!(damaged.contains("the compressed data is damaged"), "{damaged}");
    }
    assert!(refused("t.gz", [0x1f, 0x8b]).contains("cut off"));
    assert!(refused("t.zst", [0x28, 0xb5, 0x2f, 0xfd]).contains("cut off"));
}

#[test]
fn each_line_error_names_line_and_field() {
    for (name, text, from, to, expected) in [
        (
            "t.csv",
            MSR,
            "Write",
            "Wrte",
            ":2: field 4 (type): unknown operation \"Wrte\"; did you mean \"Write\"?",
        ),
        ("t.csv", MSR, "8192", "-8192", ":3: field 5 (offset): \"-8192\" is negative"),
        ("t.csv", MSR, "8192", "8k", ":3: field 5 (offset): \"8k\" is not a whole number"),
        (
            "t.csv",
            MSR,
            "300",
            "99999999999999999999",
            ":3: field 1 (timestamp): \"99999999999999999999\" is too large",
        ),
        (
            "t.csv",
            MSR,
            "300",
            "999999999999999999",
            ":3: field 1 (timestamp): too large for a time in nanoseconds",
        ),
        (
            "t.csv",
            MSR,
            "8192,4096",
            "8192,0",
            ":3: a request of no length; zero_length = \"skip\" leaves such requests out",
        ),
        (
            "t.csv",
            MSR,
            "200,hm",
            "50,hm",
            ":2: the time goes back by 5us; reorder = \"5us\" or more puts requests in order within such a window",
        ),
        (
            "t.csv",
            MSR,
            "200,hm,1,",
            "200,hm,",
            ":2: expected 7 fields separated by commas (timestamp, hostname, disk number, type, offset, size, response time), found 6: \"200,hm,Write,4096,4096,0\"",
        ),
        (
            "t.csv",
            MSR,
            "200,hm,1,Write,4096,4096,0",
            "200;hm;1;Write;4096;4096;0",
            ":2: expected 7 fields separated by commas (timestamp, hostname, disk number, type, offset, size, response time), found 1; this line is separated by semicolons",
        ),
        (
            "t.csv",
            MSR,
            "200,hm,1,Write,4096,4096,0",
            "200\thm\t1\tWrite\t4096\t4096\t0",
            ":2: expected 7 fields separated by commas (timestamp, hostname, disk number, type, offset, size, response time), found 1; this line is separated by tabs",
        ),
        ("t.mq", MQSIM, "200 0 8 8 0", "200 0 word 8 0", ":2: field 3 (lba): \"word\" is not a whole number"),
        (
            "t.mq",
            MQSIM,
            "200 0 8 8 0",
            "hello",
            ":2: expected 5 fields separated by spaces (time, device, lba, sectors, operation), found 1: \"hello\"",
        ),
        (
            "t.mq",
            MQSIM,
            "16 8 1",
            "16 8 2",
            ":3: field 5 (operation): unknown operation \"2\"; 1 is a read and 0 a write",
        ),
        (
            "t.mq",
            MQSIM,
            "200 0 8 8 0",
            "200,0,8,8,0",
            ":2: expected 5 fields separated by spaces (time, device, lba, sectors, operation), found 1; this line is separated by commas",
        ),
        (
            "t.mq",
            MQSIM,
            "16 8 1",
            "16 3000000000 1",
            ":3: a request of 1536000000000 bytes; none is longer than 1TiB",
        ),
        (
            "t.mq",
            MQSIM,
            "16 8 1",
            "99999999999999999 8 1",
            ":3: field 3 (lba): sector 99999999999999999 and a length of 8 lie beyond any 64-bit address",
        ),
        (
            "t.log",
            FIO,
            "f write",
            "f wirte",
            ":4: field 3 (action): unknown operation \"wirte\"; did you mean \"write\"?",
        ),
        ("t.log", FIO, "4096 4096", "4096", ":4: field 5 (length): missing; fields are separated by spaces"),
        ("t.log", FIO, "2 f", "two f", ":4: field 1 (timestamp): \"two\" is not a whole number"),
        ("t.log", FIO, "2 f write", "2 f wait", ":4: field 3 (action): version 3 has timestamps and no wait"),
        ("t.blk", BLKPARSE, "Q W 8 + 8", "Q Z 8 + 8", ":2: field 7 (rwbs): unknown operation \"Z\""),
        (
            "t.blk",
            BLKPARSE,
            "Q W 8 + 8",
            "Q W 8 - 8",
            ":2: field 9 (+): expected + between first sector and number of sectors",
        ),
        (
            "t.blk",
            BLKPARSE,
            "0.000000100",
            "0.1e-7",
            ":2: field 4 (seconds): \"0.1e-7\" is not seconds with decimals",
        ),
        ("t.blk", BLKPARSE, "8,0 3 2", "word 8,0 3 2", ":2: field 1 (device): \"word\" is not major,minor"),
        ("t.blk", BLKPARSE, "697 Q W", "697 K W", ":2: field 6 (action): unknown action \"K\"; did you mean"),
    ] {
        assert!(text.contains(from), "{from}");
        let message = refused(name, text.replacen(from, to, 1));
        let expected = format!("{name}{expected}");
        assert!(message.starts_with(&expected), "expected {expected}\n     got {message}");
    }
}

#[test]
fn a_bad_first_line_is_still_found() {
    let message = refused("t.csv", MSR.replacen("Read", "Raed", 1));
    assert_eq!(message, "t.csv:1: field 4 (type): unknown operation \"Raed\"; did you mean \"Read\"?");
    let message = refused("t.mq", format!("begin\n{MQSIM}"));
    assert!(message.starts_with("t.mq:1: expected 5 fields"), "{message}");
}

#[test]
fn separators_of_another_kind_are_named() {
    let message = refused("t.txt", MQSIM.replace(' ', ","));
    assert!(message.contains("looks like mqsim separated by commas"), "{message}");
    let message = refused("t.csv", MSR.replace(',', ";"));
    assert!(message.contains("looks like msr separated by semicolons"), "{message}");
    let message = refused("t.csv", MSR.replace(',', "\t"));
    assert!(message.contains("looks like msr separated by tabs"), "{message}");
    let message = refused("t.txt", "some prose, of no format at all\n");
    assert!(
        message.contains("t.txt:1: no known trace format") && message.contains("msr, vscsi"),
        "{message}"
    );
}

#[test]
fn what_is_around_fields_is_named() {
    let each = |change: fn(&str) -> String| MSR.lines().map(|line| change(line) + "\n").collect::<String>();
    for (text, words) in [
        (each(|line| format!("'{}'", line.replace(',', "','"))), "with its fields in single quotation marks"),
        (each(|line| format!("{line},")), "with a separator behind the last field"),
    ] {
        let message = refused("t.csv", &text);
        let expected =
            format!("this looks like msr {words}, which has 7 fields separated by commas: timestamp");
        assert!(message.contains(&expected), "{message}");
    }
    let message = refused("t.fio", format!("# of last night\n{FIO}"));
    assert!(message.contains("this looks like fio with comments between its lines"), "{message}");
}

#[test]
fn a_forced_format_that_is_not_the_files() {
    let mut trace = Trace::new(file("t.csv", MSR));
    for (format, expected) in [
        ("mqsim", "t.csv:1: expected 5 fields separated by spaces"),
        ("fio", "t.csv:1: expected a first line `fio version 2 iolog`"),
        ("blkparse", "t.csv:1: field 1 (device): "),
        ("vscsi", "t.csv: record 1 (byte 0): opcode and version read "),
    ] {
        trace.format = Some(FormatName::parse(format).unwrap());
        let message = refusal(trace.clone());
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn binary_records_are_named_by_number_and_byte() {
    let records: Vec<u8> = (0..5).flat_map(|n| vscsi(0x28, 4096, n, n)).collect();
    let error = replay(Trace::new(file("t.vscsi", &records[..5 * 32 - 1]))).unwrap_err();
    assert_eq!(error.place, Location::Record { number: 5, byte: 128 });
    assert_eq!(error.message, "cut off: 31 of its 32 bytes are there");
    let with = |record: Vec<u8>| refused("t.vscsi", [&records[..], &record].concat());
    assert!(with(vscsi(0x28, 100, 1, 9)).starts_with("t.vscsi: record 6 (byte 160): a length of 100 bytes"));
    assert!(with(vscsi(0x28, 0, 1, 9)).contains("no length"));
    assert!(with(vscsi(0x28, 512, u64::MAX, 9)).contains("beyond any 64-bit address"));
    assert!(with(vscsi(0x28, 512, 1, u64::MAX)).contains("too large for nanoseconds"));
    assert!(with(vscsi(0x28, 512, 1, 2)).contains("the time goes back by 2us"));
    assert!(with(vscsi(0x1234, 512, 1, 9)).contains("opcode and version read 0x01001234"));
}

#[test]
fn an_event_after_the_summary_is_refused() {
    let message = refused("t.blk", format!("{BLKPARSE}CPU0 (8,0):\n Reads\n{BLKPARSE}"));
    assert_eq!(message, "t.blk:5: an event after the summary; were two outputs joined?");
}

#[test]
fn addresses_beyond_the_device() {
    let open = |device: Option<&str>| {
        let mut trace = Trace::new(file("t.mq", "0 0 0 8 1\n1 0 4096 16 1\n2 1 0 8 1\n"));
        trace.device = device.map(str::to_owned);
        let path = trace.path.clone();
        let workload = workload(SourceConfig::Trace(trace));
        let error = workload.open(4096, 1).and_then(|mut source| drain(&mut *source)).unwrap_err();
        strip(&error.to_string(), &path)
    };
    assert_eq!(
        open(None),
        "t.mq:2: device 0 reaches its byte 2105344, beyond the simulated device's 2097152 bytes; \
         fold = \"compact\" leaves out what the trace does not touch, fold = \"wrap\" folds addresses into the device"
    );
    assert_eq!(
        open(Some("0")),
        "t.mq:2: bytes 2097152 to 2105344 lie beyond the device's 2097152 bytes; \
         fold = \"compact\" leaves out what the trace does not touch, fold = \"wrap\" folds addresses into the device"
    );
    // Each fits alone, but not one behind the other.
    let both = Trace::new(file("t.mq", "0 0 2048 8 1\n2 7 0 8 1\n"));
    let path = both.path.clone();
    let error = workload(SourceConfig::Trace(both)).open(4096, 1).err().unwrap().to_string();
    assert_eq!(
        strip(&error, &path),
        "t.mq:2: device 7 reaches its byte 4096, at 2101248 behind the devices before it, beyond the simulated \
         device's 2097152 bytes; devices = \"merge\" puts the devices onto the same addresses, fold = \"compact\" leaves out \
         what the trace does not touch, fold = \"wrap\" folds addresses into the device"
    );
}

#[test]
fn a_device_with_nothing_but_flushes_reaches_nowhere() {
    // The first fills the device, which ends within the mebibyte the next would begin at.
    let lines = "8,0 3 1 0.000000000 697 Q W 4096 + 8 [a]\n8,16 3 2 0.000000100 697 Q FN [a]\n";
    let trace = Trace::new(file("t.blk", lines));
    let requests =
        workload(SourceConfig::Trace(trace)).open(4104, 1).and_then(|mut source| drain(&mut *source));
    assert_eq!(requests.unwrap().len(), 2);
}

#[test]
fn a_device_that_is_not_in_the_trace() {
    let mut trace = Trace::new(file("t.csv", MSR));
    trace.device = Some("hm1".into());
    let message = refusal(trace);
    assert!(message.contains("3 of other devices"), "{message}");
    assert!(message.ends_with("its devices are hm.1; did you mean \"hm.1\"?"), "{message}");
}

#[test]
fn each_error_of_etw_names_line_and_field() {
    for (from, to, expected) in [
        (
            "0x0,",
            "0xg,",
            ":4: field 4 (ByteOffset): \"0xg\" is not a whole number, such as 0x1000, of 64 bits",
        ),
        (
            "0x0, 0x1000",
            "0x0, 0x",
            ":4: field 5 (IOSize): \"0x\" is not a whole number, such as 0x1000, of 64 bits",
        ),
        (
            "0x0,",
            "0xfffffffffffffffff,",
            ":4: field 4 (ByteOffset): \"0xfffffffffffffffff\" is not a whole number, such as 0x1000, of 64 bits",
        ),
        (
            "0x0,",
            "0xffffffffffffffff,",
            ":4: field 4 (ByteOffset): offset and size lie beyond any 64-bit address",
        ),
        ("20,", "-20,", ":5: field 2 (TimeStamp): \"-20\" is not a whole number"),
        ("20,", "99999999999999999,", ":5: field 2 (TimeStamp): too large for a time in nanoseconds"),
        ("20, 0,", "20, C:,", ":5: field 3 (DiskNum): \"C:\" is not a whole number"),
        (
            "20,",
            "5,",
            ":5: the time goes back by 5us; reorder = \"5us\" or more puts requests in order within such a window",
        ),
        (
            "0x1000, 0x1000",
            "0x1000, 0",
            ":5: a request of no length; zero_length = \"skip\" leaves such requests out",
        ),
        (
            "0x1000, 0x1000",
            "0x1000",
            ":5: expected at least 5 fields separated by commas, found 4: \" DiskRead, 20, 0, 0x1000\"",
        ),
        (
            "DiskRead, 20",
            "DiskRaed, 20",
            ":5: field 1 (event): \"DiskRaed\" is not in the header; did you mean \"DiskRead\"?",
        ),
        ("DiskRead, 20", "DiskWrite, 20", ":5: the header does not say what the columns of DiskWrite are"),
        (
            " ByteOffset,",
            "",
            ":2: the header's DiskRead has no column ByteOffset; does EndHeader stand before the events?",
        ),
        (
            "EndHeader",
            "EndHeadre",
            ":4: the header's DiskRead has no column TimeStamp; does EndHeader stand before the events?",
        ),
    ] {
        assert_eq!(refused("t.csv", ETW.replacen(from, to, 1)), format!("t.csv{expected}"));
    }
    assert_eq!(refused("t.csv", "BeginHeader\n P-Start, TimeStamp\n"), "t.csv: its header has no EndHeader");
    assert_eq!(
        refused("t.csv", "BeginHeader\nEndHeader\n P-Start, 1\n"),
        "t.csv: no request in it (3 lines or records of other kinds)"
    );
}

/// A valid trace of each format, for mutation.
fn valid(index: usize) -> Vec<u8> {
    match index {
        0 => MSR.into(),
        1 => MQSIM.into(),
        2 => FIO.into(),
        3 => BLKPARSE.into(),
        4 => (0..4).flat_map(|n| vscsi(0x2a, 4096, n, n)).collect(),
        5 => gzip(MSR.as_bytes()),
        6 => ETW.into(),
        _ => zstd(MQSIM.as_bytes()),
    }
}

/// Reads the file in every format and by detection; whatever happens must not
/// be a panic.
fn survive(contents: &[u8]) {
    let path = file("fuzz", contents);
    for format in FormatName::all().map(Some).chain([None]) {
        let format = format.map(|name| FormatName::parse(name).unwrap());
        let reorder = format.map(|_| Span::from_ms(1));
        let trace = Trace { format, reorder, ..Trace::new(&path) };
        if let Err(error) = replay(trace.clone()) {
            assert!(!error.message.is_empty());
        }
        let wrapped = Trace { fold: flashkeel_workload::trace::Fold::Wrap, ..trace.clone() };
        if let Ok((arrivals, _)) = replay(wrapped) {
            assert!(arrivals.iter().all(|a| a.lba.0 + u64::from(a.sectors) <= DEVICE_SECTORS));
        }
        let _ = info(&trace);
    }
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes);
    }

    #[test]
    fn random_text_does_not_panic(text in "(fio version [23] iolog\n)?([0-9]{1,20}[ ,])?([0-9a-zA-Z,+ -]{0,40}\n){0,4}") {
        survive(text.as_bytes());
    }

    #[test]
    fn mutated_traces_do_not_panic(
        index in 0..8usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..4),
    ) {
        let mut bytes = valid(index);
        for (at, byte, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes[at] = b"0123456789 ,\n-"[byte as usize % 14],
                2 => bytes.insert(at, b'0' + byte % 10),
                _ => bytes.truncate(at),
            }
        }
        survive(&bytes);
    }
}
