//! What is checked because it was copied back, and what passed the controller.

mod support;

use flashkeel_device::{Activity, DeviceConfig, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Stream};
use serde_json::json;
use support::*;

/// Four chips that collect within themselves, in flash pages of `units` 4 KiB pages.
fn device(movement: serde_json::Value, units: u64) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.page_size = Bytes(units * 4096);
    config.geometry.blocks_per_plane = 64;
    config.gc.victim = policy("greedy");
    config.gc.movement = policy(movement);
    config.scheduler = policy("fifo");
    config.precondition.pattern = FillPattern::Random;
    config.logical_capacity = Bytes(u64::from(config.geometry.blocks_per_plane) * units * 4096 * 22);
    config
}

/// After writes of `pages` pages at random, one every 2 ms.
fn written(config: &DeviceConfig, pages: u32, count: u64) -> Ssd {
    let mut ssd = ready(config, 1);
    let all = config.logical_capacity.0 / 4096 / u64::from(pages);
    let mut random = Stream::new(1, "writes");
    let writes: Vec<_> = (0..count)
        .map(|id| (id * 2_000_000, Operation::Write, random.below(all) * u64::from(pages), pages))
        .collect();
    timed(&mut ssd, &writes);
    ssd.check();
    ssd
}

#[test]
fn pages_that_pass_the_controller_are_neither_unchecked_nor_checked() {
    for movement in [
        json!({ "policy": "page-copyback" }),
        json!({ "policy": "page-copyback", "checked_after": 2 }),
        json!({ "policy": "plane-blocking" }),
    ] {
        // Written in quarters, hardly a flash page is valid as a whole.
        let ssd = written(&device(movement.clone(), 4), 1, 8_000);
        let counters = ssd.counters();
        assert!(counters.moved_pages > 1_000, "{movement}: {} moved", counters.moved_pages);
        let [unchecked, checked] = [counters.unchecked_pages, counters.checked_pages];
        assert!(unchecked * 20 < counters.moved_pages, "{movement}: {unchecked} unchecked");
        assert!(checked <= unchecked, "{movement}: {checked} of {unchecked} checked");
        // Written as a whole, each is that stays on its chip.
        let mut config = device(movement.clone(), 4);
        config.precondition.pattern = FillPattern::Sequential;
        let ssd = written(&config, 4, 4_000);
        let counters = ssd.counters();
        let elsewhere = 4 * counters.operations(Activity::Gc.program());
        assert!(counters.moved_pages <= counters.unchecked_pages + elsewhere, "{movement}: {counters:?}");
        assert!(counters.operations(Activity::Check.read()) > 100, "{movement}: {counters:?}");
    }
}

/// A block may be filled by what came from another chip, through the controller.
#[test]
fn a_block_is_checked_whoever_fills_it() {
    let mut config = device(json!("page-copyback"), 1);
    config.gc.concurrent_victims = 4;
    let mut ssd = ready(&config, 1);
    let count = config.logical_capacity.0 / 4096;
    closed_loop(&mut ssd, 32, random_pages(Operation::Write, count, 8_000, 1));
    ssd.check();
    let counters = ssd.counters();
    assert!(counters.operations(Activity::Gc.program()) > 100, "{counters:?}");
}
