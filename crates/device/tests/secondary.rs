//! Secondary features: sleep when idle, and the SLC cache.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Ssd};
use flashkeel_engine::{Cause, Operation};
use serde_json::json;
use support::{UNIT, exact_chip, policy, ready, timed};

const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write;
const MS: u64 = 1_000_000;

#[test]
fn an_idle_device_sleeps_and_the_next_requests_wait_until_it_is_awake() {
    let mut config = exact_chip(64);
    let mut awake = ready(&config, 1);
    config.power =
        policy(json!({ "policy": "idle-sleep", "after": "10ms", "wake": { "min": "1ms", "max": "1ms" } }));
    let mut ssd = ready(&config, 1);
    // Silence of just under 10 ms, then of over 10 ms, then a request within the wake-up.
    let requests =
        [(MS, READ, 0, 1), (10 * MS, READ, 0, 1), (30 * MS, READ, 0, 1), (30 * MS + MS / 4, READ, 64, 1)];
    let done = timed(&mut ssd, &requests);
    let plain = timed(&mut awake, &requests);
    let waits: Vec<u64> = done.iter().map(|completion| completion.ledger.ns(Cause::WakeUp)).collect();
    assert_eq!(waits, [0, 0, MS, MS - MS / 4]);
    assert_eq!(done[2].time.since(plain[2].time).0, MS);
}

#[test]
fn a_write_is_held_while_the_device_wakes() {
    let mut config = exact_chip(64);
    config.power =
        policy(json!({ "policy": "idle-sleep", "after": "10ms", "wake": { "min": "1ms", "max": "1ms" } }));
    config.throttle = policy(json!({ "policy": "static-cap", "rate": "80KiB/s", "period": "100ms" }));
    let mut ssd = ready(&config, 1);
    // Two pages a period: the second write has to wait for the next one.
    let done =
        timed(&mut ssd, &[(MS, WRITE, 0, 2), (90 * MS, WRITE, 2, 2), (190 * MS + MS / 2, WRITE, 4, 2)]);
    let held: Vec<[u64; 2]> =
        done.iter().map(|done| [Cause::WakeUp, Cause::Throttle].map(|cause| done.ledger.ns(cause))).collect();
    assert_eq!(held, [[0, 0], [MS, 9 * MS], [MS, 8 * MS + MS / 2]]);
}

/// One chip whose buffer acknowledges in flash, so that a write shows its program.
fn slc(start_above: f64, stop_below: f64) -> DeviceConfig {
    let mut config = exact_chip(64);
    config.buffer.kind = policy("none");
    let page = u64::from(ready(&config, 1).sectors() > 0) * config.geometry.page_size.0;
    config.slc_cache = policy(json!({
        "policy": "fold", "size": format!("{}B", 4 * page), "program": "100us",
        "idle_after": "20ms", "start_above": start_above, "stop_below": stop_below,
    }));
    config
}

/// Writes whole flash pages `gap_ns` apart; returns their times in flash.
fn programs(ssd: &mut Ssd, config: &DeviceConfig, start: u64, gap_ns: u64, count: u64) -> Vec<u64> {
    let pages = (config.geometry.page_size.0 / 4096) as u32;
    let requests: Vec<_> =
        (0..count).map(|i| (start + i * gap_ns, WRITE, i * u64::from(pages), pages)).collect();
    let done = timed(ssd, &requests);
    done.iter().map(|completion| completion.ledger.ns(Cause::OwnFlash)).collect()
}

#[test]
fn writes_are_fast_until_the_cache_is_full_and_again_after_it_was_folded() {
    let config = slc(1.0, 1.0);
    let mut ssd = ready(&config, 1);
    ssd.reset_counters();
    // `timed` lets the device settle: the silence after the writes folds all of them.
    let own = programs(&mut ssd, &config, 0, 5 * MS, 6);
    let (fast, dense) = (own[0], own[5]);
    assert_eq!(dense - fast, 400_000, "500 us against 100 us");
    assert_eq!(own, [fast, fast, fast, fast, dense, dense]);
    assert_eq!(ssd.counters().operations(Activity::Fold.program()), 4);
    let again = programs(&mut ssd, &config, 200 * MS, 5 * MS, 1);
    assert_eq!(again, [fast]);
    assert_eq!(ssd.report().flash_operations["fold"], 5);
    ssd.check();
}

#[test]
fn a_cache_nearly_full_is_folded_beside_the_host() {
    let config = slc(0.5, 0.25);
    let mut ssd = ready(&config, 1);
    let pages = (config.geometry.page_size.0 / 4096) as u32;
    // The third page passes half of the four; folding goes on while it is more than one.
    let writes: Vec<_> = (0..3).map(|i| (i * 5 * MS, WRITE, i * u64::from(pages), pages)).collect();
    let read = (10 * MS + MS / 2, READ, 40, 1);
    let done = timed(&mut ssd, &[&writes[..], &[read]].concat());
    assert!(done[3].ledger.ns(Cause::BehindFold) > 0, "{:?}", done[3].ledger);
    assert_eq!(done[2].ledger.ns(Cause::BehindFold), 500_000, "the fold came first");
}

#[test]
fn a_page_is_folded_once_it_has_been_programmed() {
    // Too full with the first page.
    let config = slc(0.0, 0.0);
    let mut ssd = ready(&config, 1);
    ssd.reset_counters();
    let pages = (config.geometry.page_size.0 / 4096) as u32;
    let writes: Vec<_> = (0..3).map(|i| (i * 5 * MS, WRITE, i * u64::from(pages), pages)).collect();
    let done = timed(&mut ssd, &writes);
    assert!(done.iter().all(|done| done.ledger.ns(Cause::BehindFold) == 0), "{done:?}");
    assert_eq!(ssd.counters().operations(Activity::Fold.program()), 3);
}

#[test]
fn parity_of_pages_in_the_cache_is_programmed_as_fast_and_folded() {
    let mut config = slc(1.0, 1.0);
    config.geometry.channels = 2;
    config.redundancy = policy(json!({ "policy": "physical", "pages": 2 }));
    let mut ssd = ready(&config, 1);
    ssd.reset_counters();
    let pages = (config.geometry.page_size.0 / 4096) as u32;
    let done = timed(&mut ssd, &[(0, WRITE, 0, pages), (1_000, WRITE, u64::from(pages), pages)]);
    // The next page of the block lies on the chip of the parity.
    let behind = done[1].ledger.ns(Cause::BehindParity);
    assert!(behind > 0 && behind <= 100_000 + u64::from(pages) * UNIT, "{behind} ns behind parity");
    let counters = ssd.counters();
    let [parity, folds] = [Activity::Parity.program(), Activity::Fold.program()];
    assert_eq!((counters.operations(parity), counters.operations(folds)), (2, 4));
}
