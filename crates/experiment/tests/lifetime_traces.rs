//! Lifetimes under recorded traces: their own volume, places and write
//! amplification, however short they are.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use flashkeel_device::ThrottleConfig;
use flashkeel_experiment::{Error, Lifetime, lifetimes};
use serde_json::{Value, json};

/// A file of writes in the order of `(µs, offset, bytes)`.
fn trace(name: &str, writes: impl Iterator<Item = (u64, u64, u64)>) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.csv"));
    let lines: String = writes.map(|(us, offset, bytes)| format!("{us},W,{offset},{bytes}\n")).collect();
    std::fs::write(&path, lines).expect("a writable folder");
    path
}

fn plan(path: &PathBuf) -> Value {
    let trace = json!({ "path": path, "columns": "time=1,unit=us,op=2,offset=3,length=4" });
    json!({
        "drive": { "capacity": "256MB", "rated_cycles": 3000 },
        "traffic": { "policy": "trace", "trace": trace },
    })
}

fn live(plan: &Value) -> Result<Lifetime, Error> {
    let plans = json!([plan]).to_string();
    lifetimes(&plans, &[1], &mut |_, _| ControlFlow::Continue(())).map(|mut lives| lives.remove(0).remove(0))
}

/// Pages of 4 KiB of the drive.
const PAGES: u64 = 62_500;

fn random(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

#[test]
fn a_trace_has_its_own_write_amplification() {
    let writes = |place: fn(u64) -> u64| (0..8 * PAGES).map(move |n| (n * 500, place(n) * 4096, 4096));
    let life = |name, place| live(&plan(&trace(name, writes(place)))).expect("a life");
    let sequential = life("sequential", |n| n % PAGES);
    let factor = sequential.endured.write_amplification;
    assert!((factor - 1.0).abs() < 0.05, "{factor}");
    let uniform = life("uniform", |n| random(n) % PAGES).endured.write_amplification;
    assert!((5.0..9.0).contains(&uniform), "{uniform}");
    // A hundredth of the drive: all that is spare is theirs.
    let few = life("few", |n| random(n) % (PAGES / 100)).endured.write_amplification;
    assert!((1.0..1.1).contains(&few), "{few}");
    // Where a pattern is asked for, it is that of all writes.
    let mut asked = plan(&trace("asked", writes(|n| n % PAGES)));
    asked["pattern"] = json!({ "policy": "uniform" });
    let asked = live(&asked).expect("a life").endured.write_amplification;
    // Of eight writes a page on average some have more, and have them each time around.
    assert!((0.85..1.0).contains(&(uniform / asked)), "{uniform} {asked}");
}

#[test]
fn an_odd_offset_changes_neither_the_volume_nor_the_years_of_a_stream() {
    let stream = |from: u64| (0..PAGES).map(move |n| (n * 1_000, from + n * 4096 % (200 << 20), 4096));
    let even = live(&plan(&trace("even", stream(0)))).expect("a life");
    let odd = live(&plan(&trace("odd", stream(512)))).expect("a life");
    assert_eq!(even.endured.demanded_per_day, odd.endured.demanded_per_day);
    let ratio = odd.years.expect("worn out") / even.years.expect("worn out");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    assert!(odd.notes.iter().any(|note| note.contains("multiples of 4KiB")), "{:?}", odd.notes);
    assert!(!even.notes.iter().any(|note| note.contains("multiples")), "{:?}", even.notes);
    // Apart from each other, each takes two pages.
    let apart = |from: u64| (0..PAGES / 4).map(move |n| (n * 1_000, from + random(n) % PAGES * 4096, 4096));
    let [even, odd] = [0, 512].map(|from| {
        let life = live(&plan(&trace(&format!("apart{from}"), apart(from)))).expect("a life");
        (life.endured.demanded_per_day, life.endured.write_amplification)
    });
    assert_eq!(even.0, odd.0);
    assert!(odd.1 > 1.8 * even.1, "{} {}", even.1, odd.1);
}

#[test]
fn a_plain_life_writes_whole_pages_too() {
    let life = |name: &str, bytes| {
        let writes = (0..20_000).map(|n| (n * 1_000, random(n) % 16_384 * 4096, bytes));
        let mut plan = plan(&trace(name, writes));
        plan["drive"] = json!({ "capacity": "64MiB", "rated_cycles": 20, "over_provisioning": 0.28 });
        plan["method"] = json!("plain");
        live(&plan).expect("a life")
    };
    // An eighth of a page each: eight times as much is written as asked for.
    let (whole, eighths) = (life("wholes", 4096), life("eighths", 512));
    let ratio = |of: fn(&Lifetime) -> f64| of(&eighths) / of(&whole);
    assert!((ratio(|life| life.endured.demanded_per_day) * 8.0 - 1.0).abs() < 0.001);
    assert!((ratio(|life| life.endured.written_per_day) * 8.0 - 1.0).abs() < 0.01);
    assert!((ratio(|life| life.endured.write_amplification) / 8.0 - 1.0).abs() < 0.01);
    assert!((ratio(|life| life.years.expect("worn out")) - 1.0).abs() < 0.01);
}

#[test]
fn seconds_of_recording_are_lived_in_seconds() {
    let start = Instant::now();
    let two =
        live(&plan(&trace("two", [(0, 0, 4096), (1_000_000, 4096, 4096)].into_iter()))).expect("a life");
    // Two writes in two seconds: the trace repeats by its mean gap.
    assert!((two.endured.demanded_per_day / (86_400.0 * 4096.0) - 1.0).abs() < 1e-6);
    assert_eq!(two.recorded_ns, Some(1_000_000_000));
    let mut held = plan(&trace("ten", (0..10_000).map(|n| (n * 1_000, random(n) % PAGES * 4096, 4096))));
    for throttle in ThrottleConfig::NAMES {
        held["throttle"] = json!(throttle);
        let life = live(&held).expect("a life");
        assert!((life.endured.demanded_per_day / (86_400.0 * 4_096_000.0) - 1.0).abs() < 1e-3);
    }
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn whoever_watches_may_stop_it() {
    let plans = json!([plan(&trace("stopped", (0..1_000).map(|n| (n * 1_000, n * 4096, 4096))))]).to_string();
    let mut told = 0;
    let stopped = lifetimes(&plans, &[1], &mut |_, done| {
        assert!((0.0..=1.0).contains(&done), "{done}");
        told += 1;
        if told == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
}

#[test]
fn requests_at_one_time_have_no_rate() {
    let error = live(&plan(&trace("once", (0..5).map(|n| (7, n * 4096, 4096))))).expect_err("no rate");
    let Error::Input(message) = error else { panic!("{error:?}") };
    assert!(message.contains("once.csv") && message.contains("at one time"), "{message}");
}
