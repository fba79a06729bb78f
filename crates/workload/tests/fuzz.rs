//! Mutated traces of every format and packing: whatever they hold, reading them
//! ends, in bounded memory, with requests or an error that says where.
//!
//! Mutations are drawn from a seed, so that a failure can be had again: its
//! message names the seed. Each round of `make soak`, whose number is in
//! `FLASHKEEL_SOAK_ROUND`, tries others, and more of them. What is worth keeping
//! stands in `tests/found`, in hexadecimal, and is read every time.

mod common;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use common::tables::{Cells, table};
use common::*;
use flashkeel_engine::{Span, Stream};
use flashkeel_workload::trace::{Fold, ZeroLength};
use flashkeel_workload::{FormatName, Location, SourceConfig, Trace, WriterName, convert};

/// Seeds tried by a test, and in a round of `make soak`: some minutes.
const SEEDS: u64 = 3_000;
const SOAKED: u64 = 100_000;
/// Longest that one small file may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// A mutated file is no longer than this.
const LONGEST: usize = 4096;

/// A small valid trace of each format, by the name of its format.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        ("msr", text("100,hm,1,Read,0,4096,0\n200,hm,1,Write,4096,4096,0\n300,hm,1,Read,8192,4096,0\n")),
        ("vscsi", (0..4).flat_map(|n| vscsi(0x2a, 4096, n, n)).collect()),
        ("ssdsim", text("100 0 0 8 1\n200 1 8 8 0\n")),
        ("mqsim", text("100 0 0 8 1\n200 1 8 8 0\n300 0 16 8 1\n")),
        ("disksim", text("0.5 0 8 16 1\n2.0 0 24 1 0\n")),
        ("alibaba", text("419,R,4096,8192,1577808000000000\n725,W,12288,512,1577808000001500\n")),
        ("tencent", text("1538323200,8,16,0,1063\n1538323201,24,1,1,1064\n")),
        ("spc", text("0,8,8192,R,0.551706\n1,24,512,w,0.553206,x\n")),
        (
            "systor",
            text("Timestamp,Response,IOType,LUN,Offset,Size\n1456.5,0.1,R,0,4096,8192\n1457.5,0.1,,0,0,0\n"),
        ),
        ("replayer", text("0.5,0,4096,8192,1\n2,0,12288,512,0\n")),
        (
            "blkparse",
            text(
                "8,0 3 1 0.000000000 697 Q R 0 + 8 [a]\n8,0 3 2 0.000000100 697 C W 8 + 8 [a]\nCPU0 (8,0):\n",
            ),
        ),
        ("fio", text("fio version 2 iolog\nf add\nf wait 9 0\nf read 0 4096\nf sync\n")),
        ("fio", text("fio version 3 iolog\n0 f open\n1 f read 0 4096\n2 f trim 4096 4096\n")),
        (
            "etw",
            text(
                "BeginHeader\n DiskRead, TimeStamp, DiskNum, ByteOffset, IOSize\n DiskFlush, TimeStamp, DiskNum\nEndHeader\n DiskRead, 10, 0, 0x0, 0x1000\n DiskFlush, 20, 1\n",
            ),
        ),
        (
            "blktrace",
            [blktrace(10, 0x0011_0001, 8, 4096, b"pdu"), blktrace(20, 0x2012_0001, 16, 512, b"")].concat(),
        ),
        ("oracle-general", [oracle(5, 8, 4096, 2), oracle(5, 24, 512, -1)].concat()),
        ("columns", text("1;R;4096;8192\n2;W;0;512\n3;Z;8192;4096\n")),
        ("parquet", parquet()),
        ("parquet", forgiving_parquet()),
    ]
}

/// A file of two rows with times of two other kinds, and a row without an address.
fn forgiving_parquet() -> Vec<u8> {
    let columns = "REQUIRED DOUBLE time_s; OPTIONAL INT64 offset; OPTIONAL INT64 bytes; \
                   REQUIRED BYTE_ARRAY operation; OPTIONAL INT64 completed (TIMESTAMP_MICROS);";
    let cells = [
        Cells::Double(&[0.25, 1.5]),
        Cells::Some(&[1, 0], &[4096]),
        Cells::Some(&[1, 0], &[512]),
        Cells::Words(&["R", "flush"]),
        Cells::Some(&[1, 0], &[1_750_000]),
    ];
    std::fs::read(table(columns, &[&cells])).unwrap()
}

/// A file of two rows as we write it.
fn parquet() -> Vec<u8> {
    let columns = Some("time=1,unit=us,op=2,offset=3,length=4".to_owned());
    let lines = Trace { columns, ..Trace::new(file("corpus", "1,R,0,4096\n2,W,8192,512\n")) };
    let out = lines.path.with_file_name("corpus.parquet");
    let format = WriterName::parse("parquet").unwrap();
    convert(&lines, format, &out, &mut |_| ControlFlow::Continue(())).unwrap();
    let contents = std::fs::read(&out).unwrap();
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
    contents
}

/// A way to pack a trace.
type Pack = fn(&[u8]) -> Vec<u8>;

const PACKINGS: [Pack; 8] = [
    <[u8]>::to_vec,
    gzip,
    zstd,
    xz,
    bzip2,
    |contents| zip(&[contents], true),
    |contents| zip(&[contents], false),
    |contents| contents.iter().flat_map(|&byte| [byte, 0]).collect(),
];

/// What numbers go wrong at.
const HUGE: [&[u8]; 8] = [
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"36028797018963968",
    b"-1",
    b"0",
    b"1e308",
    b"0.000000000000000000000000001",
];

/// Changes a file in one of several ways.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], draws: &mut Stream) {
    let mut at = |len: usize| draws.below(len as u64 + 1) as usize;
    let place = at(bytes.len());
    match at(8) {
        0 if place < bytes.len() => bytes[place] ^= 1 << at(7),
        1 if place < bytes.len() => bytes[place] = at(255) as u8,
        2 => bytes.truncate(place),
        3 => drop(bytes.drain(place.min(bytes.len())..(place + at(16)).min(bytes.len()))),
        4 => {
            let (from, to) = (at(other.len()), at(other.len()));
            bytes.splice(place..place, other[from.min(to)..from.max(to)].iter().copied());
        }
        5 => {
            let end = (place + at(64)).min(bytes.len());
            let copy = bytes[place..end].to_vec();
            bytes.splice(place..place, copy);
        }
        6 => drop(bytes.splice(place..place, HUGE[at(HUGE.len() - 1)].iter().copied())),
        7 => {
            // A number in its place.
            let is_digit = |byte: &u8| byte.is_ascii_digit();
            let end =
                bytes[place..].iter().position(|byte| !is_digit(byte)).map_or(bytes.len(), |end| place + end);
            drop(bytes.splice(place..end, HUGE[at(HUGE.len() - 1)].iter().copied()));
        }
        _ => drop(bytes.splice(place..place, b"\n, ;\t\0\xff".iter().copied().skip(at(6)).take(1))),
    }
    bytes.truncate(LONGEST);
}

/// Reads the file as its format and by detection, in ways that take different
/// paths through the code.
fn survive(format: &str, contents: &[u8], what: &str) {
    let start = Instant::now();
    let path = file("fuzz", contents);
    let forced = Some(FormatName::parse(format).unwrap());
    let columns = (format == "columns").then(|| "time=1,unit=us,offset=3,length=4,op=2".to_owned());
    let lenient = Trace {
        reorder: Some(Span::from_ms(1)),
        zero_length: ZeroLength::Skip,
        fold: Fold::Wrap,
        ..Trace::new(&path)
    };
    for trace in [
        Trace { format: forced, columns, ..lenient.clone() },
        Trace { fold: Fold::Compact, bad_lines: 2, ..lenient.clone() },
        lenient,
    ] {
        let described = info(&trace);
        let replayed = replay(trace.clone());
        for error in [described.as_ref().err(), replayed.as_ref().err()].into_iter().flatten() {
            assert!(error.message.len() < 2048 && !error.message.is_empty(), "{what}: {error}");
            let is_of_file = error.subject == path.display().to_string();
            assert!(is_of_file || error.subject.starts_with("workload"), "{what}: {error}");
            assert!(error.message.chars().all(|c| !c.is_control()), "{what}: {error:?}");
            if let Location::Line(line) | Location::Row(line) = error.place {
                assert!((1..=LONGEST as u64 * 8).contains(&line), "{what}: {error}");
            }
        }
        if let Ok((arrivals, _)) = replayed {
            assert!(arrivals.len() <= LONGEST * 8, "{what}: more requests than bytes");
            assert!(arrivals.iter().all(|a| a.lba.0 + u64::from(a.sectors) <= DEVICE_SECTORS), "{what}");
        }
    }
    // Where little fits, folding and compacting have more to do.
    let small = Trace { format: forced, fold: Fold::Compact, ..Trace::new(&path) };
    if let Ok(mut source) = open(&workload(SourceConfig::Trace(small)), 64) {
        let _ = drain(&mut *source);
    }
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert!(start.elapsed() < PATIENCE, "{what}: took {:?}", start.elapsed());
}

#[test]
fn the_corpus_is_valid() {
    for (format, contents) in corpus() {
        let columns = (format == "columns").then(|| "time=1,unit=us,offset=3,length=4,op=2".to_owned());
        let trace = Trace { columns, ..Trace::new(file(&format!("c.{format}"), contents)) };
        assert_eq!(info(&trace).unwrap().format.as_str(), format);
    }
    let untried: Vec<&str> =
        FormatName::all().filter(|name| !corpus().iter().any(|(format, _)| format == name)).collect();
    assert!(untried.is_empty(), "no file of {untried:?} to mutate");
}

#[test]
fn mutated_traces_end_with_requests_or_an_error() {
    let round = std::env::var("FLASHKEEL_SOAK_ROUND").ok().map(|text| text.parse::<u64>().expect("a round"));
    let seeds = round.map_or(0..SEEDS, |round| (round + 1) * SOAKED..(round + 2) * SOAKED);
    let corpus = corpus();
    for seed in seeds {
        let mut draws = Stream::new(seed, "fuzz");
        let mut pick = |len: usize| draws.below(len as u64) as usize;
        let (format, contents) = &corpus[pick(corpus.len())];
        let (_, other) = &corpus[pick(corpus.len())];
        let (packing, is_inside, times) = (pick(PACKINGS.len() * 2), pick(2) == 0, 1 + pick(4));
        // Half of all are plain: a packed file is mostly refused for its checksum.
        let pack = PACKINGS.get(packing).copied().unwrap_or(PACKINGS[0]);
        let mut bytes = contents.clone();
        if !is_inside {
            bytes = pack(&bytes);
        }
        for _ in 0..times {
            mutate(&mut bytes, other, &mut draws);
        }
        if is_inside {
            bytes = pack(&bytes);
        }
        let what = format!("seed {seed} ({format})");
        let outcome = std::panic::catch_unwind(|| survive(format, &bytes, &what));
        assert!(outcome.is_ok(), "{what} panics");
    }
}

#[test]
fn what_was_found_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        // FORMAT_WHAT.hex
        let name = path.file_name().unwrap().to_str().unwrap();
        let format = FormatName::all().find(|format| name.starts_with(&format!("{format}_")));
        let digits: String = std::fs::read_to_string(&path).unwrap().split_whitespace().collect();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let contents: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        survive(format.expect("files are called FORMAT_WHAT"), &contents, name);
    }
}
