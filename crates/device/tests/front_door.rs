//! The front door's policies: throttles hold writes by the right time and no
//! longer, windows keep background work out and never stop the host for good.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Doing, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Cause, Leaf, Operation, Request, RequestId, Submit, Time};
use support::{closed_loop, random_pages, ready, request, tiny};

fn with(mut config: DeviceConfig, axis: &str, policy: serde_json::Value) -> DeviceConfig {
    let mut value = serde_json::to_value(&config).expect("plain data");
    value[axis] = policy;
    config = serde_json::from_value(value).expect("a policy");
    config
}

#[test]
fn a_static_cap_is_the_throughput_of_a_stream_of_writes() {
    let cap = serde_json::json!({ "policy": "static-cap", "rate": "4096KB/s", "period": "1ms" });
    let mut ssd = ready(&with(tiny(), "throttle", cap), 1);
    // One 4 KiB page per millisecond; the first uses up the first period.
    let writes = 1_000;
    let completions = closed_loop(&mut ssd, 8, random_pages(Operation::Write, 1_024, writes, 1));
    let last = completions.iter().map(|completion| completion.time.0).max().expect("completions");
    let expected = (writes - 1) * 1_000_000;
    assert!(last.abs_diff(expected) < 2_000_000, "{last} ns instead of {expected}");
    let held: u64 = completions.iter().map(|completion| completion.ledger.ns(Cause::Throttle)).sum();
    // Eight at a time share the rate, so each is held for eight turns.
    let per_write = held / writes;
    assert!((7_900_000..8_000_001).contains(&per_write), "{per_write} ns held per write");
}

#[test]
fn reads_are_never_throttled() {
    let cap = serde_json::json!({ "policy": "static-cap", "rate": "1KB/s" });
    let mut ssd = ready(&with(tiny(), "throttle", cap), 1);
    let completions = closed_loop(&mut ssd, 4, random_pages(Operation::Read, 1_024, 200, 1));
    assert!(completions.iter().all(|completion| completion.ledger.ns(Cause::Throttle) == 0));
}

/// Open-loop writes, one each 400 us, for `count` writes; after each, `see` is
/// told the time.
fn slow_writes(ssd: &mut Ssd, count: u64, mut see: impl FnMut(Time, &Ssd)) {
    let mut completions = Vec::new();
    for write in 0..count {
        let now = Time(write * 400_000);
        ssd.advance(now, &mut Arena::new(), &mut completions);
        see(now, ssd);
        assert_eq!(
            ssd.submit(now, &request(write, Operation::Write, write * 379 % 1_024, 1), &mut Arena::new()),
            Submit::Accepted
        );
    }
}

/// How many operations of the background begin in each ms of a period, of what chips do between
/// the first second and the seventh.
///
/// # Panics
/// If a window is said to be broken.
fn background_by_ms(config: &DeviceConfig, period_ms: u64) -> Vec<u32> {
    let mut ssd = ready(config, 1);
    ssd.watch(Time(1_000_000_000), Time(7_000_000_000));
    slow_writes(&mut ssd, 17_500, |_, _| {});
    let counters = ssd.counters();
    assert_eq!((counters.deterministic_windows, counters.broken_windows), (7_000 / period_ms, 0));
    let mut begun = vec![0; period_ms as usize];
    for interval in ssd.watched() {
        if let Doing::Work(purpose) = interval.doing
            && purpose.activity() != Activity::Host
            // What begins with the window itself may have come before it.
            && interval.start.0 % (period_ms * 1_000_000) != 0
        {
            begun[(interval.start.0 / 1_000_000 % period_ms) as usize] += 1;
        }
    }
    begun
}

#[test]
fn no_chip_begins_with_background_work_in_a_deterministic_window() {
    for scheduler in ["fifo", "priority", "fair", "debit", "reads-first"] {
        for suspends in [false, true] {
            let periods = serde_json::json!({
                "policy": "periodic", "deterministic": "40ms", "non_deterministic": "60ms"
            });
            let mut config = with(with(tiny(), "window", periods), "scheduler", scheduler.into());
            config.geometry.blocks_per_plane = 48;
            config.gc.start_below = 40;
            config.gc.stop_above = 60;
            config.suspension = suspends.then(Default::default);
            let begun = background_by_ms(&config, 100);
            let outside: u32 = begun[40..].iter().sum();
            assert_eq!(begun[..40], [0; 40], "{scheduler}, suspension {suspends}");
            assert!(outside > 200, "{scheduler}, suspension {suspends}: only {outside} in other windows");
        }
    }
}

#[test]
fn the_host_never_starves_behind_a_long_window() {
    let periods = serde_json::json!({
        "policy": "periodic", "deterministic": "1000h", "non_deterministic": "5ms"
    });
    let mut ssd = ready(&with(tiny(), "window", periods), 1);
    let completions = closed_loop(&mut ssd, 16, random_pages(Operation::Write, 1_024, 5_000, 1));
    assert_eq!(completions.len(), 5_000);
    for _ in 0..2 {
        // The window is on, and broken, though it is counted anew.
        assert_eq!((ssd.counters().deterministic_windows, ssd.counters().broken_windows), (1, 1));
        ssd.reset_counters();
    }
    ssd.check();
}

#[test]
fn a_write_over_two_partitions_waits_its_turn_in_each() {
    // Eight pages lie in partition 0, the next eight in partition 1; each buffer takes eight.
    let mut config = with(support::exact(), "partition_bits", serde_json::json!([6]));
    config.buffer.size = Bytes(64 << 10);
    config.buffer.flush = vec![support::policy("full")];
    let mut ssd = ready(&config, 1);
    let mut requests = vec![(0, Operation::Write, 8, 8); 10];
    requests.extend([(0, Operation::Write, 0, 8); 2]);
    requests.push((0, Operation::Write, 4, 8));
    let completions = support::timed(&mut ssd, &requests);
    let (over_both, others) = completions.split_last().expect("completions");
    let last = others.iter().map(|other| other.time).max().expect("completions");
    assert!(over_both.time >= last, "{:?}, before writes that came first, at {last:?}", over_both.time);
}

#[test]
fn a_fore_write_waits_for_every_flush_it_causes() {
    // Even pages lie in partition 0, odd ones in partition 1; each buffer takes 32.
    let mut config = with(support::exact(), "partition_bits", serde_json::json!([3]));
    config.buffer.kind = support::policy("fore");
    config.buffer.flush = vec![support::policy("full")];
    let mut ssd = ready(&config, 1);
    // Reads keep the chips of partition 0 busy, so its flush ends last.
    let mut requests: Vec<_> = (0..64).map(|id| request(id, Operation::Read, id * 8, 1)).collect();
    requests.push(request(64, Operation::Write, 0, 64));
    let mut buffered = None;
    support::closed_loop_with(&mut ssd, 65, requests, |ssd, completion| {
        if completion.id.0 == 64 {
            let mut gauges = Vec::new();
            ssd.gauges(&mut gauges);
            let index = Ssd::gauge_names().iter().position(|name| name == "buffered_pages");
            buffered = Some(gauges[index.expect("a gauge")]);
        }
    });
    assert_eq!(buffered, Some(0), "pages not in flash when the write was acknowledged");
    assert_eq!(ssd.counters().operations(Activity::Host.program()), 16);
}

#[test]
fn a_request_holds_its_reads_back_where_the_device_takes_very_many_requests() {
    let mut config = support::exact();
    config.controller.queue_depth = 1 << 20;
    // 2^24 operations for 2^20 requests leave each 7, beside everything else.
    let mut ssd = ready(&config, 1);
    let done = support::timed(&mut ssd, &[(0, Operation::Read, 0, 1_024)]);
    let (reads, chips) = (256, 4);
    assert_eq!(ssd.counters().operations(Activity::Host.read()), reads);
    let least = reads / chips * (support::READ + 4 * support::UNIT);
    assert!((least..2 * least).contains(&done[0].time.0), "{} ns, at least {least}", done[0].time.0);
    assert_eq!(done[0].ledger.total().as_ns(), done[0].time.0);
}

/// Drives as different as may be, each in a deterministic window that does not end: what the
/// host waits for comes nevertheless, and soon.
#[test]
fn the_host_waits_for_nothing_that_a_window_keeps_back() {
    let first = 400 * support::soak_round();
    for number in first..first + 40 {
        let mut config = flashkeel_device::stranger(number);
        config.window = support::policy(serde_json::json!({
            "policy": "periodic", "deterministic": "1000h", "non_deterministic": "100ms"
        }));
        // Others may empty every block once before they find out that nothing is gained.
        config.gc.victim = support::policy("greedy");
        let mut ssd = ready(&config, number);
        let pages = config.logical_capacity.0 / 4096;
        let writes = random_pages(Operation::Write, pages, 4_000, number);
        let reads = random_pages(Operation::Read, pages, 4_000, number + 1);
        let both = writes.zip(reads).flat_map(|(write, read)| [write, read]).enumerate();
        let numbered = both.map(|(id, request)| Request { id: RequestId(id as u64), ..request });
        let completions = closed_loop(&mut ssd, 16, numbered);
        let last = completions.iter().map(|completion| completion.time.0).max().expect("completions");
        assert_eq!(completions.len(), 8_000, "drive {number}");
        assert!(last < 600_000_000_000, "drive {number}: {} s", last / 1_000_000_000);
        ssd.check();
    }
}
