//! Flush commands and writes that force unit access, in front of a volatile buffer: what
//! they flush, and how much of it may be on its way to flash.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Command, Leaf, Operation, Request, Stream, Submit, Time, Window};
use serde_json::json;
use support::{
    GENERATION, LOOKUP, PROGRAM, UNIT, closed_loop_with, exact, policy, ready, request, settle, state, tell,
    timed,
};

const PAGE: u64 = 4096;

fn volatile() -> DeviceConfig {
    let mut config = exact();
    config.buffer.volatile = true;
    config
}

fn fua(id: u64, page: u64, pages: u32) -> Request {
    Request { fua: true, ..request(id, Operation::Write, page, pages) }
}

/// Pages of a device that are in its buffers.
fn buffered(ssd: &Ssd) -> u64 {
    let mut gauges = Vec::new();
    ssd.gauges(&mut gauges);
    gauges[Ssd::gauge_names().iter().position(|name| name == "buffered_pages").expect("a gauge")]
}

/// Serves a write that forces unit access in one of two sets whose buffers hold pages;
/// how long it took, and how many programs there were.
fn forced_beside(ssd: &mut Ssd, now: Time) -> (u64, u64) {
    let mut done = Vec::new();
    // A window that has begun is no end of the write.
    while ssd.notice().is_some() {}
    assert_eq!(ssd.submit(now, &fua(100, 0, 1), &mut Arena::new()), Submit::Accepted);
    let end = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done).expect("it ends");
    assert_eq!(done.len(), 1);
    (end.since(now).0, ssd.counters().operations(Activity::Host.program()))
}

/// Once every set was flushed, and the write waited for them all.
#[test]
fn a_write_that_forces_unit_access_flushes_the_sets_that_it_has_written_to() {
    let mut config = volatile();
    config.sets = 2;
    config.buffer.flush = vec![policy("page")];
    config.window = policy("commanded");
    config.geometry.blocks_per_plane = 40;
    let alone = LOOKUP + GENERATION + 4 * UNIT + PROGRAM;
    for in_window in [false, true] {
        let mut ssd = ready(&config, 1);
        let half = ssd.sectors() / 2 / 8;
        let now = Time(1_000_000);
        if in_window {
            tell(&mut ssd, Time::ZERO, Command::Window(1, Window::Deterministic)).expect("it obeys");
        }
        let three = request(0, Operation::Write, half, 3);
        assert_eq!(ssd.submit(Time(1_000), &three, &mut Arena::new()), Submit::Accepted);
        ssd.advance(now, &mut Arena::new(), &mut Vec::new());
        assert_eq!(forced_beside(&mut ssd, now), (alone, 1));
        assert_eq!(buffered(&ssd), 3);
        assert_eq!(state(&mut ssd, now, "set1_status"), if in_window { 1 } else { 2 });

        // One for both sets flushes both, and so does a flush command.
        let later = Time(10_000_000);
        let both = fua(101, half - 1, 2);
        assert_eq!(ssd.submit(later, &both, &mut Arena::new()), Submit::Accepted);
        ssd.advance(Time(50_000_000), &mut Arena::new(), &mut Vec::new());
        assert_eq!(buffered(&ssd), 0);
        assert_eq!(ssd.counters().operations(Activity::Host.program()), 3);
        let now = 60_000_000;
        let sent = [
            (now, Operation::Write, 0, 1),
            (now, Operation::Write, half, 1),
            (now + 100_000, Operation::Flush, 0, 0),
        ];
        let done = timed(&mut ssd, &sent);
        assert_eq!(buffered(&ssd), 0);
        assert_eq!(done[2].time.0, now + 100_000 + alone);
    }
}

/// Buffers of each kind, by name, with the size of one in 4 KiB pages.
fn buffers() -> Vec<(&'static str, DeviceConfig, u64)> {
    let with = |name: &'static str, pages: u64, change: &dyn Fn(&mut DeviceConfig)| {
        let mut config = volatile();
        config.buffer.size = Bytes(pages * PAGE);
        change(&mut config);
        (name, config, pages)
    };
    vec![
        with("back", 4, &|_| {}),
        with("lanes", 8, &|config| config.allocation = policy("striped")),
        with("watermark", 12, &|config| config.buffer.flush = vec![policy("watermark")]),
        with("fore", 8, &|config| {
            config.buffer.kind = policy("fore");
            config.buffer.flush = vec![policy("full"), policy("watermark")];
        }),
        with("groups", 16, &|config| config.buffer.kind = policy(json!({ "policy": "stripe", "pages": 2 }))),
        with("in flash", 8, &|config| config.buffer.kind = policy("none")),
        with("logical stripes", 12, &|config| {
            // Flush commands find it as they do others; only it may not be volatile.
            config.buffer.volatile = false;
            config.geometry.blocks_per_plane = 40;
            config.geometry.channels = 4;
            config.allocation = policy("striped");
            config.redundancy = policy("logical");
            config.buffer.rewrite = policy("coalesce");
        }),
    ]
}

/// Once a flush command programmed all that was pending, whatever was on its way.
#[test]
fn no_more_is_in_flight_than_the_buffer_holds() {
    for (name, config, pages) in buffers() {
        let mut ssd = ready(&config, 1);
        let mut random = Stream::new(1, name);
        let span = ssd.sectors() / 8 - 6;
        let requests: Vec<_> = (0..3_000)
            .map(|id| match random.below(16) {
                0 => request(id, Operation::Flush, 0, 0),
                1..4 => request(id, Operation::Write, random.below(span), random.between(1, 6) as u32),
                _ => fua(id, random.below(span), random.between(1, 6) as u32),
            })
            .collect();
        let mut most = 0;
        closed_loop_with(&mut ssd, 64, requests, |ssd, _| most = most.max(buffered(ssd)));
        // `fore` takes nothing while it is flushed.
        assert!(most > pages || name == "fore", "{name}: {most} pages in a buffer of {pages}");
        assert!(most <= 2 * pages, "{name}: {most} pages in a buffer of {pages}");
        ssd.check();
    }
}

/// As no more is in flight, those that wait share flash pages.
#[test]
fn writes_that_force_unit_access_share_flash_pages_where_they_wait() {
    let mut config = volatile();
    config.buffer.size = Bytes(4 * PAGE);
    let mut ssd = ready(&config, 1);
    closed_loop_with(&mut ssd, 64, (0..1_000).map(|id| fua(id, id * 379 % 1_024, 1)), |_, _| {});
    let programs = ssd.counters().operations(Activity::Host.program());
    assert!(programs < 300, "{programs} programs of four pages each for a thousand pages");
}

/// Once all that was pending was flushed then, however much was on its way.
#[test]
fn a_window_that_is_prepared_or_left_keeps_no_more_than_twice_the_size_of_the_buffer() {
    let mut config = exact();
    config.window = policy("commanded");
    config.geometry.blocks_per_plane = 40;
    let mut striped = config.clone();
    striped.redundancy = policy("logical");
    striped.allocation = policy("striped");
    striped.buffer.rewrite = policy("coalesce");
    for config in [config, striped] {
        let mut ssd = ready(&config, 1);
        let size = config.buffer.size.0 / PAGE;
        let mut most = 0;
        for step in 0..400 {
            let now = Time(step * 1_000);
            ssd.advance(now, &mut Arena::new(), &mut Vec::new());
            let write = request(step, Operation::Write, step * 4 % 1_024, 4);
            assert_eq!(ssd.submit(now, &write, &mut Arena::new()), Submit::Accepted);
            // From when the flash is at work on: no window begins before it is left.
            if step >= 20 {
                let window = if step % 2 == 0 { Window::Deterministic } else { Window::NonDeterministic };
                tell(&mut ssd, now, Command::Window(0, window)).expect("none has begun");
            }
            most = most.max(buffered(&ssd));
        }
        assert!(most > size && most <= 2 * size, "{most} pages in a buffer of {size}");
        settle(&mut ssd, &mut Vec::new());
        assert_eq!(buffered(&ssd), 0);
        ssd.check();
    }
}
