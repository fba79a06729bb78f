//! Text of columns as spreadsheets and scripts write it: with quotation marks, with blanks, with
//! times of a calendar, and with the names of its columns above them.

mod common;

use common::*;
use flashkeel_engine::Operation;
use flashkeel_workload::{Arrival, Trace};

const MSR: &str = "128166372003061629,hm,1,Read,2449408,4096,3200\n\
                   128166372003061639,hm,1,Write,8192,1024,10\n";

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

/// What is read of a text, and what its format is.
fn found(text: &str) -> (Vec<Arrival>, &'static str) {
    let path = file("t.csv", text);
    let format = info(&Trace::new(&path)).unwrap().format.as_str();
    (replay(unaligned(path)).unwrap().0, format)
}

#[test]
fn quotation_marks_and_blanks_around_fields_change_nothing() {
    let plain = found(MSR);
    for text in [
        each_line(MSR, |line| format!("\"{}\"", line.replace(',', "\",\""))),
        each_line(MSR, |line| line.replace("hm", "\"hm\"").replace("Read", "\"Read\"")),
        each_line(MSR, |line| line.replace(',', ", ")),
        // A separator within quotation marks is none.
        each_line(MSR, |line| line.replace("hm", "\"hm, the \"\"old\"\" one\"")),
    ] {
        assert_eq!(found(&text), plain, "{text}");
    }
}

#[test]
fn times_may_be_those_of_a_calendar() {
    let expected = vec![read(0, 16, 8), write(250_000_000, 8, 8)];
    for [first, second] in [
        ["2024-02-29T23:59:59.875", "2024-03-01T00:00:00.125"],
        ["2024-02-29 23:59:59.875Z", "2024-03-01 01:00:00.125+01:00"],
    ] {
        let text = format!("timestamp;op;lba;sectors\n{first};R;16;8\n{second};W;8;8\n");
        assert_eq!(found(&text), (expected.clone(), "columns"));
        let text = format!("{first},h,0,Read,8192,4096,0\n{second},h,0,Write,4096,4096,0\n");
        assert_eq!(found(&text), (expected.clone(), "msr"));
        let mut trace = unaligned(file("t.txt", format!("8192,4096,R,{first}\n4096,4096,W,{second}\n")));
        trace.columns = Some("offset=1,length=2,op=3,time=4".into());
        assert_eq!(replay(trace).unwrap().0, expected);
    }
    let mut trace = unaligned(file("t.txt", "8192,4096,R,2024-02-30T00:00\n"));
    trace.columns = Some("offset=1,length=2,op=3,time=4,unit=us".into());
    assert_eq!(
        refusal(trace),
        "t.txt:1: field 4 (time): \"2024-02-30T00:00\" is not a whole number or one with decimals"
    );
}

#[test]
fn calendars_have_no_unit_that_might_be_another() {
    let line = |at: u32| format!("2024-03-01T12:00:00.{at:06},R,0,1048576\n");
    let text: String = (0..200).map(line).collect();
    let notes = info(&Trace::new(file("t.csv", format!("time,op,offset,bytes\n{text}")))).unwrap().notes;
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("are more than any drive serves"), "{}", notes[0]);
}

#[test]
fn columns_are_known_by_the_names_above_them() {
    let expected = vec![read(0, 8, 8), Arrival { operation: Operation::Trim, ..read(1_500_000, 0, 16) }];
    for text in [
        "time_us,operation,offset,bytes\n10,read,4096,4096\n1510,trim,0,8192\n",
        "\"latency_us\"\t\"time_ms\"\t\"rw\"\t\"sectors\"\t\"sector\"\n7\t1.0\tR\t8\t8\n9\t2.5\tT\t16\t0\n",
        "submitted_ns,op,lba,length,device\n0,R,8,4096,sda\n1500000,D,0,8192,sda\n",
    ] {
        assert_eq!(found(text), (expected.clone(), "columns"), "{text}");
    }
    // Numbers that say no unit take one.
    let mut trace = unaligned(file("t.csv", "time,op,offset,bytes\n10,R,4096,4096\n1510,T,0,8192\n"));
    let message = refusal(trace.clone());
    assert!(message.starts_with("t.csv:1: unit is missing: ") && message.contains("time_us"), "{message}");
    trace.time_unit = Some(flashkeel_engine::Span::from_us(1));
    assert_eq!(replay(trace).unwrap().0, expected);
    // What they lack, or have twice, is nothing to guess.
    for names in ["time,operation,offset", "time_us,time_ms,op,offset,bytes", "time_us,offset,bytes"] {
        let path = file("t.csv", format!("{names}\n1,2,3,4,5\n"));
        assert!(refusal(Trace::new(path)).contains("no known trace format"), "{names}");
    }
}
