//! Parquet in and out: what is written is read again, whoever wrote it, and what
//! is wrong names the row and the column.

mod common;

use std::ops::ControlFlow;
use std::path::Path;

use common::tables::{Cells, table};
use common::*;
use flashkeel_workload::trace::DeviceSpaces;
use flashkeel_workload::{LatencyLogOptions, Trace, WriterName, convert, read_latencies};

const NUMBERS: &str = "REQUIRED INT64 time_ns; REQUIRED INT64 offset; REQUIRED INT64 bytes;";

fn to(trace: &Trace, format: &str, out: &Path) {
    let format = WriterName::parse(format).unwrap();
    convert(trace, format, out, &mut |_| ControlFlow::Continue(())).unwrap();
}

#[test]
fn what_is_written_is_read_again() {
    // More rows than a row group has.
    let rows = 300_000u64;
    let letter = |row: u64| ["R", "W", "T"][(row % 3) as usize];
    let text: String =
        (0..rows).map(|row| format!("{row},{},{},4096\n", letter(row), row % 977 * 4096)).collect();
    let columns = Some("time=1,unit=us,op=2,offset=3,length=4".to_owned());
    let lines = Trace { columns, ..Trace::new(file("t.csv", text)) };
    let folder = lines.path.parent().unwrap().to_owned();
    let packed = folder.join("t.parquet");
    to(&lines, "parquet", &packed);
    assert!(packed.metadata().unwrap().len() < lines.path.metadata().unwrap().len() / 12);
    let trace = Trace::new(&packed);
    let described = info(&trace).unwrap();
    assert_eq!((described.format.as_str(), described.requests), ("parquet", rows));
    assert_eq!(replay(trace.clone()).unwrap().0, replay(lines.clone()).unwrap().0);
    // And through the other door.
    let again = folder.join("again.csv");
    to(&trace, "columns", &again);
    let columns = Some("time=1,unit=ns,op=2,offset=3,length=4".to_owned());
    assert_eq!(replay(Trace { columns, ..Trace::new(again) }).unwrap().0, replay(lines).unwrap().0);
}

#[test]
fn columns_stand_in_any_order_and_have_other_widths() {
    let columns = "REQUIRED BYTE_ARRAY device (UTF8); REQUIRED INT32 bytes (UINT_32); \
                   REQUIRED INT64 more; REQUIRED BYTE_ARRAY operation (UTF8); \
                   REQUIRED INT64 offset; OPTIONAL INT64 time_ns;";
    let group = |times: &'static [i64]| {
        [
            Cells::Words(&["sda", "sdb"]),
            Cells::Narrow(&[4096, 512]),
            Cells::Whole(&[0, 0]),
            Cells::Words(&["read", "W"]),
            Cells::Whole(&[4096, 12_288]),
            Cells::Some(&[1, 1], times),
        ]
    };
    let path = table(columns, &[&group(&[5, 10]), &group(&[20, 30])]);
    let trace = Trace { devices: DeviceSpaces::Merge, ..unaligned(path) };
    let expected = [read(0, 8, 8), write(5, 24, 1), read(15, 8, 8), write(25, 24, 1)];
    assert_eq!(replay(trace.clone()).unwrap().0, expected);
    let devices = info(&trace).unwrap().devices;
    assert_eq!(devices.iter().map(|device| &*device.name).collect::<Vec<_>>(), ["sda", "sdb"]);
}

/// Once it had to be text, which nobody makes of it.
#[test]
fn whether_a_request_writes_is_a_flag_or_a_number() {
    let cells = [
        ("BOOLEAN", Cells::Flags(&[false, true])),
        ("INT32", Cells::Narrow(&[0, 1])),
        ("INT64", Cells::Whole(&[0, 1])),
    ];
    for (kind, is_write) in cells {
        let columns = format!("{NUMBERS} REQUIRED {kind} is_write;");
        let cells = [Cells::Whole(&[0, 5]), Cells::Whole(&[0, 4096]), Cells::Whole(&[512, 512]), is_write];
        let path = table(&columns, &[&cells]);
        assert_eq!(replay(unaligned(path)).unwrap().0, [read(0, 0, 1), write(5, 8, 1)], "{kind}");
    }
    let cells = [Cells::Whole(&[1]), Cells::Whole(&[0]), Cells::Whole(&[512]), Cells::Whole(&[2])];
    let message = refusal(Trace::new(table(&format!("{NUMBERS} REQUIRED INT64 is_write;"), &[&cells])));
    assert!(message.starts_with("t.parquet: row 1: column is_write: "), "{message}");
}

#[test]
fn what_is_wrong_names_the_row_and_the_column() {
    let whole = |values: &'static [i64]| Cells::Whole(values);
    let words = |values: &'static [&'static str]| Cells::Words(values);
    let text = "REQUIRED BYTE_ARRAY operation (UTF8);";
    let optional = "OPTIONAL INT64 time_ns; REQUIRED INT64 offset; REQUIRED INT64 bytes;";
    let cases: [(String, Vec<Cells<'_>>, &str); 8] = [
        ("REQUIRED INT64 when;".into(), vec![whole(&[1])], "has no column time_ns; a trace has time_ns,"),
        ("REQUIRED INT64 time;".into(), vec![whole(&[1])], "has no column operation; a trace has time_ns,"),
        (
            format!("REQUIRED DOUBLE length; {NUMBERS} REQUIRED FLOAT operation;"),
            vec![],
            "column operation holds FLOAT; it has to hold text, or 0 and 1 or false and true",
        ),
        (format!("{NUMBERS} REPEATED BYTE_ARRAY operation (UTF8);"), vec![], "column operation is nested"),
        (
            format!("{NUMBERS} {text}"),
            vec![whole(&[1, 2]), whole(&[0, -8]), whole(&[512, 512]), words(&["R", "R"])],
            "row 2: column offset: -8 is negative",
        ),
        (
            format!("{NUMBERS} {text}"),
            vec![whole(&[1, 2]), whole(&[0, 8]), whole(&[512, 512]), words(&["R", "wirte"])],
            "row 2: column operation: unknown operation \"wirte\"; did you mean \"write\"",
        ),
        (
            format!("{optional} {text}"),
            vec![Cells::Some(&[1, 0], &[1]), whole(&[0, 8]), whole(&[512, 512]), words(&["R", "R"])],
            "row 2: column time_ns has no value",
        ),
        (
            format!("{NUMBERS} {text}"),
            vec![whole(&[2, 1]), whole(&[0, 8]), whole(&[512, 512]), words(&["R", "R"])],
            "row 2: ",
        ),
    ];
    for (columns, cells, part) in cases {
        let groups: &[&[Cells<'_>]] = if cells.is_empty() { &[] } else { &[&cells] };
        let message = refusal(Trace::new(table(&columns, groups)));
        assert!(message.starts_with("t.parquet: ") && message.contains(part), "{message}");
    }
}

#[test]
fn rows_are_right_up_to_the_first_that_is_wrong() {
    let columns = "OPTIONAL INT64 time_ns; REQUIRED INT64 offset; REQUIRED INT64 bytes; \
                   REQUIRED BYTE_ARRAY operation; REQUIRED INT64 device;";
    let cells: [Cells<'_>; 5] = [
        Cells::Some(&[1, 1, 1, 1, 0], &[0, 1000, 2000, 3000]),
        Cells::Whole(&[0, 4096, 8192, -1, 0]),
        Cells::Whole(&[512; 5]),
        Cells::Words(&["R", "W", "none", "R", "R"]),
        Cells::Whole(&[7, 8, 7, 7, -7]),
    ];
    let trace = Trace { devices: DeviceSpaces::Merge, ..unaligned(table(columns, &[&cells])) };
    assert!(refusal(trace.clone()).starts_with("t.parquet: row 3: column operation: unknown operation"));
    // What lies outside the window is not looked at.
    let to = Some(flashkeel_engine::Span(1000));
    let window = Some(flashkeel_workload::trace::TimeWindow { from: flashkeel_engine::Span(0), to });
    assert_eq!(replay(Trace { window, ..trace }).unwrap().0, [read(0, 0, 1)]);
}

#[test]
fn a_flush_needs_no_address() {
    let columns = "OPTIONAL INT64 offset; OPTIONAL INT64 bytes; REQUIRED BYTE_ARRAY operation (UTF8); \
                   REQUIRED INT64 time_ns;";
    let rows = |levels: &'static [i16], lengths: &'static [i64]| {
        [
            Cells::Some(&[1, 0, 1, 1], &[4096, -1, 8192]),
            Cells::Some(levels, lengths),
            Cells::Words(&["R", "flush", "F", "W"]),
            Cells::Whole(&[0, 1, 2, 3]),
        ]
    };
    let path = table(columns, &[&rows(&[1, 0, 1, 1], &[4096, 0, 512])]);
    let expected = [read(0, 8, 8), flush(1), flush(2), write(3, 16, 1)];
    assert_eq!(replay(unaligned(path)).unwrap().0, expected);
    let message = refusal(Trace::new(table(columns, &[&rows(&[1, 0, 1, 0], &[4096, 0])])));
    assert_eq!(message, "t.parquet: row 4: column bytes has no value");
    let message = refusal(Trace::new(table(columns, &[&rows(&[1, 0, 1, 1], &[4096, 8, 512])])));
    assert_eq!(message, "t.parquet: row 3: column bytes: 8 is no length of a flush, which has none");
}

#[test]
fn a_file_that_is_cut_or_packed_is_refused() {
    let path = table(
        &format!("{NUMBERS} REQUIRED BYTE_ARRAY operation (UTF8);"),
        &[&[Cells::Whole(&[1]), Cells::Whole(&[0]), Cells::Whole(&[512]), Cells::Words(&["R"])]],
    );
    let whole = std::fs::read(path).unwrap();
    for wrong in [&whole[..whole.len() - 20], b"PAR1 or not"] {
        let message = refusal(Trace::new(file("t.parquet", wrong)));
        assert!(message.contains("no Parquet file, or a damaged one"), "{message}");
    }
    let message = refusal(Trace::new(file("t.parquet.gz", gzip(&whole))));
    assert!(message.contains("neither packed nor from a pipe"), "{message}");
}

#[test]
fn an_index_with_any_byte_changed_is_read_or_refused() {
    let path = table(
        &format!("{NUMBERS} REQUIRED BYTE_ARRAY operation (UTF8);"),
        &[&[Cells::Whole(&[1]), Cells::Whole(&[0]), Cells::Whole(&[512]), Cells::Words(&["R"])]],
    );
    let whole = std::fs::read(path).unwrap();
    let end = whole.len() - 8;
    let index = u32::from_le_bytes(whole[end..end + 4].try_into().unwrap()) as usize;
    for at in end - index..end {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= change;
            if let Err(error) = info(&Trace::new(file("t.parquet", changed))) {
                assert!(error.to_string().contains("t.parquet: "), "byte {at}: {error}");
            }
        }
    }
}

#[test]
fn timestamps_count_in_their_own_unit() {
    for (kind, unit) in [("TIMESTAMP(MICROS,false)", 1_000), ("TIMESTAMP_MILLIS", 1_000_000)] {
        let columns = format!(
            "REQUIRED INT64 time_ns ({kind}); REQUIRED INT64 offset; REQUIRED INT64 bytes; REQUIRED BYTE_ARRAY operation;"
        );
        let (times, places) = ([0, 5, 1000], [0, 4096, 8192]);
        let rows = [
            Cells::Whole(&times),
            Cells::Whole(&places),
            Cells::Whole(&[4096; 3]),
            Cells::Words(&["R", "R", "W"]),
        ];
        let described = info(&Trace::new(table(&columns, &[&rows]))).unwrap();
        assert_eq!(described.span_ns, 1000 * unit, "{kind}");
        assert!(described.notes[0].starts_with("a whole one of time_ns is 1"), "{:?}", described.notes);
        let columns = columns.replace(kind, "UINT_64").replace("offset;", &format!("offset ({kind});"));
        let refused = refusal(Trace::new(table(&columns, &[&rows])));
        assert!(refused.contains("it has to hold whole numbers"), "{refused}");
    }
}

#[test]
fn columns_of_the_names_that_text_knows_are_known_and_others_are_told() {
    let columns = "REQUIRED INT32 Vol; REQUIRED INT64 Time_us; REQUIRED INT64 offset; REQUIRED INT64 size; \
                   REQUIRED BYTE_ARRAY rw; REQUIRED BYTE_ARRAY Volume; REQUIRED INT64 __index_level_0__;";
    let rows = [
        Cells::Narrow(&[7; 3]),
        Cells::Whole(&[0, 5, 10]),
        Cells::Whole(&[0, 4096, 4096]),
        Cells::Whole(&[4096; 3]),
        Cells::Words(&["R", "R", "W"]),
        Cells::Words(&["a", "b", "a"]),
        Cells::Whole(&[0, 1, 2]),
    ];
    let described = info(&Trace::new(table(columns, &[&rows]))).unwrap();
    assert_eq!(described.span_ns, 10_000);
    assert_eq!(described.devices.iter().map(|device| &*device.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(described.notes, ["columns that are not read: vol"]);
    let decimals = columns.replace("INT64 size", "DOUBLE size");
    let refused = refusal(Trace::new(table(&decimals, &[])));
    assert!(refused.contains("column size holds DOUBLE; it has to hold whole numbers"), "{refused}");
}

#[test]
fn latencies_stand_in_columns_of_the_same_names_as_in_text() {
    let columns = "REQUIRED INT64 own_flash_ns; REQUIRED BYTE_ARRAY operation (UTF8); REQUIRED INT64 lba; \
                   REQUIRED INT32 Sectors; REQUIRED INT64 submitted_us; OPTIONAL INT64 latency_us;";
    let group = |levels: &'static [i16]| {
        [
            Cells::Whole(&[1, 2, 3]),
            Cells::Words(&["write", "flush", "R"]),
            Cells::Whole(&[8, 0, 16]),
            Cells::Narrow(&[8, 0, 1]),
            Cells::Whole(&[50, 60, 10]),
            Cells::Some(levels, if levels[2] == 1 { &[20, 900, 100] } else { &[20, 900] }),
        ]
    };
    let read = |path: &Path| read_latencies(path, &LatencyLogOptions::default(), &mut go_on);
    let path = table(columns, &[&group(&[1, 1, 1]), &group(&[1, 1, 1])]);
    let log = read(&path).unwrap();
    assert_eq!((log.format, log.passed_over), ("parquet", 2));
    let told: Vec<_> = log
        .requests
        .iter()
        .map(|it| (it.submitted.0 / 1000, it.latency.0 / 1000, it.lba.0, it.sectors, it.item))
        .collect();
    assert_eq!(told, [(10, 100, 16, 1, 3), (10, 100, 16, 1, 6), (50, 20, 8, 8, 1), (50, 20, 8, 8, 4)]);
    let refused = |path: &Path| strip(&read(path).unwrap_err().to_string(), path);
    let path = table(columns, &[&group(&[1, 1, 1]), &group(&[1, 1, 0])]);
    assert_eq!(refused(&path), "t.parquet: row 6: column latency_us has no value");
    let path = table("REQUIRED INT64 time_ns; REQUIRED INT64 lba;", &[]);
    assert!(refused(&path).contains("no column operation"), "{}", refused(&path));
}
