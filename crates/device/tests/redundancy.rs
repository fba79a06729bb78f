//! Physical stripes and reads rebuilt from them.

mod support;

use flashkeel_device::{Activity, DeviceConfig};
use flashkeel_engine::{Cause, Completion, Operation, Request, Stream};
use support::{closed_loop, random_pages, ready, request, tiny};

/// A device with the given redundancy and read path, more room for parity,
/// and the host first.
fn rain(redundancy: serde_json::Value, read_path: &str) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.blocks_per_plane = 48;
    let mut value = serde_json::to_value(&config).expect("plain data");
    value["redundancy"] = redundancy;
    value["read_path"] = read_path.into();
    value["scheduler"] = "priority".into();
    serde_json::from_value(value).expect("a device")
}

fn stripes_of(pages: u32) -> serde_json::Value {
    serde_json::json!({ "policy": "physical", "pages": pages })
}

#[test]
fn every_stripe_gets_its_parity() {
    for width in [2, 4] {
        let mut ssd = ready(&rain(stripes_of(width), "plain"), 1);
        ssd.check();
        closed_loop(&mut ssd, 16, random_pages(Operation::Write, 1_024, 20_000, 1));
        ssd.check();
        let counters = ssd.counters();
        let data =
            counters.operations(Activity::Host.program()) + counters.operations(Activity::Gc.program());
        let parity = counters.operations(Activity::Parity.program());
        // Each writer may have a stripe begun on each group, before and after.
        let expected = data / (u64::from(width) - 1);
        assert!(parity.abs_diff(expected) <= 8, "width {width}: {parity} parity pages for {data} of data");
        assert!(counters.operations(Activity::Gc.erase()) > 100);
        let waf = (data + parity) as f64 * 4.0 / 20_000.0;
        assert_eq!(ssd.report().waf, Some(waf), "parity counts in the write amplification");
    }
}

#[test]
fn all_chips_form_a_stripe_unless_told_otherwise() {
    let mut ssd = ready(&rain("physical".into(), "plain"), 1);
    closed_loop(&mut ssd, 16, random_pages(Operation::Write, 1_024, 5_000, 1));
    let counters = ssd.counters();
    let data = counters.operations(Activity::Host.program()) + counters.operations(Activity::Gc.program());
    assert!(counters.operations(Activity::Parity.program()).abs_diff(data / 3) <= 4);
}

/// Reads and writes in turn at random; the reads' completions.
fn mixed(config: &DeviceConfig) -> (Vec<Completion>, u64) {
    let mut ssd = ready(config, 1);
    let mut random = Stream::new(1, "mixed");
    let requests: Vec<Request> = (0..20_000)
        .map(|id| {
            let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
            request(id, operation, random.below(1_024), 1)
        })
        .collect();
    let completions = closed_loop(&mut ssd, 4, requests);
    ssd.check();
    (
        completions.into_iter().filter(|c| c.id.0 % 2 == 0).collect(),
        ssd.counters().operations(Activity::Rebuild.read()),
    )
}

fn mean_ns(completions: &[Completion], cause: Cause) -> u64 {
    completions.iter().map(|completion| completion.ledger.ns(cause)).sum::<u64>() / completions.len() as u64
}

#[test]
fn reads_blocked_by_an_erase_are_rebuilt_instead() {
    let (plain, none) = mixed(&rain(stripes_of(4), "plain"));
    let (rebuilt, reads) = mixed(&rain(stripes_of(4), "reconstruct"));
    assert_eq!(none, 0);
    assert!(reads > 300 && reads % 3 == 0, "a stripe of four takes three reads: {reads}");
    assert_eq!(mean_ns(&plain, Cause::Reconstruction), 0);
    assert!(mean_ns(&rebuilt, Cause::Reconstruction) > 0);
    let (before, after) = (mean_ns(&plain, Cause::BehindErase), mean_ns(&rebuilt, Cause::BehindErase));
    assert!(after < before, "waiting for erases: {before} ns, with rebuilding {after} ns");
}

#[test]
fn impossible_stripes_are_refused() {
    for pages in [0, 1, 3, 8] {
        let error = rain(stripes_of(pages), "plain").validate().expect_err("not a stripe of four chips");
        assert!(error.contains("redundancy.pages"), "{error}");
    }
    let error = rain("none".into(), "reconstruct").validate().expect_err("nothing to rebuild from");
    assert!(error.contains("read_path") && error.contains("redundancy"), "{error}");
}

#[test]
fn reads_blocked_by_scrubbing_are_rebuilt_too() {
    let rebuilt = |read_path: &str| {
        let mut config = rain(stripes_of(4), read_path);
        config.precondition.pattern = flashkeel_device::FillPattern::Sequential;
        config.precondition.read_counts_below = Some(0);
        (config.scrub.enabled, config.scrub.start_above, config.scrub.stop_below) = (true, 50, 1);
        let mut ssd = ready(&config, 1);
        let reads = closed_loop(&mut ssd, 2, random_pages(Operation::Read, 512, 20_000, 2));
        assert!(ssd.counters().operations(Activity::Scrub.erase()) > 0);
        (ssd.counters().operations(Activity::Rebuild.read()), mean_ns(&reads, Cause::BehindScrub))
    };
    let ((none, behind), (many, less_behind)) = (rebuilt("plain"), rebuilt("reconstruct"));
    assert!(none == 0 && many > 0, "{none} and {many} reads of other pages");
    assert!(less_behind < behind / 2, "{less_behind} ns behind scrubbing instead of {behind} ns");
}
