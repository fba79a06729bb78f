//! Logical stripes: parity updates, and reads rebuilt from them.

mod support;

use flashkeel_device::{Activity, DeviceConfig, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Cause, Leaf, Operation, Request, Stream, Time};
use serde_json::json;
use support::*;

/// Eight channels of one chip, 4 KiB flash pages, stripes over all channels.
fn striped(redundancy: serde_json::Value) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.channels = 8;
    config.geometry.chips_per_channel = 1;
    config.geometry.page_size = Bytes(4096);
    config.geometry.blocks_per_plane = 96;
    config.logical_capacity = Bytes(2688 * 4096);
    config.allocation = policy("striped");
    config.redundancy = policy(redundancy);
    config.buffer.kind = policy("back");
    config.buffer.rewrite = policy("coalesce");
    config.buffer.flush = vec![policy("watermark")];
    config.gc.start_below = 64;
    config.gc.stop_above = 96;
    config.scheduler = policy("fifo");
    config.precondition.pattern = FillPattern::Sequential;
    config
}

fn logical() -> serde_json::Value {
    json!({ "policy": "logical" })
}

/// Flash operations of each purpose that writing `pages` of the first stripe
/// and flushing them takes: data, parity, and reads for it.
fn cost_of(pages: &[u64]) -> (u64, u64, u64) {
    let mut ssd = ready(&striped(logical()), 1);
    let mut requests: Vec<_> = pages.iter().map(|&page| (0, Operation::Write, page, 1)).collect();
    requests.push((10_000, Operation::Flush, 0, 0));
    timed(&mut ssd, &requests);
    ssd.check();
    let of = |purpose| ssd.counters().operations(purpose);
    (of(Activity::Host.program()), of(Activity::Parity.program()), of(Activity::Parity.read()))
}

#[test]
fn parity_is_computed_by_the_fewest_reads() {
    // A whole stripe: nothing to read. One page: the old one and the parity.
    assert_eq!(cost_of(&[0, 1, 2, 3, 4, 5, 6]), (7, 1, 0));
    assert_eq!(cost_of(&[3]), (1, 1, 2));
    assert_eq!(cost_of(&[0, 3]), (2, 1, 3));
    // From four pages on the rest of the stripe takes fewer.
    assert_eq!(cost_of(&[0, 1, 2, 3]), (4, 1, 3));
    assert_eq!(cost_of(&[1, 2, 3, 4, 5, 6]), (6, 1, 1));
    // Two stripes.
    assert_eq!(cost_of(&[6, 7]), (2, 2, 4));
}

#[test]
fn a_fresh_stripe_takes_no_reads() {
    let mut config = striped(logical());
    config.precondition.pattern = FillPattern::None;
    let mut ssd = ready(&config, 1);
    timed(&mut ssd, &[(0, Operation::Write, 3, 1), (10_000, Operation::Flush, 0, 0)]);
    assert_eq!(ssd.counters().operations(Activity::Parity.read()), 0);
    assert_eq!(ssd.counters().operations(Activity::Parity.program()), 1);
}

#[test]
fn a_group_is_no_larger_than_its_stripe() {
    let mut config = striped(json!({ "policy": "logical", "pages": 4 }));
    config.buffer.kind = policy(json!({ "policy": "stripe", "pages": 7 }));
    config.buffer.flush = vec![policy("page")];
    let mut ssd = ready(&config, 1);
    for page in 0..3 {
        timed(&mut ssd, &[(page * 1_000_000, Operation::Write, page, 1)]);
        // Three pages and their parity.
        let programs = ssd.counters().operations(Activity::Host.program());
        assert_eq!(programs > 0, page == 2, "{programs} programs after page {page}");
    }
}

#[test]
fn a_page_written_again_during_its_flush_is_flushed_again() {
    let mut ssd = ready(&striped(logical()), 1);
    let requests = [
        (0, Operation::Write, 3, 1),
        (1_000, Operation::Flush, 0, 0),
        (200_000, Operation::Write, 3, 1),
        (210_000, Operation::Write, 4, 1),
        (220_000, Operation::Flush, 0, 0),
    ];
    let done = timed(&mut ssd, &requests);
    ssd.check();
    assert!(done[4].time > done[1].time, "the second flush covers what was written later");
    assert_eq!(ssd.counters().operations(Activity::Host.program()), 3);
    assert_eq!(ssd.counters().operations(Activity::Parity.program()), 2);
}

fn mixed(config: &DeviceConfig, pages: u32) -> (Ssd, Vec<flashkeel_engine::Completion>) {
    let mut ssd = ready(config, 1);
    let mut random = Stream::new(1, "mixed");
    let requests: Vec<Request> = (0..20_000)
        .map(|id| {
            let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
            request(id, operation, random.below(2_600 / 7) * 7, pages)
        })
        .collect();
    let mut done = closed_loop(&mut ssd, 2, requests);
    ssd.check();
    done.retain(|completion| completion.id.0 % 2 == 0);
    (ssd, done)
}

#[test]
fn reads_blocked_by_collection_are_rebuilt_where_that_is_faster() {
    for pages in [1, 3, 7] {
        let (_, plain) = mixed(&striped(logical()), pages);
        let mut config = striped(logical());
        config.read_path = policy("gc-tolerant");
        let (ssd, tolerant) = mixed(&config, pages);
        let rebuilds = ssd.counters().operations(Activity::Rebuild.read());
        assert!(rebuilds > 100, "{pages} pages: {rebuilds}");
        let worst = |done: &[flashkeel_engine::Completion]| {
            done.iter().map(|read| read.ledger.ns(Cause::BehindErase)).max().expect("reads")
        };
        assert!(worst(&tolerant) < worst(&plain), "{pages} pages");
    }
}

#[test]
fn a_whole_stripe_is_rebuilt_with_one_read_more() {
    let mut config = striped(logical());
    config.read_path = policy("gc-tolerant");
    let (ssd, _) = mixed(&config, 7);
    let counters = ssd.counters();
    // Seven flash reads of a whole stripe, whether one of them is replaced or not.
    let flash = counters.operations(Activity::Host.read()) + counters.operations(Activity::Rebuild.read());
    let pages = counters.host_pages_read - counters.buffered_pages_read;
    assert!(flash.abs_diff(pages) < pages / 20, "{flash} flash reads for {pages} pages");
}

#[test]
fn impossible_stripes_are_refused() {
    let refused = |config: DeviceConfig| config.validate().expect_err("refused");
    let pages = |pages: u32| striped(json!({ "policy": "logical", "pages": pages }));
    assert!(refused(pages(16)).contains("8"), "wider than the channels: {}", refused(pages(16)));
    for wrong in [0, 1, 3, 5] {
        assert!(refused(pages(wrong)).contains("redundancy.pages"), "{}", refused(pages(wrong)));
    }
    let mut config = striped(logical());
    config.allocation = policy("dynamic");
    assert!(refused(config).contains("allocation"));
    let mut config = striped(logical());
    config.buffer.rewrite = policy("append");
    assert!(refused(config).contains("buffer.rewrite"));
    let mut config = striped(logical());
    config.logical_capacity = Bytes(6_000 * 4096);
    assert!(refused(config).contains("over-provisioning"));
    let mut config = striped(logical());
    config.geometry.channels = 1;
    config.geometry.chips_per_channel = 8;
    assert!(refused(config).contains("redundancy.pages"));
}

#[test]
fn parity_takes_its_share_of_the_capacity() {
    // What fits without parity no longer fits with it.
    let mut config = striped(logical());
    let largest = |config: &mut DeviceConfig| {
        let fits = |pages: &u64| {
            config.logical_capacity = Bytes(pages * 4096);
            config.validate().is_ok()
        };
        (1..6144).rev().step_by(7).find(fits).expect("some capacity fits")
    };
    let with = largest(&mut config);
    config.redundancy = policy("none");
    let without = largest(&mut config);
    assert!(with.abs_diff(without * 7 / 8) < 30, "{with} pages with parity, {without} without");
}

#[test]
fn trimmed_pages_read_as_unmapped_and_come_back_when_written() {
    let mut ssd = ready(&striped(logical()), 1);
    let requests = [
        (0, Operation::Trim, 3, 1),
        (100_000, Operation::Read, 3, 1),
        (200_000, Operation::Write, 3, 1),
        (300_000, Operation::Read, 3, 1),
    ];
    timed(&mut ssd, &requests);
    assert_eq!(ssd.counters().unmapped_pages_read, 1);
    assert_eq!(ssd.counters().buffered_pages_read, 1);
    let mut none = Vec::new();
    ssd.advance(Time(1_000_000), &mut Arena::new(), &mut none);
    ssd.check();
}
