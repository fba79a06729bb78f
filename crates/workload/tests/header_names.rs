//! Columns under a first line of names: what the names say is never overruled by the shape of the
//! lines below them, which published formats may share.

mod common;

use common::*;
use flashkeel_engine::Span;
use flashkeel_workload::{Arrival, FormatName, LatencyLogOptions, Trace, read_latencies};

/// What is read by the names of a text, as `columns`.
fn by_names(text: &str) -> Vec<Arrival> {
    let path = file("t.csv", text);
    let found = info(&Trace::new(&path)).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    assert_eq!(found.format.as_str(), "columns", "{text}");
    let trace = Trace { devices: flashkeel_workload::trace::DeviceSpaces::Merge, ..unaligned(path) };
    replay(trace).unwrap().0
}

#[test]
fn names_with_units_are_read_by_themselves() {
    let expected = [read(0, 8, 8), write(1_500_000, 16, 8)];
    for text in [
        // MSR's number of columns, in ns and not in 100 ns.
        "ts_ns,comm,pid,type,offset,size,latency_ns\n\
         783000,fio,2,Read,4096,4096,350731\n2283000,fio,1,Write,8192,4096,70336\n",
        // Those of SYSTOR '17, whose times are in s.
        "ts_us,latency_us,type,cpu,offset,size\n1292,123,R,2,4096,4096\n2792,459,W,2,8192,4096\n",
        "ts_us,latency_us,op,cpu,offset,size\n1292,123,R,2,4096,4096\n2792,459,W,2,8192,4096\n",
        // SPC's.
        "id,lba,bytes,type,time_ms\n0,8,4096,R,1.5\n1,16,4096,W,3\n",
        "pid,lba,bytes,type,time_ms\n0,8,4096,R,1.5\n1,16,4096,W,3\n",
        // Tencent's, in s and sectors.
        "time_us,offset,size,is_write,tid\n1024,4096,4096,0,0\n2524,8192,4096,1,2\n",
        // Those of FEMU's replayer, where 1 is a read.
        "time_us,disk,offset,size,is_write\n1067,0,4096,4096,0\n2567,0,8192,4096,1\n",
        // Alibaba's, and as scripts write them.
        "time_ms,rw,sector,nr_sectors,queue\n1,R,8,8,626\n2.5,W,16,8,738\n",
        "\"Time (us)\";\"I/O Type\";\"Offset (bytes)\";\"Length (bytes)\"\n0;R;4096;4096\n1500;W;8192;4096\n",
        ",time_us,device,opcode,offset,len\n0,10,a,READ,4096,4096\n1,1510,a,WRITE,8192,4096\n",
        "time_us,offset,size,Is Write\n1,4096,4096,False\n1501,8192,4096,True\n",
    ] {
        assert_eq!(by_names(text), expected, "{text}");
    }
}

#[test]
fn what_the_names_do_not_say_is_missing_and_nothing_is_guessed() {
    for (text, words) in [
        ("timestamp,op,offset,size,latency\n1600000000000285,R,8192,4096,587\n", "unit is missing: "),
        ("time,op,lba,sectors,latency_us\n1600000000000517,R,341446680,16,131\n", "unit is missing: "),
        ("id,op,offset,size,time\n1600000000000451,R,4096,8192,833\n", "unit is missing: "),
        ("ts,op,offset,size\n1600000000000451,R,4096,8192\n", "unit is missing: "),
        // Beside sectors, `len` may be either.
        (
            "ts,rw,lba,len,lat\n1600000000000774,R,395465624,16,528\n",
            "no known trace format: no column bytes or sectors; if its lines are those of alibaba (",
        ),
        (
            "time_us,op,offset,blocks,latency_us\n1600000000001264,R,451351808,4096,555\n",
            "no known trace format: no column bytes or sectors; if its lines are those of alibaba (",
        ),
        (
            "start_ns,op,offset,size,end_ns\n1600000000001362,W,17791968,16,496\n",
            "no known trace format: no column time_ns or time_us or time_ms or time_s; if its lines",
        ),
        (
            "op_time,type,offset,length,pid\n1600000000000889,R,135885120,4096,589\n",
            "no known trace format: no column time_ns or time_us or time_ms or time_s; if its lines",
        ),
        (
            "when,what,where,much,who\n1600000000000889,R,135885120,4096,589\n",
            "no known trace format: no column operation; if its lines are those of alibaba (5 fields",
        ),
        (
            "time_us\tdisk\tlba\tblocks\trw\n7\t0\t8\t8\t1\n",
            "no known trace format: no column bytes or sectors; if its lines are those of mqsim (",
        ),
        (
            "time_us,opp,offset,size\n1,R,0,4096\n",
            "no known trace format: no column operation; known are operation, offset or lba, ",
        ),
        (
            "time_us,time_ms,op,offset,bytes\n1,2,R,0,4096\n",
            "no known trace format: the columns time_us and time_ms say the same; known are ",
        ),
    ] {
        let message = refusal(Trace::new(file("t.csv", text)));
        assert!(message.starts_with(&format!("t.csv:1: {words}")), "{message}");
    }
    // Names that are nearly those of a published format may be of one.
    let nearly = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,Latency\n7,hm,1,Read,4096,8192,3\n";
    let message = refusal(Trace::new(file("t.csv", nearly)));
    assert!(message.starts_with("t.csv:1: unit is missing: "), "{message}");
    assert!(message.ends_with("response time), format = \"msr\" says so"), "{message}");
    let message = refusal(Trace::new(file("t.csv", "time_us,op,offset,blocks\n1,R,0,4096\n")));
    assert!(message.ends_with("; columns = \"time=1,unit=us,offset=3,length=4,op=2\" describes others"));
}

#[test]
fn operations_that_are_not_understood_are_refused_with_their_line() {
    for (text, words) in [
        (
            "time_us,dev,offset,size,type\n285,0,542081024,4096,1\n",
            "t.csv:2: field 5 (op): unknown operation \"1\"; read=… and write=…",
        ),
        (
            "time_us,offset,size,is_write\n285,542081024,4096,1\n286,0,512,R\n",
            "t.csv:3: field 4 (op): unknown operation \"R\"; 0 is a read and 1 a write",
        ),
        (
            "time_us,offset,size,io_type\n285,542081024,4096,raed\n",
            "t.csv:2: field 4 (op): unknown operation \"raed\"; did you mean \"read\"?",
        ),
    ] {
        let message = refusal(Trace::new(file("t.csv", text)));
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn a_plainer_name_counts_before_a_type() {
    let text = "type,time_us,op,offset,size,len\nnvme,1,R,4096,4096,9\nnvme,1501,W,8192,4096,9\n";
    assert_eq!(by_names(text), [read(0, 8, 8), write(1_500_000, 16, 8)]);
    let notes = info(&Trace::new(file("t.csv", text))).unwrap().notes;
    assert!(notes.contains(&"columns that are not read: type, len".to_owned()), "{notes:?}");
}

#[test]
fn published_names_are_those_of_their_format() {
    for (text, format) in [
        ("device_id,opcode,offset,length,timestamp\n419,R,4096,8192,1577808000000000\n", "alibaba"),
        ("Timestamp,Offset,Size,IOType,VolumeID\n1538323200,8,16,0,1063\n", "tencent"),
        ("Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.1,0.0008,R,0,4096,8192\n", "systor"),
        (
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
             128166372003061629,hm,1,Read,2449408,4096,3200\n",
            "msr",
        ),
        (
            "timestamp,hostname,disk_number,type,offset,size,response_time\n\
             2024-03-01T12:00:00.25,hm,1,Read,2449408,4096,3200\n",
            "msr",
        ),
        ("ASU,LBA,Size,Opcode,Timestamp\n0,8,8192,R,0.551706\n", "spc"),
        ("time device lba sectors operation\n0 0 8 8 1\n9 0 8 8 0\n", "mqsim"),
    ] {
        let found = info(&Trace::new(file("t.csv", text))).unwrap();
        assert_eq!(found.format.as_str(), format, "{text}");
    }
    // Whoever gives a format has its columns, whatever they are called.
    let mut trace =
        unaligned(file("t.csv", "a_us,op,offset,size,b_us\n7,R,4096,4096,1\n7,W,8192,4096,2501\n"));
    trace.format = Some(FormatName::parse("alibaba").unwrap());
    assert_eq!(replay(trace).unwrap().0, [read(0, 8, 8), write(2_500_000, 16, 8)]);
}

#[test]
fn a_log_and_a_trace_of_the_same_names_agree() {
    let text = "ts_ns,comm,pid,type,offset,size,latency_ns\n\
                783000,fio,2,Write,8192,4096,350731\n2475000,fio,1,Read,4096,4096,70336\n";
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let log = read_latencies(&file("t.csv", text), &LatencyLogOptions::default(), go_on).unwrap();
    assert_eq!(log.format, "columns");
    assert_eq!(log.requests.iter().map(|it| it.latency).collect::<Vec<_>>(), [Span(350_731), Span(70_336)]);
}

/// UMass' traces may have optional fields behind those that the format wants.
#[test]
fn seven_fields_may_be_spcs() {
    let text = "0,20941264,8192,W,0.551706,0,1\n0,20939840,8192,R,0.554041,0,1\n";
    assert_eq!(info(&Trace::new(file("t.spc", text))).unwrap().format.as_str(), "spc");
}
