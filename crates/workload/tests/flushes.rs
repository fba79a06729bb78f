//! Flushes, which have no address, and trims, from one format into another.

mod common;

use common::*;
use flashkeel_workload::trace::DeviceSpaces;
use flashkeel_workload::{Beginnings, Trace, WriterName, convert, merge};

#[test]
fn flushes_and_trims_go_through_every_format_that_has_them() {
    let log = "fio version 3 iolog\n0 flashkeel add\n0 flashkeel open\n0 flashkeel write 0 4096\n\
               5 flashkeel sync 0 0\n7 flashkeel trim 4096 8192\n7 flashkeel sync 0 0\n";
    let mut from = file("a.log", log);
    for (format, name) in [("columns", "b.csv"), ("parquet", "c.parquet"), ("columns", "d.csv"), ("fio", "e")]
    {
        let out = from.with_file_name(name);
        convert(&Trace::new(&from), WriterName::parse(format).unwrap(), &out, &mut go_on).unwrap();
        from = out;
    }
    assert_eq!(std::fs::read_to_string(&from).unwrap(), log);
    let text = std::fs::read_to_string(from.with_file_name("d.csv")).unwrap();
    let expected = "time_ns,operation,offset,bytes\n0,W,0,4096\n5000,F,0,0\n7000,T,4096,8192\n7000,F,0,0\n";
    assert_eq!(text, expected);
}

#[test]
fn a_flush_in_columns_needs_no_address() {
    // As block layers have it: at sector -1, or nowhere.
    let text = "ts_us,type,sector,bytes\n1,R,8,4096\n2,F,-1,0\n3,Flush,,\n4,FLUSH,18446744073709551615,0\n";
    let expected = [read(0, 8, 8), flush(1000), flush(2000), flush(3000)];
    assert_eq!(replay(Trace::new(file("t.csv", text))).unwrap().0, expected);
    let message = refusal(Trace::new(file("t.csv", text.to_owned() + "5,F,0,4096\n")));
    assert_eq!(message, "t.csv:6: field 4 (length): \"4096\" is no length of a flush, which has none");
    let message = refusal(Trace::new(file("t.csv", "ts_us,type,sector,bytes\n1,R,,4096\n")));
    assert_eq!(message, "t.csv:2: field 3 (offset): \"\" is not a whole number");
}

#[test]
fn a_flush_of_a_merged_trace_has_no_address() {
    let fio = |requests: &str| format!("fio version 3 iolog\n{requests}");
    let paths =
        [file("a.log", fio("1 f write 0 4096\n")), file("b.log", fio("1 f write 4096 4096\n2 f sync 0 0\n"))];
    let out = paths[0].with_file_name("merged.log");
    let format = WriterName::parse("fio").unwrap();
    let traces = paths.each_ref().map(Trace::new);
    merge(&traces, Beginnings::Together, DeviceSpaces::Separate, format, &out, &mut go_on).unwrap();
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.ends_with("\n0 flashkeel write 1052672 4096\n1 flashkeel sync 0 0\n"), "{text}");
}
