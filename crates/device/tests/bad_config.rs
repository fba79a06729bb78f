//! Impossible devices are refused with the key and the remedy; the smallest
//! ones that are accepted run.

mod support;

use flashkeel_device::{Delay, DeviceConfig, FillPattern, MapCacheSize};
use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{Operation, Span};
use serde_json::json;
use support::*;

/// Checks that `spoil` makes a good device one that is refused, in words that
/// contain `expected`.
fn refused(expected: &str, spoil: impl FnOnce(&mut DeviceConfig)) {
    let mut config = tiny();
    config.validate().expect("the device is good");
    spoil(&mut config);
    let message = config.validate().expect_err(expected);
    assert!(message.contains(expected), "{message:?} does not say {expected:?}");
}

/// Checks that a device with `settings` is refused when it is read, in words that
/// begin with `expected`.
fn unreadable(expected: &str, settings: serde_json::Value) {
    let message = read(settings).expect_err(expected);
    assert!(message.starts_with(expected), "{message:?} is not {expected:?}");
}

#[test]
fn geometry_out_of_range() {
    refused("geometry.channels is 0; it must lie between 1 and 256", |c| c.geometry.channels = 0);
    refused("geometry.channels is 257", |c| c.geometry.channels = 257);
    refused("geometry.chips_per_channel is 0", |c| c.geometry.chips_per_channel = 0);
    refused("geometry.planes_per_chip is 17; it must lie between 1 and 16", |c| {
        c.geometry.planes_per_chip = 17
    });
    refused("geometry.blocks_per_plane is 0", |c| c.geometry.blocks_per_plane = 0);
    refused("geometry.pages_per_block is 4294967295", |c| c.geometry.pages_per_block = u32::MAX);
    refused("geometry.page_size is 0B", |c| c.geometry.page_size = Bytes(0));
    refused("geometry.page_size is 6KiB; it must be 4, 8, 16, 32, 64 or 128 KiB", |c| {
        c.geometry.page_size = Bytes(6 << 10)
    });
    refused("geometry.page_size is 1MiB", |c| c.geometry.page_size = Bytes(1 << 20));
    refused("geometry.page_size: a flash page of 3 mapping units", |c| {
        c.geometry.page_size = Bytes(12 << 10)
    });
    refused("geometry.planes_per_chip: a flash page of 128 mapping units", |c| {
        c.geometry.page_size = Bytes(128 << 10);
        c.geometry.planes_per_chip = 4;
        c.geometry.multi_plane = true;
    });
    refused("geometry: 2199023255552 mapping units of 4KiB; at most 15.7 TiB are supported", |c| {
        c.geometry.channels = 256;
        c.geometry.chips_per_channel = 256;
        c.geometry.blocks_per_plane = 1 << 20;
    });
}

#[test]
fn windows_and_periods_that_the_clock_cannot_name() {
    for (policy, key) in [
        ("periodic", "deterministic"),
        ("periodic", "non_deterministic"),
        ("commanded", "time_maximum"),
        ("commanded", "time_minimum_low"),
        ("commanded", "time_minimum_high"),
    ] {
        let window = json!({ "policy": policy, key: "10000000000s" });
        unreadable(&format!("window.{key}: is 10000000000s; at most 36525d"), json!({ "window": window }));
    }
    let cap = json!({ "policy": "static-cap", "period": "10000000000s" });
    unreadable("throttle.period: is 10000000000s; at most 36525d", json!({ "throttle": cap }));
}

#[test]
fn times_and_rates_out_of_range() {
    refused("timing.read is empty; give one time per page type", |c| c.timing.read.clear());
    refused("timing.program is empty", |c| c.timing.program.clear());
    refused("timing: an operation of 2h; at most 1h", |c| c.timing.erase = Span::from_secs(7200));
    refused("timing.channel_rate is 0B/s; at least 1MB/s", |c| c.timing.channel_rate = Rate(0));
    refused("host_link is 0B/s", |c| c.host_link = Some(Rate(0)));
    refused("controller.lookup: min 2ns is above max 1ns", |c| c.controller.lookup = Delay::between_ns(2, 1));
    refused("controller.background_generation is up to", |c| {
        c.controller.background_generation = Delay::between_ns(0, u64::MAX)
    });
}

#[test]
fn controller_limits_out_of_range() {
    for slots in [0, 1025] {
        refused("controller.slots_per_chip is", |c| c.controller.slots_per_chip = slots);
    }
    for depth in [0, u32::MAX] {
        refused("controller.queue_depth is", |c| c.controller.queue_depth = depth);
    }
}

#[test]
fn capacity_out_of_range() {
    refused("logical_capacity is 0B; use a multiple of 4KiB, such as 4KiB", |c| {
        c.logical_capacity = Bytes(0)
    });
    refused("logical_capacity is 8191B; use a multiple of 4KiB, such as 4KiB", |c| {
        c.logical_capacity = Bytes(8191)
    });
    refused("logical_capacity 1GiB exceeds the flash, 12MiB", |c| c.logical_capacity = Bytes(1 << 30));
    refused("logical_capacity: too little over-provisioning: the device has 96 blocks", |c| {
        c.logical_capacity = Bytes(12 << 20)
    });
    refused("each chip of a striped device has 24 blocks", |c| {
        c.allocation = policy("striped");
        c.logical_capacity = Bytes(11 << 20);
    });
    // 1,024 pages of 4 KiB, in blocks of two flash pages of four, of which one has to be gained.
    refused("the data take 257, with a flash page of garbage in each to gain,", |c| {
        (c.geometry.pages_per_block, c.geometry.blocks_per_plane) = (2, 60);
    });
    refused("lower logical_capacity (4MiB) or gc.stop_above", |c| c.gc.stop_above = 80);
}

#[test]
fn partition_bits_that_divide_nothing() {
    refused("partition_bits: bit 2 of the LBA; it must lie between 3", |c| c.partition_bits = vec![2]);
    refused("partition_bits: bit 48", |c| c.partition_bits = vec![48]);
    refused("partition_bits names a bit twice", |c| c.partition_bits = vec![5, 5]);
    refused("partition_bits has 7 bits; at most 6", |c| c.partition_bits = (3..10).collect());
    refused("8 partitions of 4 chips; the chips must divide evenly", |c| c.partition_bits = vec![3, 4, 5]);
    refused("is not a multiple of 8MiB, the period of partition bit 13", |c| c.partition_bits = vec![13]);
}

#[test]
fn buffers_that_would_stand_still() {
    refused("buffer.size is 4KiB", |c| c.buffer.size = Bytes(4 << 10));
    refused("needs at least 16KiB and at most 16GiB", |c| c.buffer.size = Bytes(1 << 50));
    refused("needs at least 112KiB", |c| {
        c.buffer.kind = policy("stripe");
        c.buffer.size = Bytes(64 << 10);
    });
    let cache = |size| policy(json!({ "policy": "fold", "size": size }));
    refused("slc_cache.size is 8KiB; each of 1 partition(s) needs at least 16KiB", |c| {
        c.slc_cache = cache("8KiB")
    });
    refused("slc_cache.size is 16KiB; each of 2 partition(s) needs at least 16KiB", |c| {
        (c.sets, c.slc_cache) = (2, cache("16KiB"))
    });
    unreadable("buffer.kind.pages: is 0", json!({"buffer": {"kind": {"policy": "stripe", "pages": 0}}}));
    refused("buffer.flush names none of \"page\", \"full\" and \"watermark\"", |c| {
        c.buffer.flush = vec![policy("timeout"), policy("read")]
    });
    refused("buffer.rewrite is \"coalesce\", but kind \"none\"", |c| {
        c.buffer.kind = policy("none");
        c.buffer.rewrite = policy("coalesce");
    });
    refused("buffer.flush needs \"page\" and \"timeout\" with kind \"none\"", |c| {
        c.buffer.kind = policy("none");
        c.buffer.flush = vec![policy("page")];
    });
    for timeout in [Span::ZERO, Span(u64::MAX)] {
        refused("buffer.timeout is", |c| c.buffer.timeout = Some(timeout));
    }
    for watermark in [0.0, 1.0, -1.0, f64::NAN] {
        refused("buffer.watermark is", |c| c.buffer.watermark = watermark);
    }
}

#[test]
fn collection_that_contradicts_itself() {
    refused("gc.start_below is 9, above gc.stop_above, which is 8", |c| {
        c.gc.start_below = 9;
        c.gc.stop_above = 8;
    });
    for count in [0, u32::MAX] {
        refused("gc.concurrent_victims is", |c| c.gc.concurrent_victims = count);
        refused("gc.pages_in_flight is", |c| c.gc.pages_in_flight = count);
        unreadable("gc.victim.d: is", json!({"gc": {"victim": {"policy": "d-choices", "d": count}}}));
    }
}

#[test]
fn schedulers_out_of_range() {
    for (expected, settings) in [
        ("scheduler.gc: is 0; a weight lies between 1 and 1000", json!({"policy": "fair", "gc": 0})),
        ("scheduler.host: is 1001", json!({"policy": "fair", "host": 1001})),
        (
            "scheduler.gc_min: is 0.5, above gc_max, which is 0.2",
            json!({"policy": "debit", "gc_min": 0.5, "gc_max": 0.2}),
        ),
        ("scheduler.gc_max: is 1.5; a share lies between 0 and 1", json!({"policy": "debit", "gc_max": 1.5})),
        ("scheduler.map: is -0.1", json!({"policy": "debit", "map": -0.1})),
        ("scheduler.gc_static: is 2", json!({"policy": "debit", "gc_static": 2.0})),
        ("scheduler.gc_i: is 1; it must be at least 0 and below 1", json!({"policy": "debit", "gc_i": 1.0})),
        ("scheduler.gc_p: is -1", json!({"policy": "debit", "gc_p": -1.0})),
        ("scheduler.period: is 0ns", json!({"policy": "debit", "period": "0ns"})),
        ("scheduler.period: is 52w", json!({"policy": "debit", "period": "52w"})),
    ] {
        unreadable(expected, json!({ "scheduler": settings }));
    }
}

#[test]
fn map_caches_and_fills_out_of_range() {
    refused("map_cache is 2KiB; each partition needs at least one 4KiB map page", |c| {
        c.map_cache = MapCacheSize::Size(Bytes(2048))
    });
    for fill in [0.0, 1.1, f64::NAN, -1.0] {
        refused("precondition.fill is", |c| c.precondition.fill = fill);
    }
}

#[test]
fn the_smallest_devices_run() {
    for (pages_per_block, page_size) in [(1, 4096), (1, 16 << 10), (2, 4096), (16, 16 << 10)] {
        for pattern in [FillPattern::None, FillPattern::Random] {
            let mut config = exact_chip(1);
            config.geometry.pages_per_block = pages_per_block;
            config.geometry.page_size = Bytes(page_size);
            config.logical_capacity = Bytes(4096);
            config.gc.start_below = 0;
            config.gc.stop_above = 0;
            config.buffer.size = Bytes(page_size);
            config.precondition.pattern = pattern;
            while config.validate().is_err() {
                config.geometry.blocks_per_plane += 1;
                assert!(config.geometry.blocks_per_plane < 16, "{:?}", config.validate());
            }
            let mut ssd = ready(&config, 1);
            let done = closed_loop(&mut ssd, 8, random_pages(Operation::Write, 1, 500, 1));
            assert_eq!(done.len(), 500);
            ssd.check();
        }
    }
}

#[test]
fn scrubbing_and_wear_levelling_out_of_range() {
    refused("scrub.stop_below is 100001, above scrub.start_above, which is 100000", |c| {
        c.scrub.stop_below = 100_001
    });
    refused("scrub.stop_below is 0; it must lie between 1 and 16777216", |c| {
        (c.scrub.stop_below, c.scrub.start_above) = (0, 0)
    });
    refused("scrub.start_above is 4000000000; it must lie", |c| c.scrub.start_above = 4_000_000_000);
    refused("scrub.concurrent_blocks is 0; 1 to 4096", |c| c.scrub.concurrent_blocks = 0);
    refused("scrub.pages_in_flight is 65537; 1 to 65536", |c| c.scrub.pages_in_flight = 65_537);
    refused("wear_levelling.threshold is 0; 1 to 1000000", |c| c.wear_levelling.threshold = 0);
    refused("wear_levelling.pages_in_flight is 0", |c| c.wear_levelling.pages_in_flight = 0);
    refused("5 are emptied by scrub and wear_levelling", |c| {
        (c.scrub.enabled, c.wear_levelling.enabled) = (true, true);
        c.logical_capacity = Bytes(11 << 20);
    });
}

#[test]
fn checkpoints_out_of_range_or_of_no_use() {
    refused("checkpoint.period is 0ns; it must lie between 100us and", |c| c.checkpoint.period = Span::ZERO);
    refused("checkpoint.after_pages is 0; at least 1", |c| c.checkpoint.after_pages = Some(0));
    refused("checkpoint.pages_in_flight is 0; 1 to 65536", |c| c.checkpoint.pages_in_flight = 0);
    refused("which needs checkpoint.enabled = false", |c| {
        c.checkpoint.enabled = true;
        c.redundancy = support::policy("logical");
        c.allocation = support::policy("striped");
    });
}

#[test]
fn shares_and_weights_of_background_tasks_out_of_range() {
    for (settings, message) in [
        (json!({"policy": "debit", "scrub_max": 1.5}), "scheduler.scrub_max: is 1.5; a share lies"),
        (json!({"policy": "debit", "wear_levelling_min": 0.2}), "scheduler.wear_levelling_min: is 0.2"),
        (json!({"policy": "debit", "scrub_i": 1.0}), "scheduler.scrub_i: is 1"),
        (json!({"policy": "debit", "wear_levelling_p": -1.0}), "scheduler.wear_levelling_p: is -1"),
        (json!({"policy": "fair", "scrub": 0}), "scheduler.scrub: is 0; a weight lies"),
    ] {
        unreadable(message, json!({ "scheduler": settings }));
    }
}
