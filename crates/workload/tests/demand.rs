//! Write demands: the profiles have the volume and regularity they promise,
//! recorded ones are read whole, and what is wrong with a file is named.

mod common;

use common::*;
use flashkeel_engine::{Operation, Span, Stream};
use flashkeel_workload::demand::Load;
use flashkeel_workload::demand::profile::{PROFILES, Profile};
use flashkeel_workload::demand::series::Series;
use flashkeel_workload::generators::arrivals::{Clock, demand::DemandClock};
use flashkeel_workload::generators::{ArrivalProcess, Synthetic};
use flashkeel_workload::{Demand, Seeds, Traffic, WorkloadError};
use serde_json::json;

fn load(traffic: serde_json::Value) -> Result<Demand, WorkloadError> {
    serde_json::from_value::<Traffic>(traffic).expect("a traffic").policy().load(1)
}

fn profile(name: &str) -> Demand {
    load(json!({ "policy": "profile", "name": name })).unwrap()
}

#[test]
fn profiles_have_the_volume_of_their_traces() {
    for known in PROFILES {
        let demand = profile(known.name);
        assert!(demand.is_synthetic && demand.notes[0].contains("synthetic"));
        assert_eq!(demand.length(), Span::from_secs(u64::from(known.hours) * 3_600));
        assert!((demand.bytes_per_day() / (known.gb_per_hour * 24e9) - 1.0).abs() < 1e-9);
        // Lifetimes without throttling and recovery. The paper does not print
        // them; they follow from what it prints, by its own formula.
        let days =
            f64::from(known.capacity_gb) * 3_000e9 / (demand.bytes_per_day() * known.write_amplification);
        let years = [1.15, 3.25, 0.95, 1.10, 1.07][PROFILES.iter().position(|p| p == known).unwrap()];
        assert!((days / 365.0 - years).abs() < 0.006, "{}: {} years", known.name, days / 365.0);
    }
}

#[test]
fn profiles_are_as_regular_as_the_paper_shows() {
    let half_hour = Span::from_secs(1_800);
    let similar = |name, share| profile(name).similarity(half_hour, share).unwrap();
    let proxy = similar("proxy", 0.2);
    assert!((proxy - 0.98).abs() < 0.02, "proxy: {proxy}");
    let exchange: Vec<Demand> =
        (1..=20).map(|seed| Profile { name: "exchange".into() }.load(seed).unwrap()).collect();
    let mean = exchange.iter().map(|d| d.similarity(half_hour, 0.3).unwrap()).sum::<f64>() / 20.0;
    assert!((mean - 0.88).abs() < 0.03, "exchange: {mean}");
    for name in ["proj", "map"] {
        let share = similar(name, 0.3);
        assert!(share < 0.5, "{name} is hard to predict, but {share} of its periods are similar");
    }
}

#[test]
fn an_unknown_profile_is_refused_with_a_suggestion() {
    let error = load(json!({ "policy": "profile", "name": "exchnge" })).unwrap_err().to_string();
    assert!(error.contains("did you mean \"exchange\""), "{error}");
}

#[test]
fn a_constant_demand_is_its_volume() {
    let demand = load(json!({ "policy": "constant", "per_day": "24GB" })).unwrap();
    assert_eq!((demand.bytes_per_day(), demand.interval), (24e9, Span::from_secs(3_600)));
}

const TWO: &str = "workload,window,read_bytes,write_bytes\na,0,5,100\na,1,5,200\nb,7,0,10\nb,9,0,30\n";

fn series(text: &str, workload: Option<&str>) -> Result<Demand, WorkloadError> {
    let path = file("demand.csv", text);
    load(json!({ "policy": "series", "path": path, "workload": workload, "interval": "1h" }))
}

#[test]
fn series_are_read_by_name_and_gaps_count_as_silence() {
    let path = file("demand.csv", TWO);
    assert_eq!(Series::names(&path).unwrap(), ["a", "b"]);
    assert_eq!(series(TWO, Some("a")).unwrap().written, [100.0, 200.0]);
    let gap = series(TWO, Some("b")).unwrap();
    assert_eq!(gap.written, [10.0, 0.0, 30.0]);
    assert!(gap.notes[0].contains("1 window is not"), "{:?}", gap.notes);
    let single = series("window,write_bytes\r\n3,4\r\n", None).unwrap();
    assert_eq!((single.written, single.interval), (vec![4.0], Span::from_secs(3_600)));
}

#[test]
fn a_series_may_be_written_as_other_tables_are() {
    let expected = series(TWO, Some("a")).unwrap();
    let quoted =
        "\"workload\", \"window\", \"note\", \"write_bytes\"\n\"a\", \"0\", \"x y\", 100\n\"a\",1,,\"200\"\n";
    for text in [quoted, "workload;window;write_bytes\na;0;100\na; 1; 200\n", &TWO.replace(',', "\t")] {
        assert_eq!(series(text, Some("a")).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_series_may_come_through_a_pipe() {
    let through = |text: &'static str, workload: Option<&str>| {
        let path = file("pipe", "").with_file_name("demand.fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let end = path.clone();
        std::thread::spawn(move || std::fs::write(end, text));
        load(json!({ "policy": "series", "path": path, "workload": workload, "interval": "1h" }))
    };
    assert_eq!(through(TWO, Some("b")).unwrap().written, [10.0, 0.0, 30.0]);
    assert_eq!(through("window,write_bytes\n3,4\n", None).unwrap().written, [4.0]);
    let error = through(TWO, None).unwrap_err().to_string();
    assert!(error.contains("2 series share the file, a, b; "), "{error}");
}

#[test]
fn a_wrong_series_is_refused_with_its_place() {
    let head = "workload,window,read_bytes,write_bytes\n";
    for (text, workload, parts) in [
        (TWO, None, vec!["2 series share the file, a, b; ", "workload"]),
        (TWO, Some("aa"), vec!["no series is named \"aa\"; there are a, b", "did you mean \"a\""]),
        ("workload,window,written\na,0,1\n", None, vec![":1:", "\"write_bytes\""]),
        (&format!("{head}a,0,1\n"), None, vec![":2:", "3 fields", "4"]),
        (&format!("{head}a,0,1,-4\n"), None, vec![":2:", "field 4 (write_bytes)", "negative"]),
        (&format!("{head}a,x,1,4\n"), None, vec![":2:", "field 2 (window)", "not a whole number"]),
        (&format!("{head}a,1,1,4\na,1,1,4\n"), None, vec![":3:", "window 1 comes again"]),
        (&format!("{head}a,0,1,4\na,99999999,1,4\n"), None, vec![":3:", "at most"]),
        (head, None, vec!["no windows"]),
        ("", None, vec!["empty"]),
    ] {
        let error = series(text, workload).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let missing = load(json!({ "policy": "series", "path": "nowhere.csv" })).unwrap_err().to_string();
    assert!(missing.contains("nowhere.csv"), "{missing}");
}

#[test]
fn the_writes_of_a_trace_are_summed_by_the_minute() {
    // MSR: time in 100 ns, host, disk, type, offset, size, response time.
    let minute = 600_000_000u64;
    let line = |at: u64, kind: &str, size: u64| format!("{at},h,0,{kind},0,{size},1\n");
    let start = 128_166_372_003_061_629;
    let text = [
        line(start, "Write", 4_096),
        line(start + minute / 2, "Read", 8_192),
        line(start + minute, "Write", 8_192),
        line(start + 3 * minute / 2, "Write", 4_096),
    ];
    let path = file("writes.csv", text.concat());
    let demand = load(json!({ "policy": "trace", "trace": { "path": path, "format": "msr" } })).unwrap();
    assert_eq!(demand.written, [4_096.0, 12_288.0]);
    // It begins again its mean gap, half a minute, after the last request.
    assert_eq!(demand.length(), Span::from_secs(120));
    assert!(!demand.is_synthetic);
}

#[test]
fn other_days_are_drawn_from_the_same_ones() {
    let hours = (0..72).map(f64::from).collect();
    let demand = Demand {
        interval: Span::from_secs(3_600),
        written: hours,
        is_synthetic: false,
        recorded: None,
        notes: vec![],
    };
    let drawn = demand.resampled(3);
    assert_eq!(drawn.written.len(), 72);
    for day in drawn.written.chunks(24) {
        assert!(day[0] % 24.0 == 0.0 && day.windows(2).all(|pair| pair[1] == pair[0] + 1.0));
    }
    assert!((1..20).any(|seed| demand.resampled(seed).written != demand.written));
}

#[test]
fn the_intervals_of_a_trace_are_minutes_whenever_it_ends() {
    let of = |times_s: &[u64]| {
        let line = |at: &u64| format!("{},h,0,Write,0,4096,1\n", 128_166_372_003_061_629 + at * 10_000_000);
        let path = file("writes.csv", times_s.iter().map(line).collect::<String>());
        load(json!({ "policy": "trace", "trace": { "path": path, "format": "msr" } })).unwrap()
    };
    for (times_s, minutes) in [
        // It ends at 75, 105 and 180 s.
        (&[0, 15, 30, 45, 60][..], vec![5.0]),
        (&[0, 35, 70], vec![2.0, 1.0]),
        (&[0, 90], vec![1.0, 1.0, 0.0]),
    ] {
        let demand = of(times_s);
        let length_s = (times_s[times_s.len() - 1] + times_s[1]) as f64;
        let per_day = times_s.len() as f64 * 4_096.0 * 86_400.0 / length_s;
        assert_eq!(demand.interval, Span::from_secs(60));
        assert!((demand.bytes_per_day() / per_day - 1.0).abs() < 1e-12, "{times_s:?}");
        let sum: f64 = demand.written.iter().sum();
        let shares: Vec<f64> =
            demand.written.iter().map(|bytes| bytes / sum * times_s.len() as f64).collect();
        assert!(shares.iter().zip(&minutes).all(|(a, b)| (a - b).abs() < 1e-9), "{shares:?}");
        assert_eq!(shares.len(), minutes.len());
    }
}

#[test]
fn every_part_of_a_recording_is_drawn_as_often_as_any_other() {
    // 2.95 hours by the minute, drawn by the hour; two days and a half, drawn by the day.
    for (interval_s, intervals) in [(60, 177usize), (3_600, 60)] {
        let demand = Demand {
            interval: Span::from_secs(interval_s),
            written: (0..intervals).map(|at| at as f64).collect(),
            is_synthetic: false,
            recorded: None,
            notes: vec![],
        };
        let mut drawn = vec![0u32; intervals];
        for seed in 0..2_000 {
            let other = demand.resampled(seed);
            assert_eq!(other.written.len(), intervals);
            other.written.iter().for_each(|&at| drawn[at as usize] += 1);
        }
        assert!(drawn.iter().all(|times| (1_800..2_200).contains(times)), "{drawn:?}");
    }
}

#[test]
fn what_is_drawn_from_writes_has_writes() {
    let mut written = vec![0.0; 24 * 5];
    let mut demand = Demand {
        interval: Span::from_secs(3_600),
        written: written.clone(),
        is_synthetic: false,
        recorded: None,
        notes: vec![],
    };
    assert_eq!(demand.resampled(1), demand);
    written[30] = 7.0;
    demand.written = written;
    assert!((0..100).all(|seed| demand.resampled(seed).bytes_per_day() > 0.0));
}

#[test]
fn longer_intervals_hold_the_same() {
    let written = vec![1.0, 2.0, 4.0, 8.0, 16.0];
    let demand =
        Demand { interval: Span::from_secs(60), written, is_synthetic: false, recorded: None, notes: vec![] };
    let merged = demand.merged(3);
    assert_eq!(merged.interval, Span::from_secs(180));
    assert_eq!(merged.written, [7.0, 25.0, 14.0, 19.0, 28.0]);
    assert_eq!(merged.bytes_per_day(), demand.bytes_per_day());
    assert_eq!(demand.merged(1), demand);
}

#[test]
fn requests_follow_the_demand() {
    let demand = Demand {
        interval: Span::from_secs(60),
        written: vec![6_000_000.0, 0.0, 600_000.0],
        is_synthetic: true,
        recorded: None,
        notes: vec![],
    };
    let mut clock = DemandClock::new(demand, 1_000.0);
    let mut stream = Stream::new(1, "unused");
    let mut minutes = [0u64; 6];
    let mut last = 0;
    for _ in 0..2 * 6_600 {
        let now = clock.next(&mut stream);
        assert!(now >= last);
        last = now;
        minutes[(now / 60_000_000_000) as usize] += 1;
    }
    assert_eq!(minutes, [6_000, 0, 600, 6_000, 0, 600]);
}

#[test]
fn a_demand_does_not_go_on_behind_the_end_of_the_clock() {
    for written in [vec![1_000.0], vec![1.0]] {
        let demand =
            Demand { interval: Span(1 << 62), written, is_synthetic: true, recorded: None, notes: vec![] };
        let (mut clock, mut stream) = (DemandClock::new(demand, 1_000.0), Stream::new(1, "unused"));
        let times: Vec<u64> = (0..6).map(|_| clock.next(&mut stream)).collect();
        assert!(times.is_sorted() && times[0] == 0 && times[5] == u64::MAX, "{times:?}");
    }
}

#[test]
fn a_generator_can_follow_a_demand() {
    let arrivals: ArrivalProcess = serde_json::from_value(json!({
        "policy": "demand", "traffic": { "policy": "profile", "name": "exchange" },
    }))
    .unwrap();
    let synthetic = Synthetic { arrivals: Some(arrivals), read_fraction: 0.0, ..Synthetic::default() };
    let mut workload = workload(flashkeel_workload::SourceConfig::Synthetic(synthetic));
    workload.duration = Some(Span::from_secs(600));
    let mut source = workload.open(DEVICE_SECTORS, 1).unwrap();
    let bytes = drain(source.as_mut()).unwrap().len() as f64 * 4_096.0;
    let rate = bytes / 600.0 * 3_600.0 / 1e9;
    assert!((5.0..30.0).contains(&rate), "{rate} GB/h at night");
    let silent = json!({ "policy": "demand", "traffic": { "policy": "constant", "per_day": "0B" } });
    let process: ArrivalProcess = serde_json::from_value(silent).unwrap();
    let error = process.policy().clock(Seeds::alone(1), 4096.0).err().expect("no writes").to_string();
    assert!(error.contains("no writes"), "{error}");
}

#[test]
fn what_is_written_is_the_demand_whatever_the_requests() {
    let traffic = json!({ "policy": "constant", "per_day": "86400MB" });
    let written = |mut synthetic: serde_json::Value| {
        synthetic["arrivals"] = json!({ "policy": "demand", "traffic": traffic });
        let synthetic: Synthetic = serde_json::from_value(synthetic).unwrap();
        let mut workload = workload(flashkeel_workload::SourceConfig::Synthetic(synthetic));
        workload.duration = Some(Span::from_secs(300));
        let mut source = workload.open(DEVICE_SECTORS, 1)?;
        let arrivals = drain(source.as_mut()).unwrap();
        let writes = arrivals.iter().filter(|arrival| arrival.operation == Operation::Write);
        Ok::<f64, WorkloadError>(writes.map(|write| f64::from(write.sectors) * 512.0).sum::<f64>() / 300e6)
    };
    for synthetic in [
        json!({ "read_fraction": 0.0 }),
        json!({ "read_fraction": 0.5, "trim_fraction": 0.25 }),
        json!({ "read_fraction": 0.7, "block_sizes": ["4KiB/3", "64KiB/1"] }),
        json!({ "read_fraction": 0.7, "write_block_sizes": ["16KiB"] }),
    ] {
        let rate = written(synthetic.clone()).unwrap();
        assert!((rate - 1.0).abs() < 0.06, "{synthetic}: {rate}");
    }
    let error = written(json!({ "read_fraction": 1.0 })).unwrap_err().to_string();
    assert!(error.contains("arrivals.request_size") && error.contains("none of them writes"), "{error}");
}

#[test]
fn each_seed_has_arrivals_of_its_own_where_the_demand_is_drawn() {
    let arrive = |seed: u64| {
        let traffic = json!({ "policy": "profile", "name": PROFILES[0].name });
        let process = json!({ "policy": "demand", "traffic": traffic });
        let process: ArrivalProcess = serde_json::from_value(process).unwrap();
        let mut clock = process.policy().clock(Seeds::alone(seed), 4096.0).unwrap();
        let mut stream = Stream::new(seed, "test");
        (0..100).map(|_| clock.next(&mut stream)).collect::<Vec<u64>>()
    };
    assert_eq!(arrive(1), arrive(1));
    assert_ne!(arrive(1), arrive(2));
}
