//! The probe finds the features of drives that it knows nothing of, and says
//! what it cannot find.

mod support;

use std::ops::ControlFlow;

use flashkeel_device::DeviceConfig;
use flashkeel_engine::{Span, Stream};
use flashkeel_ssdcheck::{BufferType, FlushTrigger, Report, WriteBuffer, probe};
use serde_json::{Value, json};
use support::{DRIVES, preset, ready};

const FULL: FlushTrigger = FlushTrigger::Full;
const READ: FlushTrigger = FlushTrigger::ReadTrigger;

fn diagnose(config: &DeviceConfig, seed: u64) -> Report {
    let mut ssd = ready(config, seed);
    probe(&mut ssd, None, seed, None, &mut |_| ControlFlow::Continue(())).expect("a drive that serves")
}

#[test]
fn every_feature_of_the_seven_drives_is_found() {
    // Table I.
    let table = [
        (vec![], 248, BufferType::Back, vec![FULL]),
        (vec![], 248, BufferType::Back, vec![FULL]),
        (vec![], 256, BufferType::Back, vec![FULL]),
        (vec![17], 128, BufferType::Back, vec![FULL]),
        (vec![17, 18], 128, BufferType::Back, vec![FULL]),
        (vec![], 128, BufferType::Fore, vec![FULL, READ]),
        (vec![], 128, BufferType::Fore, vec![FULL, READ]),
    ];
    for seed in [1, 3] {
        for (drive, (bits, kib, kind, flush)) in DRIVES.into_iter().zip(&table) {
            let config = preset(drive);
            let Report { model, evidence } = diagnose(&config, seed);
            // A core simulates some two million a second, so a probe takes a few seconds
            // at most.
            assert!(evidence.requests <= 4_000_000, "{drive}: {} requests", evidence.requests);
            assert_eq!(&model.volume_bits, bits, "{drive}");
            assert_eq!(model.gc_volume_bits.as_ref(), Some(bits), "{drive}");
            assert_eq!(model.write_buffer.bytes, Some(kib << 10), "{drive}");
            assert_eq!(model.write_buffer.kind, *kind, "{drive}");
            assert_eq!(&model.write_buffer.flush, flush, "{drive}");
            assert!((200_000..=300_000).contains(&model.thresholds_ns.read), "{drive}: {model:?}");
            assert!(model.latencies_ns.collection > 3_500_000, "{drive}: collection takes an erase and more");
            let sleep = model.sleep.expect("all seven sleep");
            let after_ms = if matches!(drive, "ssd-f" | "ssd-g") {
                1.5
            } else if drive == "ssd-a" {
                18.0
            } else {
                20.0
            };
            assert!((sleep.after_ns as f64 / 1e6 / after_ms - 1.0).abs() < 0.02, "{drive}: {sleep:?}");
            assert_eq!(model.undetermined, Vec::<String>::new(), "{drive}");
        }
    }
}

/// What was found of a buffer before the time given ran out is told, and what was not is said.
#[test]
fn what_is_known_of_a_buffer_when_the_time_is_over_is_told() {
    let config = preset("ssd-d");
    let (mut too_short, mut too_long) = (Span::from_secs(1), Span::from_secs(10));
    // It ends in the test of the type at some limit.
    let model = loop {
        assert!(too_long.0 - too_short.0 > 1_000, "nothing between {too_short} and {too_long}");
        let limit = Span(too_short.0.midpoint(too_long.0));
        let report = probe(&mut ready(&config, 1), None, 1, Some(limit), &mut |_| ControlFlow::Continue(()));
        let model = report.expect("long enough for something").model;
        if model.undetermined.iter().any(|why| why == "write_buffer.type: the time given ran out before") {
            break model;
        }
        if model.write_buffer.bytes.is_some() { too_long = limit } else { too_short = limit }
    };
    assert_eq!(model.volume_bits, [17]);
    assert_eq!(
        model.write_buffer,
        WriteBuffer { bytes: Some(128 << 10), kind: BufferType::Unknown, flush: vec![FULL] }
    );
}

/// A drive nobody has seen: its configuration, volume bits, buffer pages in
/// each volume, and whether it is fore with read trigger. It holds up to
/// `most_capacity` times 256 MiB.
fn stranger(random: &mut Stream, most_capacity: u64) -> (DeviceConfig, Vec<u32>, u64, bool) {
    let volumes = random.below(4) as usize;
    let mut bits: Vec<u32> = Vec::new();
    while bits.len() < volumes {
        let bit = random.between(3, 18) as u32;
        if !bits.contains(&bit) {
            bits.push(bit);
        }
    }
    bits.sort_unstable();
    let per_volume = 1u64 << random.between(1, 3);
    let chips = per_volume << volumes;
    // At most four chips share a channel, or it, not they, would limit the drive.
    let channels = chips >> random.below(3).min(u64::from(chips.trailing_zeros()));
    let units = 2 << random.below(2);
    // A flush programs a page or two on each chip.
    let rounds = random.between(1, 2);
    let buffer_pages = random.between(8, (per_volume * units * rounds).max(9));
    let is_fore = random.chance(0.4);
    let program_us = random.between(400, 1_500);
    let pages_per_block = 16 << random.below(2);
    let start = per_volume * 2 + 6;
    let scheduler = ["fifo", "priority"][random.below(2) as usize];
    let victim = ["greedy", "cost-benefit"][random.below(2) as usize];
    let read_us = random.between(40, 90);
    let erase_us = random.between(3_000, 6_000);
    // Whole volumes, whatever the bits.
    let lpns = 65_536 * random.between(1, most_capacity);
    // Three tenths of the flash are over-provisioning, and what garbage collection keeps free.
    let blocks = (lpns * 14 / 10).div_ceil(chips * pages_per_block * units) + 24;
    let config = json!({
        "logical_capacity": format!("{}KiB", lpns * 4),
        "map_cache": "all",
        "scheduler": scheduler,
        "partition_bits": bits,
        "geometry": {
            "channels": channels, "chips_per_channel": chips / channels, "planes_per_chip": 1,
            "blocks_per_plane": blocks, "pages_per_block": pages_per_block,
            "page_size": format!("{}KiB", 4 * units),
        },
        "timing": {
            "read": [format!("{read_us}us")],
            "program": [format!("{program_us}us"), format!("{}us", program_us * 3 / 2)],
            "erase": format!("{erase_us}us"),
            "channel_rate": "800MB/s",
        },
        "buffer": {
            "kind": if is_fore { "fore" } else { "back" },
            "size": format!("{}KiB", (buffer_pages * 4) << volumes),
            "flush": if is_fore { json!(["full", "read"]) } else { json!(["full"]) },
        },
        "gc": {
            "start_below": start, "stop_above": start + per_volume,
            "victim": victim,
            "invocation": "foreground", "concurrent_victims": per_volume.min(4),
        },
    });
    let config = serde_json::from_value(config).expect("a device");
    (config, bits, buffer_pages, is_fore)
}

/// Diagnoses strangers, of which so many may leave something open, and none anything wrong; returns how many
/// volumes they had.
fn strangers_are_recognised(
    seeds: impl IntoIterator<Item = u64>,
    most_capacity: u64,
    most_open: usize,
) -> Vec<usize> {
    let (mut failures, mut open, mut volumes) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let (config, bits, pages, is_fore) = stranger(&mut Stream::new(seed, "stranger"), most_capacity);
        let report = diagnose(&config, seed);
        let model = &report.model;
        let told = format!("seed {seed}: {model:?}\n{config:?}\n{:?}", report.evidence);
        let (kind, flush) =
            if is_fore { (BufferType::Fore, vec![FULL, READ]) } else { (BufferType::Back, vec![FULL]) };
        let is_open = |key: &str| {
            let keys = model.undetermined.iter().filter_map(|why| why.split(':').next());
            keys.flat_map(|keys| keys.split(", ")).any(|open| open == key)
        };
        let buffer = &model.write_buffer;
        let is_right = (model.volume_bits == bits || is_open("volume_bits"))
            && (model.gc_volume_bits.as_ref() == Some(&bits) || is_open("gc_volume_bits"))
            && buffer.bytes == Some(pages * 4096)
            && buffer.kind == kind
            && (buffer.flush == flush || is_open("write_buffer.flush"))
            && model.sleep.is_none();
        if !is_right {
            failures.push(told);
        } else if !model.undetermined.is_empty() {
            open.push(told);
        }
        volumes.push(1 << bits.len());
    }
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
    assert!(open.len() <= most_open, "{} leave something open\n{}", open.len(), open.join("\n"));
    volumes
}

#[test]
fn strangers_are_recognised_by_every_feature() {
    assert_eq!(strangers_are_recognised([3, 6, 1, 2], 3, 0), [1, 2, 4, 8]);
}

/// Collection settles into another cycle of intervals in each run.
#[test]
fn volumes_are_told_apart_whatever_cycle_collection_settles_into() {
    strangers_are_recognised([11, 15, 20, 41], 3, 0);
}

/// They are never done with a flush before the next begins; the last is at work
/// of its own while its throughput is first measured, too.
#[test]
fn buffers_of_drives_that_the_shortest_think_time_overwhelms_are_found() {
    strangers_are_recognised([72, 149], 3, 0);
    strangers_are_recognised([121], 5, 0);
}

/// Others in each round of `make soak`.
#[test]
#[ignore = "takes minutes"]
fn many_strangers_are_recognised_by_every_feature() {
    const EACH: u64 = 40;
    let round: u64 =
        std::env::var("FLASHKEEL_SOAK_ROUND").map_or(0, |round| round.parse().expect("a number"));
    for most_capacity in [1, 3, 6] {
        strangers_are_recognised(round * EACH..(round + 1) * EACH, most_capacity, EACH as usize / 10);
    }
}

/// What the paper's method cannot see is not made up.
#[test]
fn what_cannot_be_determined_is_said_and_nothing_made_up() {
    let mut config: Value = serde_json::to_value(preset("ssd-d")).expect("plain data");
    config["logical_capacity"] = json!("512MiB");
    config["geometry"]["blocks_per_plane"] = json!(256);
    config["power"] = json!("none");
    config["slc_cache"] = json!("none");
    // Pages leave for flash one by one, and one page is never written twice.
    config["buffer"] =
        json!({ "kind": "back", "size": "256KiB", "rewrite": "coalesce", "flush": ["page", "timeout"] });
    let report = diagnose(&serde_json::from_value(config).expect("a device"), 1);
    let model = &report.model;
    assert_eq!(model.volume_bits, [17]);
    assert_eq!(model.gc_volume_bits, None);
    assert_eq!((model.write_buffer.bytes, model.write_buffer.kind), (None, BufferType::Unknown));
    assert!(model.undetermined.iter().any(|reason| reason.starts_with("write_buffer")), "{model:?}");
    assert!(model.undetermined.iter().any(|reason| reason.starts_with("gc_volume_bits")), "{model:?}");
}

#[test]
fn what_little_time_allows_is_found_and_the_rest_said() {
    for drive in DRIVES {
        let mut ssd = ready(&preset(drive), 1);
        let limit = Some(Span::from_secs(3));
        let report = probe(&mut ssd, None, 1, limit, &mut |_| ControlFlow::Continue(()));
        let model = report.unwrap_or_else(|error| panic!("{drive}: {error}")).model;
        assert!((200_000..=300_000).contains(&model.thresholds_ns.read), "{drive}: {model:?}");
        assert!(model.undetermined.iter().any(|reason| reason.contains("ran out")), "{drive}: {model:?}");
    }
}

/// Once the longest of the flushes were called collections, each of which takes an erase and more, and bits were found
/// by them.
#[test]
fn flushes_alone_are_no_collections() {
    for (capacity, seed) in [("16MiB", 1), ("16MiB", 2), ("32MiB", 1), ("32MiB", 3)] {
        let config = DeviceConfig {
            logical_capacity: serde_json::from_value(json!(capacity)).unwrap(),
            ..preset("ssd-a")
        };
        let model = diagnose(&config, seed).model;
        assert!(model.latencies_ns.collection == 0 || model.latencies_ns.collection > 3_500_000, "{model:?}");
        let is_told = |what: &String| what.starts_with("gc_volume_bits");
        assert_eq!(model.gc_volume_bits.is_none(), model.undetermined.iter().any(is_told), "{model:?}");
    }
}
