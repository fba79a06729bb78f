//! Latencies of an idle device, bandwidth limits and waiting times against
//! closed forms.

mod support;

use flashkeel_device::{DeviceConfig, FillPattern, MapCacheSize};
use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{Arena, Leaf, Operation, Span, Stream, Submit, Time};
use support::*;

/// Latency in nanoseconds of one request to an idle device.
fn latency(config: &DeviceConfig, operation: Operation, page: u64, pages: u32) -> u64 {
    let mut ssd = ready(config, 1);
    timed(&mut ssd, &[(0, operation, page, pages)])[0].time.0
}

#[test]
fn a_read_within_a_flash_page_costs_one_array_read_and_its_transfer() {
    for pages in 1..=4 {
        let expected = LOOKUP + GENERATION + READ + u64::from(pages) * UNIT;
        assert_eq!(latency(&exact(), Operation::Read, 0, pages), expected);
    }
    // Two units at the end of one flash page and two of the next, on another channel.
    let expected = LOOKUP + 2 * GENERATION + READ + 2 * UNIT;
    assert_eq!(latency(&exact(), Operation::Read, 2, 4), expected);
}

#[test]
fn a_read_over_four_chips_shares_two_channels() {
    // Generated one after another; the second channel's two transfers end last.
    let expected = LOOKUP + 2 * GENERATION + READ + 2 * 4 * UNIT;
    assert_eq!(latency(&exact(), Operation::Read, 0, 16), expected);
}

#[test]
fn a_read_of_two_flash_pages_on_one_chip_costs_both() {
    let expected = LOOKUP + GENERATION + 2 * (READ + 4 * UNIT);
    assert_eq!(latency(&exact_chip(80), Operation::Read, 0, 8), expected);
}

#[test]
fn page_types_have_their_own_times() {
    let mut config = exact_chip(80);
    config.timing.read = vec![Span(30_000), Span(60_000)];
    assert_eq!(latency(&config, Operation::Read, 0, 1), LOOKUP + GENERATION + 30_000 + UNIT);
    assert_eq!(latency(&config, Operation::Read, 4, 1), LOOKUP + GENERATION + 60_000 + UNIT);
}

#[test]
fn a_buffered_write_costs_the_lookup() {
    for pages in [1, 4, 7, 32] {
        assert_eq!(latency(&exact(), Operation::Write, 0, pages), LOOKUP);
    }
}

#[test]
fn a_write_through_write_costs_its_program() {
    let mut config = exact();
    config.buffer.kind = policy("none");
    config.buffer.timeout = Some(Span(70_000));
    let program = GENERATION + 4 * UNIT + PROGRAM;
    assert_eq!(latency(&config, Operation::Write, 0, 4), LOOKUP + program);
    // A page filled in part waits for the timeout and is programmed whole.
    assert_eq!(latency(&config, Operation::Write, 0, 1), LOOKUP + 70_000 + program);
    // Two flash pages go side by side to two channels.
    assert_eq!(latency(&config, Operation::Write, 0, 8), LOOKUP + program);
    // Without one given the wait is short beside a program.
    config.buffer.timeout = None;
    assert_eq!(latency(&config, Operation::Write, 0, 1), LOOKUP + 100_000 + program);
}

#[test]
fn the_host_link_adds_its_transfer() {
    let mut config = exact();
    config.host_link = Some(Rate(1_000_000_000));
    let link = |pages: u64| pages * 4096;
    let read = LOOKUP + GENERATION + READ + 3 * UNIT;
    assert_eq!(latency(&config, Operation::Read, 0, 3), read + link(3));
    assert_eq!(latency(&config, Operation::Write, 0, 3), link(3) + LOOKUP);
    assert_eq!(latency(&config, Operation::Trim, 0, 3), LOOKUP);
}

#[test]
fn planes_together_form_a_larger_page() {
    let mut config = exact();
    config.geometry.planes_per_chip = 2;
    config.geometry.blocks_per_plane = 48;
    config.geometry.multi_plane = true;
    config.logical_capacity = Bytes(16 << 20);
    for pages in 1..=8 {
        let expected = LOOKUP + GENERATION + READ + u64::from(pages) * UNIT;
        assert_eq!(latency(&config, Operation::Read, 8, pages), expected);
    }
    config.buffer.kind = policy("none");
    assert_eq!(latency(&config, Operation::Write, 0, 8), LOOKUP + GENERATION + 8 * UNIT + PROGRAM);
}

#[test]
fn a_trim_and_an_empty_flush_cost_the_lookup() {
    assert_eq!(latency(&exact(), Operation::Trim, 5, 100), LOOKUP);
    assert_eq!(latency(&exact(), Operation::Flush, 0, 0), LOOKUP);
}

#[test]
fn a_flush_ends_when_the_buffer_is_in_flash() {
    let mut ssd = ready(&exact(), 1);
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 1), (1_000, Operation::Flush, 0, 0)]);
    assert_eq!(done[1].time.0, 1_000 + LOOKUP + GENERATION + 4 * UNIT + PROGRAM);
}

/// A device with room to write without collecting garbage, four chips on each
/// of two channels.
fn wide(channel_rate: u64) -> DeviceConfig {
    let mut config = exact();
    config.geometry.chips_per_channel = 4;
    config.geometry.blocks_per_plane = 64;
    config.geometry.pages_per_block = 64;
    config.logical_capacity = Bytes(64 << 20);
    config.timing.channel_rate = Rate(channel_rate);
    config.buffer.size = Bytes(2 << 20);
    config
}

/// Bytes per second of `operation` with `pages` pages a request and a deep
/// queue, over the second half of the run.
fn bandwidth(config: &DeviceConfig, operation: Operation, pages: u32, random: bool) -> f64 {
    let mut config = config.clone();
    if operation == Operation::Write {
        config.precondition.pattern = FillPattern::None;
    }
    let mut ssd = ready(&config, 1);
    let places = config.logical_capacity.0 / 4096 / u64::from(pages);
    let mut stream = Stream::new(3, "test workload");
    let count = 96_000 / u64::from(pages);
    let requests = (0..count).map(|id| {
        let place = if random { stream.below(places) } else { id % places };
        request(id, operation, place * u64::from(pages), pages)
    });
    let done = closed_loop(&mut ssd, 512, requests);
    assert_eq!(ssd.report().erases, 0, "garbage collection would disturb the measurement");
    let (first, last) = (done.len() / 4, done.len() * 3 / 4);
    let bytes = (last - first) as f64 * f64::from(pages) * 4096.0;
    bytes / (done[last].time.0 - done[first].time.0) as f64 * 1e9
}

/// One operation per chip at a time, no cache register: a channel moves a
/// flash page every `transfer`, its chips each one every `cell + transfer`.
fn limit(chips_per_channel: f64, cell: f64, transfer: f64, bytes: f64) -> f64 {
    2.0 * bytes * (1e9 / transfer).min(chips_per_channel * 1e9 / (cell + transfer))
}

fn close(measured: f64, expected: f64, within: f64, what: &str) {
    let error = measured / expected - 1.0;
    assert!(error.abs() < within, "{what}: {measured:.6e} instead of {expected:.6e} ({error:+.4})");
}

#[test]
fn read_bandwidth_is_that_of_the_channels_or_of_the_chips() {
    // The knee is where three transfers take as long as the array read.
    for rate in [200e6, 400e6, 983.04e6, 1600e6] {
        let transfer = 16384e9 / rate;
        let expected = limit(4.0, READ as f64, transfer, 16384.0);
        let config = wide(rate as u64);
        for (pages, random) in [(32, false), (4, true), (4, false)] {
            let measured = bandwidth(&config, Operation::Read, pages, random);
            close(measured, expected, 0.01, &format!("{pages} pages at {rate}, random: {random}"));
        }
    }
}

#[test]
fn write_bandwidth_is_that_of_the_channels_or_of_the_chips() {
    for rate in [50e6, 100e6, 400e6] {
        let transfer = 16384e9 / rate;
        let expected = limit(4.0, PROGRAM as f64, transfer, 16384.0);
        for (pages, random) in [(32, false), (1, true)] {
            let measured = bandwidth(&wide(rate as u64), Operation::Write, pages, random);
            close(measured, expected, 0.01, &format!("{pages} pages at {rate}, random: {random}"));
        }
    }
}

#[test]
fn a_slow_host_link_limits_bandwidth() {
    let mut config = wide(400_000_000);
    config.host_link = Some(Rate(50_000_000));
    for operation in [Operation::Read, Operation::Write] {
        close(bandwidth(&config, operation, 4, true), 50e6, 0.001, &format!("{operation:?}"));
    }
}

#[test]
fn reads_of_a_chip_wait_as_in_an_m_d_1_queue() {
    let mut config = exact_chip(80);
    config.map_cache = MapCacheSize::All;
    let service = READ + UNIT;
    let delays = LOOKUP + GENERATION;
    for (load, count) in [(0.3, 400_000), (0.6, 800_000), (0.8, 2_500_000)] {
        let mut ssd = ready(&config, 1);
        let mut stream = Stream::new(11, "arrivals");
        let mean = service as f64 / load;
        let (mut exact_time, mut free_at) = (0.0, 0u64);
        let mut expected = std::collections::VecDeque::new();
        let (mut done, mut waits) = (Vec::new(), 0u64);
        let mut check = |done: &mut Vec<flashkeel_engine::Completion>,
                         expected: &mut std::collections::VecDeque<(u64, u64)>| {
            for completion in done.drain(..) {
                let (arrival, end) = expected.pop_front().expect("a request in flight");
                assert_eq!(completion.time.0, end, "Lindley's recursion");
                waits += end - arrival - delays - service;
            }
        };
        for id in 0..count {
            exact_time += stream.exponential(mean);
            let arrival = exact_time as u64;
            ssd.advance(Time(arrival), &mut Arena::new(), &mut done);
            check(&mut done, &mut expected);
            let page = stream.below(1024);
            assert_eq!(
                ssd.submit(Time(arrival), &request(id, Operation::Read, page, 1), &mut Arena::new()),
                Submit::Accepted
            );
            free_at = free_at.max(arrival + delays) + service;
            expected.push_back((arrival, free_at));
        }
        settle(&mut ssd, &mut done);
        check(&mut done, &mut expected);
        assert!(expected.is_empty());
        let law = load / (2.0 * (1.0 - load)) * service as f64;
        close(waits as f64 / count as f64, law, 0.01, &format!("mean wait at load {load}"));
    }
}
