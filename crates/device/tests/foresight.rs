//! Shares that go by the host's pauses, in a whole device.

mod support;

use flashkeel_device::{DeviceConfig, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Stream};
use serde_json::json;
use support::*;

/// Two channels of two chips in their steady state, whose collection has one slot at least.
fn device(control: &str) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.blocks_per_plane = 64;
    config.geometry.pages_per_block = 16;
    config.logical_capacity = Bytes(40 << 20);
    config.gc.start_below = 48;
    config.gc.stop_above = 56;
    config.precondition.pattern = FillPattern::Random;
    config.scheduler = policy(json!({ "policy": "debit", "gc_min": 0.1, "control": control }));
    config
}

/// Bursts of requests, half of them writes, with a pause after each; how long all of its reads
/// took, and what `look` sees in the midst of the pauses.
fn bursts(control: &str, look: impl Fn(&Ssd) -> u64) -> (u64, Vec<u64>) {
    let mut ssd = ready(&device(control), 1);
    let mut random = Stream::new(1, "bursts");
    let (mut seen, mut took) = (Vec::new(), 0);
    let mut start = flashkeel_engine::Time::ZERO;
    for _ in 0..30 {
        let requests: Vec<_> = (0..200_u64)
            .map(|id| {
                let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
                (start.0 + id * 100_000, operation, random.below(10_000), 1)
            })
            .collect();
        let done = burst(&mut ssd, &requests);
        took += done.iter().filter(|c| c.id.0 % 2 == 0).map(|c| c.ledger.total().0).sum::<u64>();
        advance(&mut ssd, start.0 + 60_000_000);
        seen.push(look(&ssd));
        start = flashkeel_engine::Time(start.0 + 120_000_000);
        advance(&mut ssd, start.0);
    }
    ssd.check();
    (took, seen)
}

/// Submits each request at its time, and returns the completions of all once they are there.
fn burst(ssd: &mut Ssd, requests: &[(u64, Operation, u64, u32)]) -> Vec<flashkeel_engine::Completion> {
    use flashkeel_engine::{Arena, Leaf, Submit, Time};
    let mut done = Vec::new();
    for (id, &(at, operation, page, pages)) in requests.iter().enumerate() {
        ssd.advance(Time(at), &mut Arena::new(), &mut done);
        let request = request(id as u64, operation, page, pages);
        assert_eq!(ssd.submit(Time(at), &request, &mut Arena::new()), Submit::Accepted);
    }
    while done.len() < requests.len() {
        let next = ssd.next_event().time().expect("requests are under way");
        ssd.advance(next, &mut Arena::new(), &mut done);
    }
    done
}

/// Lets the device work until then.
fn advance(ssd: &mut Ssd, until_ns: u64) {
    use flashkeel_engine::{Arena, Leaf};
    let mut done = Vec::new();
    while let Some(next) = ssd.next_event().time().filter(|next| next.0 <= until_ns) {
        ssd.advance(next, &mut Arena::new(), &mut done);
    }
    assert!(done.is_empty());
}

/// The share of collection.
fn share(ssd: &Ssd) -> u64 {
    let at = Ssd::gauge_names().iter().position(|name| name == "share_gc_ppm").expect("a gauge");
    let mut values = Vec::new();
    ssd.gauges(&mut values);
    values[at]
}

#[test]
fn collection_has_its_largest_share_in_pauses_and_spares_the_bursts() {
    let (feedback, shares) = bursts("feedback", share);
    assert!(shares.iter().all(|&ppm| ppm < 800_000), "{shares:?}");
    let (foresight, shares) = bursts("foresight", share);
    // It is at its largest, or has nothing to do any more.
    let known = &shares[5..];
    assert!(known.iter().all(|&ppm| ppm == 800_000 || ppm == 0), "{shares:?}");
    assert!(known.contains(&0) || known.contains(&800_000));
    assert!(foresight < feedback, "{foresight} against {feedback} ns");
}
