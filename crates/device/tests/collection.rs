//! Garbage collection by the axes of movement, rotation and invocation.

mod support;

use flashkeel_device::{Activity, DeviceConfig, FillPattern, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Cause, Completion, Leaf, Operation, Request, Span, Stream, Submit, Time};
use serde_json::json;
use support::*;

/// Four channels of two chips with 4 KiB flash pages and striped allocation.
fn striped(movement: &str) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.channels = 4;
    config.geometry.chips_per_channel = 2;
    config.geometry.page_size = Bytes(4096);
    config.geometry.blocks_per_plane = 64;
    config.geometry.pages_per_block = 16;
    config.logical_capacity = Bytes(4608 * 4096);
    config.allocation = policy("striped");
    config.buffer.rewrite = policy("coalesce");
    config.buffer.flush = vec![policy("watermark")];
    config.gc.victim = policy("greedy");
    config.gc.concurrent_victims = 1;
    config.gc.movement = policy(movement);
    config.gc.start_below = 112;
    config.gc.stop_above = 128;
    config.gc.force_below = 48;
    config.scheduler = policy("fifo");
    config.precondition.pattern = FillPattern::Random;
    config
}

/// The same with plane groups of four chips.
fn grouped(movement: &str, rotation: &str) -> DeviceConfig {
    let mut config = striped(movement);
    config.redundancy = policy("logical");
    config.logical_capacity = Bytes(3456 * 4096);
    config.gc.rotation = policy(rotation);
    config
}

/// Reads and writes at random with `depth` requests in flight.
fn mixed(config: &DeviceConfig, depth: usize, count: u64) -> (Ssd, Vec<Completion>) {
    let mut ssd = ready(config, 1);
    let mut random = Stream::new(1, "mixed");
    let requests: Vec<Request> = (0..count)
        .map(|id| {
            let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
            request(id, operation, random.below(3_400), 1)
        })
        .collect();
    let done = closed_loop(&mut ssd, depth, requests);
    ssd.check();
    (ssd, done)
}

/// Reads and writes at random in turn, one every `interval_ns`.
fn paced(config: &DeviceConfig, interval_ns: u64, count: u64) -> (Ssd, Vec<Completion>) {
    timed_by(config, count, |id| id * interval_ns)
}

/// The same at times of their own.
fn timed_by(config: &DeviceConfig, count: u64, time_ns: impl Fn(u64) -> u64) -> (Ssd, Vec<Completion>) {
    let mut ssd = ready(config, 1);
    let mut random = Stream::new(1, "paced");
    let requests: Vec<_> = (0..count)
        .map(|id| {
            let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
            (time_ns(id), operation, random.below(3_400), 1)
        })
        .collect();
    let done = timed(&mut ssd, &requests);
    ssd.check();
    (ssd, done)
}

/// Reads that garbage collection delayed.
fn blocked_reads(done: &[Completion]) -> usize {
    done.iter().filter(|completion| completion.id.0 % 2 == 0 && completion.ledger.has_gc()).count()
}

fn worst_read_ns(done: &[Completion], cause: Cause) -> u64 {
    done.iter().filter(|c| c.id.0 % 2 == 0).map(|c| c.ledger.ns(cause)).max().expect("reads")
}

#[test]
fn every_movement_gains_the_same_space() {
    let amplification = |movement: &str| {
        let (ssd, _) = mixed(&striped(movement), 4, 20_000);
        assert!(ssd.counters().moved_pages > 0, "{movement}");
        ssd.report().waf.expect("writes")
    };
    let queued = amplification("queued");
    for movement in ["channel-blocking", "plane-blocking"] {
        let waf = amplification(movement);
        assert!((waf / queued - 1.0).abs() < 0.05, "{movement}: {waf}, queued {queued}");
    }
    // What waits longer holds more garbage when it is collected.
    assert!(amplification("semi-preemptive") < queued);
}

#[test]
fn pages_of_reads_that_collection_delays_are_counted() {
    for movement in ["queued", "channel-blocking"] {
        let (ssd, done) = mixed(&striped(movement), 4, 20_000);
        let blocked = blocked_reads(&done) as u64;
        assert!(blocked > 100 && ssd.counters().gc_blocked_pages_read == blocked, "{movement}: {blocked}");
    }
    let (ssd, _) = mixed(&striped("none"), 4, 20_000);
    assert_eq!(ssd.counters().gc_blocked_pages_read, 0);
}

#[test]
fn a_block_is_moved_in_one_operation_or_page_by_page() {
    for (movement, purpose) in
        [("channel-blocking", Activity::Gc.through_controller()), ("plane-blocking", Activity::Gc.copyback())]
    {
        let (ssd, _) = mixed(&striped(movement), 4, 20_000);
        let (moves, erases) =
            (ssd.counters().operations(purpose), ssd.counters().operations(Activity::Gc.erase()));
        assert!(moves <= 2 * erases + 16, "{movement}: {moves} moves for {erases} blocks");
        assert_eq!(ssd.counters().operations(Activity::Gc.read()), 0);
    }
    let (ssd, _) = mixed(&striped("semi-preemptive"), 4, 20_000);
    // One flash page of 4 KiB each; garbage made meanwhile is moved in vain.
    assert!(ssd.counters().operations(Activity::Gc.through_controller()) >= ssd.counters().moved_pages);
}

#[test]
fn only_copybacks_leave_the_channel_free() {
    let (_, done) = paced(&striped("channel-blocking"), 200_000, 20_000);
    let behind_moves = |done: &[Completion]| {
        done.iter().filter(|c| c.id.0 % 2 == 0 && c.ledger.ns(Cause::BehindGcMove) > 0).count()
    };
    let by_channel = behind_moves(&done);
    let page = READ + 2 * UNIT + PROGRAM;
    assert!(worst_read_ns(&done, Cause::BehindGcMove) > 2 * page, "moves of several pages");
    let (ssd, done) = paced(&striped("plane-blocking"), 200_000, 20_000);
    let by_plane = behind_moves(&done);
    assert!(by_plane * 5 < by_channel * 4, "{by_plane} blocked by planes, {by_channel} by channels");
    assert_eq!(ssd.counters().unchecked_pages, ssd.counters().moved_pages);
}

#[test]
fn what_was_copied_back_is_checked_while_the_host_is_away() {
    let mut config = striped("plane-blocking");
    let checked = |config: &DeviceConfig| {
        let (ssd, _) = paced(config, 400_000, 10_000);
        let counters = ssd.counters();
        assert!(counters.unchecked_pages > 1_000);
        (counters.checked_pages, counters.operations(Activity::Check.read()), counters.unchecked_pages)
    };
    let (pages, reads, copied) = checked(&config);
    // Some are copied again, or overwritten, before their turn comes.
    assert!(pages > copied / 2 && pages <= copied && reads <= copied, "{pages} of {copied} by {reads} reads");
    config.gc.movement = policy(json!({ "policy": "plane-blocking", "check": false }));
    assert_eq!(checked(&config).0, 0);
    let after = |times: u32| {
        let mut config = config.clone();
        config.gc.movement = policy(json!({ "policy": "page-copyback", "checked_after": times }));
        checked(&config).0
    };
    let (each, third) = (after(1), after(3));
    assert!(each > copied / 2, "{each} of {copied}");
    assert!(
        third > each / 6 && third < each / 2,
        "{third} pages checked after three copies, {each} after each"
    );
}

#[test]
fn what_passes_the_controller_is_not_counted_as_copied() {
    let mut config = striped("page-copyback");
    config.gc.movement = policy(json!({ "policy": "page-copyback", "checked_after": 2 }));
    // Of pages of 16 KiB written in quarters hardly one is valid as a whole.
    config.geometry.page_size = Bytes(16_384);
    config.geometry.pages_per_block = 8;
    let (ssd, _) = paced(&config, 400_000, 10_000);
    let counters = ssd.counters();
    assert!(counters.moved_pages > 400, "{}", counters.moved_pages);
    assert!(counters.checked_pages * 4 < counters.moved_pages, "{} checked", counters.checked_pages);
}

#[test]
fn copybacks_of_a_page_hold_a_chip_for_a_page() {
    let mut config = striped("page-copyback");
    config.scheduler = policy("priority");
    let (ssd, done) = mixed(&config, 1, 20_000);
    let copybacks = ssd.counters().operations(Activity::Gc.copyback());
    assert!(copybacks >= ssd.counters().moved_pages && ssd.counters().moved_pages > 1_000);
    let (worst, page) = (worst_read_ns(&done, Cause::BehindGcMove), READ + PROGRAM);
    assert!(worst > 0 && worst <= page, "{worst} ns behind copybacks of {page} ns");
}

#[test]
fn pages_stay_on_their_chip_wherever_the_host_writes() {
    for movement in ["plane-blocking", "page-copyback", "channel-blocking"] {
        let mut config = striped(movement);
        config.allocation = policy("dynamic");
        config.gc.concurrent_victims = 16;
        let (ssd, _) = mixed(&config, 4, 20_000);
        let counters = ssd.counters();
        let (inside, outside) = (counters.programmed_inside, counters.operations(Activity::Gc.program()));
        // Elsewhere only when the chip has no room.
        assert!(inside > 1_000 && outside * 20 < inside, "{movement}: {inside} inside, {outside} not");
        config.gc.movement = policy("queued");
        let (waf, queued) = (ssd.report().waf, mixed(&config, 4, 20_000).0.report().waf);
        let (waf, queued) = (waf.expect("writes"), queued.expect("writes"));
        assert!((waf / queued - 1.0).abs() < 0.05, "{movement}: {waf}, queued {queued}");
    }
}

#[test]
fn chips_that_collect_side_by_side_keep_room_for_what_they_move() {
    let outside = |rotation: &str, invocation: &str| {
        let mut config = striped("page-copyback");
        config.allocation = policy("dynamic");
        config.gc.rotation = policy(rotation);
        config.gc.invocation = policy(invocation);
        let (ssd, _) = mixed(&config, 4, 20_000);
        assert!(ssd.counters().programmed_inside > 1_000, "{rotation}, {invocation}");
        ssd.counters().operations(Activity::Gc.program())
    };
    assert!(outside("none", "task") > 0);
    assert_eq!(outside("fewest-free", "task"), 0);
    assert_eq!(outside("fewest-free", "ahead"), 0);
}

/// Collection side by side, with low thresholds or high ones.
fn side_by_side(invocation: &str, start_below: u32, stop_above: u32) -> DeviceConfig {
    let mut config = striped("page-copyback");
    config.allocation = policy("dynamic");
    config.gc.rotation = policy("fewest-free");
    config.gc.invocation = policy(invocation);
    config.gc.force_below = 0;
    (config.gc.start_below, config.gc.stop_above) = (start_below, stop_above);
    config
}

#[test]
fn no_more_is_kept_free_than_an_even_load_needs() {
    let waf = |invocation: &str| {
        let (ssd, done) = paced(&side_by_side(invocation, 112, 128), 400_000, 60_000);
        let late = &done[done.len() / 2..];
        assert!(late.iter().all(|c| c.ledger.ns(Cause::NoFreeBlock) == 0), "{invocation}");
        ssd.report().waf.expect("something was written")
    };
    let (ahead, task) = (waf("ahead"), waf("task"));
    assert!(ahead < 0.8 * task, "write amplification {ahead} ahead, {task} by thresholds");
}

#[test]
fn what_a_burst_takes_is_free_before_it() {
    let waited = |invocation: &str| {
        let mut config = side_by_side(invocation, 20, 24);
        config.logical_capacity = Bytes(6656 * 4096);
        config.scheduler = policy("priority");
        let mut ssd = ready(&config, 1);
        let mut random = Stream::new(1, "bursts");
        // Each second 400 writes within 20 ms.
        let mut bursts = |bursts: std::ops::Range<u64>| {
            let requests: Vec<_> = (400 * bursts.start..400 * bursts.end)
                .map(|id| {
                    (id / 400 * 1_000_000_000 + id % 400 * 50_000, Operation::Write, random.below(6_656), 1)
                })
                .collect();
            let done = timed(&mut ssd, &requests);
            done.iter().map(|done| done.ledger.ns(Cause::NoFreeBlock)).sum::<u64>()
        };
        bursts(0..6);
        bursts(6..20)
    };
    let (ahead, task) = (waited("ahead"), waited("task"));
    assert!(
        task > 100_000_000 && ahead * 20 < task,
        "{ahead} ns without a block ahead, {task} by thresholds"
    );
}

#[test]
fn a_host_that_asks_for_more_than_is_sustained_gets_it_evenly() {
    let waits = |invocation: &str| {
        let mut config = side_by_side(invocation, 20, 24);
        config.geometry.pages_per_block = 128;
        config.logical_capacity = Bytes(53_248 * 4096);
        config.scheduler = policy("priority");
        let mut ssd = ready(&config, 1);
        let done = closed_loop(&mut ssd, 64, random_pages(Operation::Write, 53_248, 40_000, 1));
        ssd.check();
        let mut waits: Vec<u64> = done.iter().map(|done| done.ledger.total().0).collect();
        waits.sort_unstable();
        (waits[waits.len() * 999 / 1000], done.iter().map(|done| done.time.0).max().expect("writes"))
    };
    let ((ahead, ends), (task, would_end)) = (waits("ahead"), waits("task"));
    assert!(ahead * 4 < task, "p99.9 {ahead} ns ahead, {task} ns by thresholds");
    assert!(ends < would_end + would_end / 20, "{ends} ns ahead, {would_end} ns by thresholds");
}

#[test]
fn an_ideal_device_waits_for_no_pause() {
    let writes = |erasing: &str| {
        let mut config = striped("none");
        config.gc.erasing = policy(erasing);
        mixed(&config, 64, 20_000).1.iter().map(|c| c.time.0).max()
    };
    assert_eq!(writes("in-pauses"), writes("at-once"));
}

#[test]
fn erases_wait_for_pauses_until_space_is_short() {
    let behind = |config: &DeviceConfig| {
        // 100 ms of dense reads and writes, then as long nothing.
        let (ssd, done) = timed_by(config, 20_000, |id| id / 500 * 200_000_000 + id % 500 * 200_000);
        assert!(ssd.counters().operations(Activity::Gc.erase()) > 100);
        done.iter().filter(|c| c.id.0 % 2 == 0 && c.ledger.ns(Cause::BehindErase) > 0).count()
    };
    let mut config = striped("page-copyback");
    let at_once = behind(&config);
    config.gc.erasing = policy("in-pauses");
    let in_pauses = behind(&config);
    assert!(in_pauses < at_once, "{in_pauses} reads wait for erases in pauses, {at_once} otherwise");
    // Where every block that is free is needed, nothing waits.
    config.gc.force_below = config.gc.start_below;
    let forced = behind(&config);
    assert!(forced > in_pauses, "{forced} where forced, {in_pauses} in pauses");
}

#[test]
fn preemption_points_bound_the_wait_for_collection() {
    let mut config = striped("semi-preemptive");
    config.gc.force_below = 0;
    let (_, done) = mixed(&config, 1, 20_000);
    // One page on the read's own chip, and one on the other chip of its channel.
    let most = 2 * (READ + 2 * UNIT + PROGRAM);
    let worst = worst_read_ns(&done, Cause::BehindGcMove);
    assert!(worst > 0 && worst <= most, "{worst} ns behind moves of {most} ns");
}

#[test]
fn an_ideal_device_never_collects() {
    let (ssd, done) = mixed(&striped("none"), 4, 40_000);
    assert!(done.iter().all(|completion| !completion.ledger.has_gc()));
    assert_eq!(ssd.counters().operations(Activity::Gc.erase()), 0);
    assert_eq!(ssd.report().waf, Some(ssd.counters().operations(Activity::Host.program()) as f64 / 20_000.0));
    let mut physical = rain_without_time();
    physical.map_cache = flashkeel_device::MapCacheSize::Size(Bytes(8192));
    mixed(&physical, 4, 20_000);
}

/// Physical stripes under ideal collection.
fn rain_without_time() -> DeviceConfig {
    let mut config = striped("none");
    config.allocation = policy("dynamic");
    config.redundancy = policy(json!({ "policy": "physical", "pages": 4 }));
    config.logical_capacity = Bytes(3400 * 4096);
    config
}

#[test]
fn collection_gives_way_until_it_is_forced() {
    let eager = striped("channel-blocking");
    let mut deferred = eager.clone();
    deferred.gc.invocation = policy("deferred");
    let blocked = |config| blocked_reads(&paced(config, 300_000, 20_000).1);
    let (eager, patient) = (blocked(&eager), blocked(&deferred));
    assert!(patient < eager, "{patient} reads blocked by collection that gives way, {eager} by other");
    // Without a pause it is forced, and the host goes on.
    let (ssd, _) = mixed(&deferred, 64, 20_000);
    assert!(ssd.counters().operations(Activity::Gc.erase()) > 100);
}

#[test]
fn chips_of_a_plane_group_collect_in_turn() {
    let config = grouped("plane-blocking", "plane-group");
    let (ssd, _) = paced(&config, 800_000, 10_000);
    assert_eq!(ssd.counters().collections_out_of_turn, 0);
    assert!(ssd.counters().operations(Activity::Gc.erase()) > 100);
    // A burst that turns cannot keep up with.
    let mut ssd = ready(&config, 1);
    closed_loop(&mut ssd, 256, random_pages(Operation::Write, 3_400, 20_000, 1));
    ssd.check();
    assert!(ssd.counters().collections_out_of_turn > 100);
}

#[test]
fn all_techniques_together_leave_hardly_a_read_to_collection() {
    let base = grouped("channel-blocking", "none");
    let mut all = grouped("plane-blocking", "plane-group");
    all.read_path = policy("gc-tolerant");
    all.redundancy = policy(json!({ "policy": "logical", "update": "gc-tolerant" }));
    let blocked = |config| blocked_reads(&paced(config, 400_000, 20_000).1);
    let (base, all) = (blocked(&base), blocked(&all));
    assert!(all * 20 < base, "reads blocked by collection: {base} in the base, {all} with all techniques");
}

#[test]
fn impossible_collections_are_refused() {
    let refused = |config: DeviceConfig| config.validate().expect_err("refused");
    let mut config = striped("plane-blocking");
    config.gc.force_below = 113;
    assert!(refused(config).contains("gc.force_below"));
    let mut config = striped("plane-blocking");
    (config.allocation, config.redundancy) = (policy("dynamic"), policy("physical"));
    assert!(refused(config).contains("gc.movement"));
    let mut config = striped("plane-blocking");
    config.geometry.planes_per_chip = 2;
    assert!(refused(config.clone()).contains("planes"));
    config.gc.movement = policy("channel-blocking");
    config.validate().expect("pages go through the controller");
    let mut config = striped("plane-blocking");
    config.gc.rotation = policy("plane-group");
    assert!(refused(config).contains("gc.rotation"));
}

#[test]
fn greedy_takes_over_only_after_a_round_that_gained_nothing() {
    for (map_cache, pages) in [(MapCacheSize::All, 5_320), (MapCacheSize::Size(Bytes(8192)), 5_040)] {
        let mut config = tiny();
        config.geometry.channels = 1;
        config.geometry.chips_per_channel = 1;
        config.geometry.blocks_per_plane = 48;
        config.geometry.pages_per_block = 128;
        config.geometry.page_size = Bytes(4096);
        config.logical_capacity = Bytes(pages * 4096);
        config.map_cache = map_cache;
        config.redundancy = policy("none");
        config.buffer.size = Bytes(16 << 10);
        config.buffer.rewrite = policy("append");
        config.gc.victim = policy(json!({ "policy": "d-choices", "d": 1 }));
        config.gc.concurrent_victims = 1;
        config.gc.start_below = 1;
        config.gc.stop_above = 1;
        let mut ssd = ready(&config, 1);
        ssd.reset_counters();
        // One page over and over: what garbage there is lies in a few blocks, and
        // rarely in one that is drawn at random.
        closed_loop(&mut ssd, 8, (0..80_000).map(|id| request(id, Operation::Write, 7, 1)));
        ssd.check();
        let counters = ssd.counters();
        let (by_greedy, asked) = (counters.victims_by_greedy, counters.victims - counters.victims_by_greedy);
        assert!(by_greedy > 0 && asked >= 48 * by_greedy, "{by_greedy} beside {asked}");
    }
}

#[test]
fn what_was_read_for_want_of_room_on_the_chip_does_not_wait_for_the_rest_of_its_block() {
    // Reads through the controller begin while the chip has no room, and end when it has: a
    // 4 KiB page of 8 KiB is left over.
    for movement in ["channel-blocking", "plane-blocking", "semi-preemptive", "page-copyback"] {
        let mut config = tiny();
        config.geometry.channels = 4;
        config.geometry.page_size = Bytes(8192);
        config.geometry.blocks_per_plane = 64;
        config.geometry.pages_per_block = 64;
        config.logical_capacity = Bytes(180 << 20);
        config.buffer.size = Bytes(100 << 10);
        config.buffer.flush = vec![policy("full")];
        config.gc.victim = policy("greedy");
        config.gc.concurrent_victims = 1;
        config.gc.movement = policy(movement);
        config.scheduler = policy("fifo");
        config.precondition.pattern = FillPattern::Random;
        let mut ssd = ready(&config, 1);
        let over = (0..100_000).map(|id| request(id, Operation::Write, 8, 1));
        assert_eq!(closed_loop(&mut ssd, 1, over).len(), 100_000, "{movement}");
        ssd.check();
    }
}

/// Where every chip gives way, none is out of blocks to empty.
#[test]
fn deferred_collection_goes_on_in_pauses_whichever_chip_comes_first() {
    let mut config = tiny();
    (config.geometry.blocks_per_plane, config.logical_capacity) = (64, Bytes(16 << 20));
    (config.gc.force_below, config.gc.start_below, config.gc.stop_above) = (20, 60, 80);
    (config.gc.invocation, config.gc.rotation) = (policy("deferred"), policy("fewest-free"));
    (config.gc.movement, config.scheduler) = (policy("page-copyback"), policy("priority"));
    let mut ssd = ready(&config, 1);
    let (mut now, mut random) = (Time::ZERO, Stream::new(1, "bursts"));
    for burst in 0..100 {
        for id in 64 * burst..64 * (burst + 1) {
            let write = request(id, Operation::Write, random.below(4_096), 1);
            assert_eq!(ssd.submit(now, &write, &mut Arena::new()), Submit::Accepted);
        }
        now += Span::from_ms(500);
        ssd.advance(now, &mut Arena::new(), &mut Vec::new());
        let free = state(&mut ssd, now, "free_blocks");
        assert!(free >= 60, "{free} free blocks after a pause");
    }
}

/// What the host has filled a block with since it was erased has passed the controller.
#[test]
fn a_block_that_was_erased_before_its_turn_is_not_checked() {
    let (mut ssd, _) = mixed(&striped("plane-blocking"), 32, 40_000);
    settle(&mut ssd, &mut Vec::new());
    let (checked, copied) = (ssd.counters().checked_pages, ssd.counters().unchecked_pages);
    assert!(checked * 4 < copied, "{checked} checked of {copied} copied");
}
