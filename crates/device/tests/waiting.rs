//! Who may open a block only while the host may, beside a host that takes each block as
//! soon as it is free: none of them waits for ever, and neither does the host.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Fault, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Completion, Leaf, Operation, Request, Span, Stream, Submit, Time};
use support::{closed_loop_with, policy, ready, request, settle};

/// Pages of the host. It writes to the first half of them.
const PAGES: u64 = 3072;

/// A device whose buffer holds the data of 32 blocks: with writes alone, more than a block
/// holds waits to be programmed at any time.
fn pressed(allocation: &str) -> DeviceConfig {
    let mut config = support::tiny();
    config.geometry.blocks_per_plane = 44;
    config.logical_capacity = Bytes(PAGES * 4096);
    config.buffer.size = Bytes(4 << 20);
    config.allocation = policy(allocation);
    config.scheduler = policy("fifo");
    config.gc.concurrent_victims = 1;
    config.gc.victim = policy("greedy");
    config.precondition.pattern = FillPattern::Sequential;
    config.precondition.read_counts_below = Some(0);
    config
}

/// Writes at random to the first half, and so many reads in a thousand requests of the
/// other.
fn writes(count: u64, reads: u64) -> impl Iterator<Item = Request> {
    let mut random = Stream::new(1, "test workload");
    (0..count).map(move |id| match random.below(1000) < reads {
        true => request(id, Operation::Read, random.between(PAGES / 2, PAGES - 1), 1),
        false => request(id, Operation::Write, random.below(PAGES / 2), 1),
    })
}

fn gauge(ssd: &Ssd, name: &str) -> u64 {
    let mut values = Vec::new();
    ssd.gauges(&mut values);
    values[Ssd::gauge_names().iter().position(|other| other == name).expect("a gauge")]
}

/// Serves requests; the device, and the most that a gauge has been in the second half of
/// them.
fn most(config: &DeviceConfig, count: u64, reads: u64, name: &str) -> (Ssd, u64) {
    let mut ssd = ready(config, 1);
    let (mut most, mut done) = (0, 0);
    closed_loop_with(&mut ssd, 64, writes(count, reads), |ssd, _| {
        done += 1;
        if done > count / 2 && done % 64 == 0 {
            most = most.max(gauge(ssd, name));
        }
    });
    settle(&mut ssd, &mut Vec::new());
    ssd.check();
    (ssd, most)
}

#[test]
fn wear_is_levelled_under_a_steady_load() {
    for allocation in ["dynamic", "striped"] {
        let mut config = pressed(allocation);
        config.wear_levelling.enabled = true;
        config.wear_levelling.threshold = 3;
        let (ssd, spread) = most(&config, 60_000, 0, "erase_count_spread");
        let levelled = ssd.counters().operations(Activity::WearLevelling.erase());
        assert!(levelled > 100 && spread <= 16, "{allocation}: {levelled} blocks, spread {spread}");
    }
}

#[test]
fn checkpoints_end_under_a_steady_load() {
    for allocation in ["dynamic", "striped"] {
        let mut config = pressed(allocation);
        config.checkpoint.enabled = true;
        config.checkpoint.period = Span::from_ms(10);
        let (_, to_scan) = most(&config, 40_000, 0, "pages_to_scan");
        // Of the 1408 there are.
        assert!(to_scan < 400, "{allocation}: {to_scan} flash pages");
    }
}

#[test]
fn blocks_are_scrubbed_under_a_steady_load() {
    for allocation in ["dynamic", "striped"] {
        let mut config = pressed(allocation);
        config.scrub.enabled = true;
        (config.scrub.start_above, config.scrub.stop_below) = (20, 10);
        let (ssd, reads) = most(&config, 40_000, 200, "max_read_count");
        let scrubbed = ssd.counters().operations(Activity::Scrub.erase());
        assert!(scrubbed > 100 && reads < 100, "{allocation}: {scrubbed} blocks, {reads} reads of one");
    }
}

#[test]
fn all_of_them_and_the_host_get_on_together() {
    for allocation in ["dynamic", "striped"] {
        let mut config = pressed(allocation);
        config.wear_levelling.enabled = true;
        config.wear_levelling.threshold = 3;
        config.scrub.enabled = true;
        (config.scrub.start_above, config.scrub.stop_below) = (20, 10);
        config.checkpoint.enabled = true;
        // The next one begins when one ends.
        config.checkpoint.period = Span::from_us(100);
        let (ssd, reads) = most(&config, 40_000, 200, "max_read_count");
        let operations = |purpose| ssd.counters().operations(purpose);
        let levelled = operations(Activity::WearLevelling.erase());
        let scrubbed = operations(Activity::Scrub.erase());
        let saved = operations(Activity::Checkpoint.program());
        let all = format!("{allocation}: {levelled} levelled, {scrubbed} scrubbed, {saved} map pages");
        assert!(levelled > 50 && scrubbed > 200 && saved > 400 && reads < 100, "{all}, {reads} reads of one");
    }
}

#[test]
fn what_is_lost_is_restored_under_a_steady_load() {
    let mut config = support::tiny();
    config.geometry.channels = 4;
    config.geometry.page_size = Bytes(4096);
    config.geometry.blocks_per_plane = 48;
    config.logical_capacity = Bytes(1680 * 4096);
    config.allocation = policy("striped");
    config.scheduler = policy("fifo");
    config.redundancy = policy("logical");
    config.buffer.rewrite = policy("coalesce");
    config.buffer.flush = vec![policy("watermark")];
    config.buffer.size = Bytes(256 * 4096);
    (config.gc.start_below, config.gc.stop_above) = (32, 40);
    config.gc.victim = policy("greedy");
    config.precondition.pattern = FillPattern::Sequential;
    let mut ssd = ready(&config, 1);
    let mut random = Stream::new(1, "test workload");
    let (mut now, mut done, mut inside): (Time, Vec<Completion>, usize) = (Time::ZERO, Vec::new(), 0);
    for id in 0..12_000 {
        if id == 4_000 {
            ssd.fail(now, Fault::Chip(3)).expect("the chip exists");
            assert!(ssd.lost_pages() > 50);
        }
        let write = request(id, Operation::Write, random.below(840), 1);
        assert_eq!(ssd.submit(now, &write, &mut Arena::new()), Submit::Accepted);
        inside += 1;
        while inside >= 256 {
            now = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done).expect("it goes on");
            inside -= done.len();
            done.clear();
        }
    }
    // The host fills up each block that one of them opens.
    let restored = ssd.counters().restored_pages;
    assert!(restored > 10, "{restored} pages");
    settle(&mut ssd, &mut done);
    assert_eq!(ssd.lost_pages(), 0);
    ssd.check();
}
