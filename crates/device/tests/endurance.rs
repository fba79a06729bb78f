//! Wear and the throttles that guard it: the law's shape, what blocks add up,
//! a required lifetime that is kept, and long stretches that agree with single
//! writes.

mod support;

use flashkeel_device::{
    Cycle, DeviceConfig, Endurance, Passed, Stretch, THROTTLE_UNIT_BYTES, Throttle, ThrottleConfig,
    WearConfig,
};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Cause, Hint, Leaf, Operation, Span, Stream, Submit, Time};
use serde_json::json;
use support::{policy, ready, request, timed, tiny};

const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;

fn worn(wear: serde_json::Value) -> DeviceConfig {
    DeviceConfig { wear: policy(wear), ..tiny() }
}

#[test]
fn recovery_is_nothing_at_once_and_grows_ever_more_slowly() {
    let law = policy::<WearConfig>("self-recovery").policy().build().expect("a law");
    assert_eq!(law.cost(Span::ZERO), 1.0);
    let endured = |minutes: u64| 1.0 / law.cost(Span(minutes * MINUTE));
    for minutes in 1..5_000 {
        let (before, now, after) = (endured(minutes - 1), endured(minutes), endured(minutes + 1));
        assert!(before < now && after - now < now - before, "at {minutes} min");
    }
    // What READY's results imply: `proj` reaches five years, `proxy` does not.
    let idle = |gb: f64, gb_per_hour: f64, waf: f64| (gb / (gb_per_hour * waf) * 60.0) as u64;
    assert!(endured(idle(32.0, 2.08, 1.62)) >= 1.54);
    assert!(endured(idle(32.0, 4.94, 1.93)) < 4.35);
}

/// One write at a time, each `gap_ns` after the last has completed, until
/// `end_ns`. Returns the number of writes and the time they were held.
fn think(ssd: &mut flashkeel_device::Ssd, gap_ns: u64, end_ns: u64, seed: u64) -> (u64, u64) {
    let (mut now, mut writes, mut held) = (Time::ZERO, 0, 0);
    let mut stream = Stream::new(seed, "pages");
    let mut completions = Vec::new();
    while now.0 < end_ns {
        ssd.advance(now, &mut Arena::new(), &mut completions);
        assert!(completions.is_empty());
        let page = 2 * stream.below(512);
        assert_eq!(
            ssd.submit(now, &request(writes, Operation::Write, page, 2), &mut Arena::new()),
            Submit::Accepted
        );
        let done =
            ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut completions).expect("a completion");
        held += completions[0].ledger.ns(Cause::Throttle);
        completions.clear();
        writes += 1;
        now = done + Span(gap_ns);
    }
    (writes, held)
}

#[test]
fn blocks_wear_by_their_cycles_and_less_if_idle() {
    for (wear, is_full) in [("rated", true), ("self-recovery", false)] {
        let mut ssd = ready(&worn(json!({ "policy": wear })), 1);
        think(&mut ssd, 50_000_000, HOUR, 1);
        let endurance = ssd.endurance();
        assert!(endurance.cycles > 20.0, "{endurance:?}");
        if is_full {
            assert_eq!(endurance.wear, endurance.cycles);
        } else {
            assert!(endurance.wear < 0.99 * endurance.cycles, "{endurance:?}");
        }
        let worn: Vec<f64> = ssd.worn().collect();
        let mean = worn.iter().sum::<f64>() / worn.len() as f64;
        assert!((mean / endurance.wear - 1.0).abs() < 1e-9);
        let told = ssd.report().wear.expect("wear is accounted for");
        assert_eq!((told.rated_cycles, told.mean_cycles), (endurance.rated_cycles, endurance.wear));
        assert_eq!(told.most_cycles, worn.iter().copied().fold(0.0, f64::max));
        // What is erased was programmed.
        let programmed = ssd.report().programmed_bytes as f64 / endurance.flash_bytes;
        assert!((endurance.cycles / programmed - 1.0).abs() < 0.02, "{endurance:?} against {programmed}");
    }
}

#[test]
fn what_has_been_used_is_known_after_a_restart() {
    for wear in ["rated", "self-recovery"] {
        let config = worn(json!({ "policy": wear }));
        let mut ssd = ready(&config, 1);
        think(&mut ssd, 50_000_000, HOUR, 1);
        let used = ssd.endurance();
        let worn: Vec<f64> = ssd.worn().collect();
        // Its file also counts what was erased before the run.
        let cycle = |block: usize| Cycle { erases: 1_000, worn: worn[block], ..Cycle::default() };
        let found = support::restarted(&config, 0, cycle).endurance();
        assert!((found.wear / used.wear - 1.0).abs() < 1e-9, "{wear}: {found:?} after {used:?}");
        if wear == "rated" {
            assert_eq!((found.cycles, found.cost), (used.cycles, 1.0));
        } else {
            // Cycles that have cost less are not told from fewer.
            assert!((found.wear..=used.cycles).contains(&found.cycles), "{found:?} after {used:?}");
            assert!((used.cost..=1.0).contains(&found.cost), "{found:?} after {used:?}");
        }
    }
}

/// They were taken for what one write had cost, by which an epoch was planned.
#[test]
fn pages_buffered_before_a_restart_amplify_no_write_after_it() {
    let config = worn(json!("rated"));
    let mut ssd = support::restarted(&config, 64, |_| Cycle::default());
    let write = (50_000_000_000, Operation::Write, 100, 1);
    timed(&mut ssd, &[write]);
    assert!(ssd.report().programmed_bytes > 0);
    let amplification = ssd.endurance().write_amplification;
    assert!((0.9..1.5).contains(&amplification), "{amplification}");
}

#[test]
fn the_end_of_a_warm_up_changes_nothing_of_it() {
    let mut ssd = ready(&worn(json!("rated")), 1);
    think(&mut ssd, 50_000_000, 10 * MINUTE, 1);
    let before = ssd.endurance();
    assert!(before.write_amplification > 1.1, "{before:?}");
    ssd.reset_counters();
    assert_eq!(ssd.endurance(), before);
}

#[test]
fn write_amplification_is_what_fills_blocks() {
    let mut folding = worn(json!("rated"));
    folding.slc_cache = policy(json!({ "policy": "fold", "size": "1MiB" }));
    let mut merging = worn(json!("rated"));
    merging.logical_capacity = Bytes(1 << 20);
    merging.buffer.rewrite = policy("coalesce");
    merging.buffer.flush = vec![policy("watermark")];
    for (config, is_below_one) in [(folding, false), (merging, true)] {
        let mut ssd = ready(&config, 1);
        let requests = (0..100_000).map(|id| request(id, Operation::Write, id * id % 241, 1));
        let done = support::closed_loop(&mut ssd, 4, requests);
        let endurance = ssd.endurance();
        let waf = endurance.write_amplification;
        assert_eq!(waf < 1.0, is_below_one, "{waf}");
        let cycles = done.len() as f64 * 4096.0 * waf / endurance.flash_bytes;
        assert!((endurance.cycles / cycles - 1.0).abs() < 0.05, "{endurance:?} against {cycles} cycles");
    }
}

#[test]
fn wear_is_not_accounted_unless_asked_for() {
    let mut ssd = ready(&tiny(), 1);
    think(&mut ssd, 50_000_000, 2 * MINUTE, 1);
    assert_eq!((ssd.worn().count(), ssd.endurance()), (0, Endurance::default()));
}

#[test]
fn a_required_lifetime_is_kept_by_holding_every_page_alike() {
    // Ten cycles in four hours of writes that would use them up in one minute.
    for throttle in ["dynamic", "ready"] {
        let config = DeviceConfig {
            throttle: policy(json!({ "policy": throttle, "lifetime": "4h", "epochs": ["1min"] })),
            ..worn(json!({ "policy": "rated", "rated_cycles": 10 }))
        };
        let mut ssd = ready(&config, 1);
        think(&mut ssd, 5_000_000, 4 * HOUR - MINUTE, 1);
        let wear = ssd.endurance().wear;
        assert!((9.3..=10.1).contains(&wear), "{throttle}: {wear} of 10 cycles");
    }
}

#[test]
fn a_throttle_that_needs_wear_is_refused_without() {
    let error = DeviceConfig { throttle: policy("ready"), ..tiny() }.validate().unwrap_err();
    assert!(error.contains("rated cycles") && error.contains("wear is \"none\""), "{error}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let refused = |axis: &str, settings: serde_json::Value| {
        let mut value = serde_json::to_value(worn(json!("rated"))).expect("plain data");
        value[axis] = settings;
        support::read(value).expect_err("out of range")
    };
    for (axis, settings, key) in [
        ("wear", json!({ "policy": "rated", "rated_cycles": 0 }), "wear.rated_cycles"),
        ("wear", json!({ "policy": "self-recovery", "rated_cycles": 0 }), "wear.rated_cycles"),
        ("wear", json!({ "policy": "self-recovery", "gain_per_decade": -1.0 }), "wear.gain_per_decade"),
        ("wear", json!({ "policy": "self-recovery", "onset": "0ns" }), "wear.onset"),
        ("throttle", json!({ "policy": "static-cap", "period": "0ns" }), "throttle.period"),
        ("throttle", json!({ "policy": "static-cap", "rate": "1B/s", "period": "1ms" }), "throttle.period"),
        ("throttle", json!({ "policy": "ready", "epochs": [] }), "throttle.epochs"),
        ("throttle", json!({ "policy": "ready", "epochs": ["90s"] }), "throttle.epochs"),
        ("throttle", json!({ "policy": "ready", "lifetime": "1min" }), "throttle.lifetime"),
        ("throttle", json!({ "policy": "dynamic", "spare": 1.5 }), "throttle.spare"),
        ("throttle", json!({ "policy": "dynamic", "period": "2h" }), "throttle.period"),
    ] {
        let error = refused(axis, settings);
        assert!(error.starts_with(key), "{error}");
    }
}

#[test]
fn a_static_cap_stops_writes_for_the_rest_of_a_period() {
    let cap = policy::<ThrottleConfig>(json!({ "policy": "static-cap", "rate": "80KiB/s" }));
    let mut cap = cap.policy().build().expect("a throttle");
    let held: Vec<u64> =
        (0..25).map(|_| cap.delay(Time(200_000_000), THROTTLE_UNIT_BYTES, Hint(0)).0 / 1_000_000).collect();
    let expected: Vec<u64> = (0..25).map(|write| [0, 800, 1_800][write / 10]).collect();
    assert_eq!(held, expected);
    // A period without writes leaves nothing over.
    assert_eq!(cap.delay(Time(10_200_000_000), THROTTLE_UNIT_BYTES, Hint(0)).0, 0);
}

/// Five days of a demand that swings over each day, with the endurance of a
/// drive that can take a third of it; what was written by the hour, and how
/// long it was held.
fn by_the_hour(
    config: serde_json::Value,
    mut write: impl FnMut(&mut dyn Throttle, Time, Time, f64) -> (f64, f64),
) -> Vec<(f64, f64)> {
    let mut throttle = policy::<ThrottleConfig>(config).policy().build().expect("a throttle");
    let mut endurance = Endurance {
        rated_cycles: 100.0,
        flash_bytes: 1e9,
        cost: 1.0,
        write_amplification: 2.0,
        ..Endurance::default()
    };
    let mut hours = vec![(0.0, 0.0); 120];
    for step in 0..120 * 12 {
        let (from, until) = (Time(step * 5 * MINUTE), Time((step + 1) * 5 * MINUTE));
        if from >= throttle.review_due() {
            throttle.review(from, &endurance);
        }
        let phase = (step % 288) as f64 / 288.0 * std::f64::consts::TAU;
        let gap_ns = 8e6 / (1.0 + 0.7 * phase.sin());
        let (pages, held) = write(throttle.as_mut(), from, until, gap_ns);
        let hour = &mut hours[step as usize / 12];
        *hour = (hour.0 + pages, hour.1 + held);
        endurance.cycles += pages * THROTTLE_UNIT_BYTES as f64 * 2.0 / 1e9;
        endurance.wear = endurance.cycles;
    }
    hours
}

#[test]
fn a_long_stretch_is_the_same_as_its_writes() {
    let plan = |name: &str| json!({ "policy": name, "lifetime": "10d", "epochs": ["30min", "1h"] });
    for config in [json!({ "policy": "static-cap", "rate": "50KB/s" }), plan("dynamic"), plan("ready")] {
        let singly = by_the_hour(config.clone(), |throttle, from, until, gap_ns| {
            let (mut now, mut pages, mut held) = (from, 0.0, 0.0);
            while now < until {
                let delay = throttle.delay(now, THROTTLE_UNIT_BYTES, Hint(0));
                (pages, held) = (pages + 1.0, held + delay.0 as f64);
                now = now + delay + Span(gap_ns as u64);
            }
            (pages, held)
        });
        let at_once = by_the_hour(config.clone(), |throttle, from, until, gap_ns| {
            let mut held = 0.0;
            let stretch = Stretch { from, until, gap_ns, pages: f64::INFINITY };
            let Passed { pages, until: end } =
                throttle.stretch(&stretch, &mut |pages, delay_ns| held += pages * delay_ns);
            assert_eq!(end, until);
            (pages, held)
        });
        let sum = |hours: &[(f64, f64)]| {
            hours.iter().fold((0.0, 0.0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1))
        };
        let ((pages, held), (pages_too, held_too)) = (sum(&singly), sum(&at_once));
        assert!((pages_too / pages - 1.0).abs() < 0.005, "{config}: {pages} and {pages_too} pages");
        assert!((held_too / held - 1.0).abs() < 0.01, "{config}: held {held} and {held_too} ns");
    }
}

#[test]
fn dynamic_throttling_holds_writes_more_evenly_than_a_cap() {
    let spread = |config| {
        let mut longest: f64 = 0.0;
        let hours = by_the_hour(config, |throttle, from, until, gap_ns| {
            let (mut pages, mut held) = (0.0, 0.0);
            let stretch = Stretch { from, until, gap_ns, pages: f64::INFINITY };
            throttle.stretch(&stretch, &mut |count, delay_ns| {
                (pages, held) = (pages + count, held + count * delay_ns);
                longest = longest.max(delay_ns);
            });
            (pages, held)
        });
        let settled = &hours[24..];
        let mean = settled.iter().map(|(_, held)| held).sum::<f64>()
            / settled.iter().map(|(pages, _)| pages).sum::<f64>();
        longest / mean
    };
    let plan = json!({ "policy": "dynamic", "lifetime": "10d", "epochs": ["30min"] });
    let (even, uneven) = (spread(plan), spread(json!({ "policy": "static-cap", "rate": "50KB/s" })));
    assert!(even < 4.0 && uneven > 5.0, "longest over mean: {even} by epochs, {uneven} under a cap");
}
