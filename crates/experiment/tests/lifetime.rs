//! Lifetimes: closed forms, whole lives that agree with fast-forwarded ones, what
//! throttles guarantee, and bad input.

use flashkeel_device::ThrottleConfig;
use std::ops::ControlFlow;

use flashkeel_experiment::{Error, Lifetime, lifetimes};
use serde_json::{Value, json};

fn live(plan: &Value, seed: u64) -> Result<Lifetime, Error> {
    let plans = json!([plan]).to_string();
    lifetimes(&plans, &[seed], &mut |_, _| ControlFlow::Continue(()))
        .map(|mut lives| lives.remove(0).remove(0))
}

fn run(plan: Value) -> Lifetime {
    live(&plan, 1).expect("a good plan")
}

fn years(life: &Lifetime) -> f64 {
    life.years.expect("worn out one day")
}

/// A drive of READY's setting: 3000 cycles and so much flash.
fn drive(flash_gb: f64) -> Value {
    json!({ "capacity": format!("{}MB", (flash_gb * 1e3 / 1.07) as u64), "rated_cycles": 3000 })
}

fn profile(name: &str, flash_gb: f64, waf: f64, throttle: &str) -> Value {
    json!({
        "drive": drive(flash_gb),
        "traffic": { "policy": "profile", "name": name },
        "write_amplification": waf,
        "throttle": throttle,
        "recovery": {},
    })
}

#[test]
fn without_throttle_and_recovery_a_life_is_capacity_times_cycles_over_traffic() {
    let mut plan = profile("exchange", 128.0, 2.24, "none");
    plan.as_object_mut().unwrap().remove("recovery");
    let life = run(plan.clone());
    assert!((years(&life) - 0.95).abs() < 0.01, "{:?}", life.years);
    assert!((life.endured.cycles / 3_000.0 - 1.0).abs() < 1e-4);
    // The same endurance in other words.
    let bytes = 128e9 * 3_000.0 / 2.24;
    for (key, value) in [
        ("tbw", json!(format!("{}GB", (bytes / 1e9) as u64))),
        ("dwpd", json!(bytes / (128e9 / 1.07) / 1_825.0)),
    ] {
        let drive = plan["drive"].as_object_mut().unwrap();
        drive.retain(|key, _| key == "capacity");
        drive.insert(key.into(), value);
        let other = run(plan.clone());
        assert!((years(&other) / years(&life) - 1.0).abs() < 1e-3, "{key}: {:?}", other.years);
    }
}

#[test]
fn a_large_drive_that_is_written_to_as_it_is_rated_for_lasts_its_warranty() {
    let plan = |capacity: &str, per_day: &str| {
        json!({
            "drive": { "capacity": capacity, "dwpd": 1.0 },
            "traffic": { "policy": "constant", "per_day": per_day },
        })
    };
    let is_slow = |life: &Lifetime| life.endured.slowdown > 1.05;
    for (capacity, per_day) in [("960GB", "960GB"), ("3840GB", "3840GB"), ("7680GB", "7680GB")] {
        let life = run(plan(capacity, per_day));
        // A closed loop: what a write takes itself comes on top.
        assert!((5.0..5.25).contains(&years(&life)), "{capacity}: {:?}", life.years);
        assert!(!is_slow(&life), "{capacity}: {:?}", life.endured);
    }
    // Nothing writes 10 GB/s to 960 GB.
    let life = run(plan("960GB", "864TB"));
    assert!(is_slow(&life), "{:?}", life.endured);
}

/// Half a year with a tenth of the cycles: as much throttling as in five years.
fn half_a_year(name: &str, waf: f64, throttle: &str) -> Value {
    let mut plan = profile(name, 128.0, waf, throttle);
    plan["drive"]["rated_cycles"] = json!(300);
    plan["target"] = json!("4380h");
    plan
}

#[test]
fn ready_keeps_the_lifetime_and_holds_writes_less_than_a_cap() {
    let [none, cap, dynamic, ready] =
        ["none", "static-cap", "dynamic", "ready"].map(|guard| run(half_a_year("exchange", 2.24, guard)));
    assert!(years(&none) < 0.2, "{:?}", none.years);
    assert!((0.495..0.51).contains(&years(&ready)), "{:?}", ready.years);
    assert!(years(&cap) > 0.6 && years(&dynamic) > 0.6, "{:?} {:?}", cap.years, dynamic.years);
    let mean = |life: &Lifetime| life.response.as_ref().expect("writes").mean_ns;
    assert!(mean(&none) < mean(&ready) && mean(&ready) < mean(&dynamic));
    assert!(mean(&ready) < mean(&cap));
}

/// A demand that swings over an hour, about 0.45 GB of it, in windows of 2 min.
fn hour() -> std::path::PathBuf {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hour.csv");
    let window = |n: u32| (15e6 * (1.0 + 0.6 * (f64::from(n) / 5.0).sin())) as u64;
    let lines: String = (0..30).map(|n| format!("{n},{}\n", window(n))).collect();
    std::fs::write(&path, format!("window,write_bytes\n{lines}")).expect("a writable folder");
    path
}

/// A small drive whose whole life can be simulated: 160 cycles in some days.
fn small(throttle: &str, method: &str) -> Value {
    json!({
        "drive": { "capacity": "32MiB", "over_provisioning": 0.25, "rated_cycles": 160 },
        "traffic": { "policy": "series", "path": hour(), "interval": "2min" },
        "throttle": throttle,
        "target": "2d",
        "recovery": { "onset": "1min" },
        "method": method,
    })
}

#[test]
fn fast_forward_agrees_with_the_simulation_of_every_write() {
    let mut measured = None;
    for &throttle in ThrottleConfig::NAMES {
        // A cap is set by the write amplification, so it must be known before.
        let life = |method| {
            let mut plan = small(throttle, method);
            plan["write_amplification"] = json!(measured.filter(|_| throttle == "static-cap"));
            run(plan)
        };
        let (plain, fast) = (life("plain"), life("fast-forward"));
        measured = plain.endured.write_amplification_measured;
        let off = years(&fast) / years(&plain) - 1.0;
        let mean = |life: &Lifetime| life.response.as_ref().expect("writes").mean_ns;
        let slower = mean(&fast) / mean(&plain) - 1.0;
        let first = |life: &Lifetime| Some(life.blocks.as_ref()?.first_worn_years / years(life));
        let (foreseen, seen) = (first(&fast).expect("wear"), first(&plain).expect("wear"));
        println!(
            "{throttle}: lifetime {off:+.4}, response {slower:+.4}, first block {foreseen:.3} {seen:.3}"
        );
        assert!(
            (foreseen - seen).abs() < 0.03,
            "{throttle}: first block after {foreseen}, {seen} of the life"
        );
        assert!(off.abs() < 0.01, "{throttle}: {:?} and {:?} years", plain.years, fast.years);
        assert!(slower.abs() < 0.03, "{throttle}: {:?} and {:?}", plain.response, fast.response);
    }
}

#[test]
fn levelling_lets_the_first_block_live_nearly_as_long_as_the_mean_one() {
    let first_over_mean = |threshold: Option<u32>| {
        let life = run(json!({
            "drive": {
                "capacity": "32MiB", "over_provisioning": 0.25, "rated_cycles": 150,
                "wear_levelling": threshold,
            },
            "traffic": { "policy": "constant", "per_day": "200GB" },
            "pattern": { "policy": "hot-cold", "hot_space": 0.5, "hot_accesses": 1.0 },
            "method": "plain",
        }));
        life.blocks.expect("worn").first_worn_years / life.years.expect("worn out")
    };
    let (without, with) = (first_over_mean(None), first_over_mean(Some(10)));
    assert!(with > 0.93 && without < with - 0.05, "{without} of the mean's life, levelled {with}");
}

#[test]
fn five_years_take_no_time() {
    let start = std::time::Instant::now();
    let life = run(profile("msnfs", 128.0, 2.26, "ready"));
    assert!(years(&life) > 4.9);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn a_seed_reproduces_a_life() {
    let plan = half_a_year("map", 1.68, "ready");
    let text = |seed| serde_json::to_string(&live(&plan, seed).unwrap());
    assert_eq!(text(1).unwrap(), text(1).unwrap());
    assert_ne!(text(1).unwrap(), text(2).unwrap());
}

#[test]
fn without_writes_a_drive_lasts_for_ever() {
    let life = run(json!({ "drive": drive(32.0), "traffic": { "policy": "constant", "per_day": "0B" } }));
    assert!(life.is_infinite && life.years.is_none());
    assert!(life.notes.iter().any(|note| note.contains("for ever")), "{:?}", life.notes);
}

#[test]
fn few_writes_outlast_everybody() {
    let life = run(json!({ "drive": drive(32.0), "traffic": { "policy": "constant", "per_day": "1KB" } }));
    assert!(!life.is_infinite && life.years.is_none());
    assert!(life.notes.iter().any(|note| note.contains("not worn out after 100 years")), "{:?}", life.notes);
}

#[test]
fn the_first_worn_block_is_told_though_the_mean_one_outlasts_everybody() {
    let life = |cycles: u32| {
        run(json!({
            "drive": { "capacity": "1GB", "rated_cycles": cycles },
            "traffic": { "policy": "constant", "per_day": "2400KB" },
            "pattern": { "policy": "hot-cold", "hot_space": 0.1, "hot_accesses": 0.99 },
            "write_amplification": 2.0,
        }))
    };
    let first = |life: &Lifetime| life.blocks.as_ref().expect("wear").first_worn_years;
    let (short, long) = (life(100), life(300));
    assert!(years(&short) < 100.0 && long.years.is_none());
    // Chance counts for less, the longer a life is.
    let longer = first(&long) / first(&short);
    assert!((3.0..3.6).contains(&longer), "{longer}");
}

#[test]
fn a_life_that_a_throttle_keeps_beyond_a_hundred_years_ends_there() {
    let life = |target_years: u64| {
        run(json!({
            "drive": { "capacity": "32MiB", "over_provisioning": 0.25, "rated_cycles": 60 },
            "traffic": { "policy": "constant", "per_day": "1GB" },
            "throttle": "dynamic",
            "target": format!("{}s", target_years * 365 * 86_400),
            "write_amplification": 2.6,
            "method": "plain",
        }))
    };
    assert!((years(&life(90)) / 90.0 - 1.0).abs() < 0.1);
    assert_eq!(life(101).years, None);
}

#[test]
fn bad_plans_are_refused() {
    let traffic = json!({ "policy": "constant", "per_day": "10GB" });
    let refused = |plan: Value| match live(&plan, 1) {
        Err(Error::Input(message)) => message,
        other => panic!("{plan}: {other:?}"),
    };
    for (drive, part) in [
        (json!({ "capacity": "0B", "rated_cycles": 10 }), "drive.capacity is zero"),
        (json!({ "capacity": "1MB", "rated_cycles": 10 }), "at least 32MiB"),
        (json!({ "capacity": "1GB" }), "give one of rated_cycles, tbw and dwpd"),
        (json!({ "capacity": "1GB", "rated_cycles": 10, "dwpd": 1.0 }), "given twice"),
        (json!({ "capacity": "1GB", "rated_cycles": 0 }), "drive.rated_cycles is not above zero"),
        (json!({ "capacity": "1GB", "dwpd": -1.0 }), "drive.dwpd is not above zero"),
        (json!({ "capacity": "1GB", "tbw": "1KB" }), "cycles of a block"),
        (json!({ "capacity": "1GB", "dwpd": 1.0, "over_provisioning": -0.1 }), "over_provisioning"),
        (json!({ "capacity": "1GB", "rated_cycles": 10, "wear_levelling": 0 }), "wear_levelling is 0"),
        (json!({ "capacity": "1GB", "rated_cyles": 10 }), "did you mean \"rated_cycles\""),
        (json!({ "rated_cycles": 10 }), "capacity"),
    ] {
        let message = refused(json!({ "drive": drive, "traffic": traffic }));
        assert!(message.contains(part), "{message}");
    }
    let good = drive(32.0);
    for (key, value, part) in [
        ("target", json!("0s"), "target is zero"),
        ("target", json!("1h"), "target is 1h"),
        ("write_amplification", json!(0.0), "write_amplification"),
        ("throttle", json!("redy"), "redy"),
        ("epochs", json!(["90s"]), "throttle.epochs"),
        ("recovery", json!({ "onset": "0s" }), "wear.onset"),
        ("method", json!("plain"), "use \"fast-forward\""),
    ] {
        let mut plan = json!({ "drive": good, "traffic": traffic, "throttle": "ready" });
        plan[key] = value;
        let message = refused(plan);
        assert!(message.contains(part), "{message}");
    }
    // What tbw and dwpd are worth in cycles depends on the write amplification.
    for endurance in ["tbw", "dwpd"] {
        let mut drive = json!({ "capacity": "32MiB", "over_provisioning": 0.25 });
        drive[endurance] = if endurance == "tbw" { json!("5GB") } else { json!(0.1) };
        let message = refused(json!({ "drive": drive, "traffic": traffic, "method": "plain" }));
        assert!(message.contains("write_amplification is missing"), "{message}");
    }
}

#[test]
fn a_small_drive_is_told_what_spare_flash_it_needs() {
    let plan = |spare: f64| {
        json!({
            "drive": { "capacity": "64MB", "over_provisioning": spare, "rated_cycles": 10 },
            "traffic": { "policy": "constant", "per_day": "1GB" },
        })
    };
    let refused = live(&plan(0.07), 1).expect_err("too little").to_string();
    let enough = refused
        .strip_prefix("drive.over_provisioning is 0.07, too little for a drive of 64MB, which has few blocks: at least ")
        .and_then(|rest| rest.strip_suffix(", or more capacity"));
    let enough: f64 = enough.unwrap_or_else(|| panic!("{refused}")).parse().expect("a number");
    assert!(live(&plan(enough), 1).is_ok() && live(&plan(enough - 0.01), 1).is_err(), "{refused}");
}

#[test]
fn an_endurance_is_judged_at_its_write_amplification() {
    // Less than half a cycle of what the host writes, but more of what is programmed.
    let life = run(json!({
        "drive": { "capacity": "32MiB", "over_provisioning": 0.25, "tbw": "15MB" },
        "traffic": { "policy": "constant", "per_day": "1GB" },
        "write_amplification": 4.0,
    }));
    assert_eq!(life.endured.rated_cycles, 1.0);
}
