//! The map cache: those who wait for a map page go on in the order in which they
//! came, and all of them go on.

mod support;

use flashkeel_device::{DeviceConfig, FillPattern, MapCacheSize, Trigger};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Cause, Operation};
use support::{GENERATION, LOOKUP, exact, ready, timed};

/// Pages whose addresses one map page has.
const PER_MAP_PAGE: u64 = 1024;

/// A device with four map pages, of which one has room in memory.
fn with_one_map_page() -> DeviceConfig {
    let mut config = exact();
    config.geometry.blocks_per_plane = 96;
    config.logical_capacity = Bytes(16 << 20);
    config.map_cache = MapCacheSize::Size(Bytes(4096));
    config
}

#[test]
fn those_who_wait_for_a_map_page_go_on_in_order() {
    let mut ssd = ready(&with_one_map_page(), 1);
    // All on one chip, where they are served one after another.
    let reads: Vec<_> = (0..12).map(|id| (id * 100, Operation::Read, (id * 5 % 12) * 8, 1)).collect();
    let served = timed(&mut ssd, &reads);
    assert!(served.iter().all(|completion| completion.ledger.ns(Cause::MapLoad) > 0));
    assert!(served.is_sorted_by_key(|completion| completion.time), "{served:?}");
    assert_eq!(ssd.report().counters.map_misses, 12);
}

/// A look-up is a hit or a miss, and no hit once what it has missed has come.
#[test]
fn a_look_up_is_counted_once() {
    let mut ssd = ready(&with_one_map_page(), 1);
    let read = |id: u64, map_page| (id * 1_000_000, Operation::Read, map_page * PER_MAP_PAGE, 1);
    // One after the other: a map page is loaded, and found the next time.
    let reads = [read(0, 0), read(1, 0), read(2, 1), read(3, 1), read(4, 2), read(5, 2), read(6, 0)];
    timed(&mut ssd, &reads);
    let counters = ssd.report().counters;
    assert_eq!((counters.map_hits, counters.map_misses), (3, 4));
}

/// Whatever a request does with them, and however they lie in flash.
#[test]
fn each_page_of_a_request_is_one_look_up() {
    let counted = |operation, page| {
        let mut ssd = ready(&with_one_map_page(), 1);
        ssd.reset_counters();
        timed(&mut ssd, &[(0, operation, page, 4)]);
        let counters = ssd.report().counters;
        (counters.map_hits, counters.map_misses)
    };
    for operation in [Operation::Read, Operation::Write, Operation::Trim] {
        assert_eq!(counted(operation, 0), (3, 1), "{operation:?}");
        assert_eq!(counted(operation, PER_MAP_PAGE - 2), (2, 2), "{operation:?}");
    }
}

/// Reads that wait for a flush go on at the same instant, each with another map page.
/// As these were never programmed they are made in memory, at once: each would drive
/// out the others' before they have their turn.
#[test]
fn reads_of_map_pages_never_programmed_do_not_chase_each_other() {
    let mut config = with_one_map_page();
    config.precondition.pattern = FillPattern::None;
    config.buffer.flush = vec![Trigger::Full, Trigger::Read];
    let mut ssd = ready(&config, 1);
    let read = |map_page| (10_000, Operation::Read, map_page * PER_MAP_PAGE, 1);
    timed(&mut ssd, &[(0, Operation::Write, 0, 1), read(1), read(2), read(3), read(1)]);
    assert_eq!(ssd.report().counters.unmapped_pages_read, 4);
}

/// Once what a read's next operation takes to generate was charged to the load before it.
#[test]
fn a_load_is_charged_until_it_is_over_and_no_longer() {
    let mut ssd = ready(&with_one_map_page(), 1);
    // Two pages before the end of a map page and two behind: an operation each.
    let done = timed(&mut ssd, &[(0, Operation::Read, PER_MAP_PAGE - 2, 4)]);
    assert_eq!(ssd.report().counters.map_misses, 2);
    assert_eq!(done[0].ledger.ns(Cause::Controller), LOOKUP + 2 * GENERATION);
}
