//! Models of other drives of the same size: whether what a drive does contradicts them.

mod support;

use std::ops::ControlFlow;

use flashkeel_device::stranger;
use flashkeel_engine::{Lba, Leaf, Operation, Span, Stream, Time};
use flashkeel_ssdcheck::{DeviceModel, Engine, Measured, contradiction, probe};
use serde_json::json;
use support::loads::{PACINGS, Pacing, log};
use support::{DRIVES, Thinks, preset, ready, serve};

/// Drives whose buffers and volumes are alike: each is predicted as well by the other's model.
const ALIKE: [[&str; 2]; 2] = [["ssd-a", "ssd-b"], ["ssd-f", "ssd-g"]];
const REQUESTS: u64 = 40_000;
const LIMIT: Span = Span::from_secs(120);

/// Tries the model of each of these drives, found on another specimen, on each of them, under workloads
/// with such parts of writes. Returns in how many cases it is told that the model is of another drive, and in how
/// many it is of one; that it is not of its own or a like one is never told.
fn told(drives: &[&str], seeds: &[u64], writes: &[f64]) -> (usize, usize) {
    let found = drives.iter().map(|name| {
        let mut ssd = ready(&preset(name), 101);
        probe(&mut ssd, None, 101, None, &mut |_| ControlFlow::Continue(())).expect("a drive").model
    });
    let models: Vec<DeviceModel> = found.collect();
    let (mut told, mut others) = (0, 0);
    for &own in drives {
        let device = ready(&preset(own), 1);
        let sectors = device.limits().sectors;
        for (&seed, &writes) in seeds.iter().flat_map(|seed| writes.iter().map(move |part| (seed, part))) {
            let mut thinks = Thinks::new(writes, sectors, seed);
            let mut requests = Vec::new();
            let _ =
                serve(&mut device.clone(), Time::ZERO, &mut thinks, REQUESTS, &mut |now, request, done| {
                    if let Some(done) = done {
                        let (latency, operation) = (done.time.since(now), request.operation);
                        let (lba, sectors) = (request.lba, request.sectors);
                        requests.push(Measured { submitted: now, latency, operation, lba, sectors });
                    }
                });
            for (&name, model) in drives.iter().zip(&models) {
                // As if it were of the same size.
                let found = contradiction(&DeviceModel { sectors, ..model.clone() }, &requests);
                let case = format!("{name} on {own}, {writes} writes, seed {seed}: {found:?}");
                if own == name || ALIKE.iter().any(|pair| pair.contains(&own) && pair.contains(&name)) {
                    assert_eq!(found, None, "{case}");
                    continue;
                }
                others += 1;
                told += usize::from(found.is_some());
                if found.is_none() {
                    println!("not told: {case}");
                }
            }
        }
    }
    (told, others)
}

#[test]
fn a_model_of_another_drive_is_contradicted_and_its_own_is_not() {
    let (told, others) = told(&["ssd-a", "ssd-d", "ssd-e", "ssd-f"], &[1], &[0.5]);
    assert_eq!((told, others), (12, 12));
}

/// Of the first 400 slow requests alone, blurred by long writes, nothing was told.
#[test]
fn a_model_of_another_drive_is_contradicted_under_requests_of_many_sizes() {
    let found = |name: &str| {
        let mut ssd = ready(&preset(name), 101);
        probe(&mut ssd, None, 101, None, &mut |_| ControlFlow::Continue(())).expect("a drive").model
    };
    let (own, other) = (found("ssd-d"), found("ssd-a"));
    let mut device = ready(&preset("ssd-d"), 1);
    let asked = log(&mut device, &mut Engine::new(&own, None), 77, Pacing::Depth(1), REQUESTS);
    let requests: Vec<Measured> = asked.iter().map(|asked| asked.measured).collect();
    assert_eq!(contradiction(&own, &requests), None);
    let told = contradiction(&other, &requests).expect("it is of another drive");
    assert!(told.contains("after 32 pages written to each volume of bits [17]"), "{told}");
}

#[test]
#[ignore = "takes minutes"]
fn a_model_of_another_drive_is_contradicted_under_many_workloads() {
    let (told, others) = told(&DRIVES, &[2, 3, 4], &[0.924, 0.904, 0.094, 0.222, 0.539, 0.5]);
    println!("{told} of {others} told");
    // Where hardly anything is written few requests are slow.
    assert!(told * 50 >= others * 49, "{told} of {others}");
}

/// What may be wrong of a warning is worse than none: on strangers, most of whose slow requests have other
/// reasons than the buffer, none is made of their own model.
#[test]
#[ignore = "takes minutes"]
fn no_stranger_contradicts_its_own_model() {
    const DRIVES: u64 = 40;
    let round: u64 =
        std::env::var("FLASHKEEL_SOAK_ROUND").map_or(0, |round| round.parse().expect("a number"));
    for number in (700_000 + round * DRIVES..).take(DRIVES as usize) {
        let config = stranger(number);
        let mut other = ready(&config, number + (1 << 32));
        let progress = &mut |_| ControlFlow::Continue(());
        let Ok(report) = probe(&mut other, None, number, Some(LIMIT), progress) else { continue };
        let device = ready(&config, number);
        for (pacing_name, pacing) in PACINGS {
            let mut engine = Engine::new(&report.model, None);
            let asked = log(&mut device.clone(), &mut engine, number, pacing, REQUESTS);
            let requests: Vec<Measured> = asked.iter().map(|asked| asked.measured).collect();
            let found = contradiction(&report.model, &requests);
            assert_eq!(found, None, "stranger {number}, {pacing_name}");
        }
    }
}

/// A buffer of 62 pages that the host has written out after each twenty: reads that come meanwhile are slow.
#[test]
fn flushes_of_the_host_contradict_no_model() {
    let model: DeviceModel = serde_json::from_value(json!({
        "sectors": 1 << 22,
        "volume_bits": [],
        "gc_volume_bits": null,
        "write_buffer": { "bytes": 62 * 4_096, "type": "back", "flush": ["full"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 20_000, "flush": 1_000_000, "collection": 0 },
        "sleep": null,
        "undetermined": [],
    }))
    .expect("a model");
    let served = |at_us: u64, took_us: u64, operation: Operation| {
        let (submitted, latency) = (Time(at_us * 1_000), Span::from_us(took_us));
        let sectors = if operation == Operation::Flush { 0 } else { 8 };
        Measured { submitted, latency, operation, lba: Lba(at_us / 50 % (1 << 19) * 8), sectors }
    };
    let mut log = Vec::new();
    for round in 0..2_000_u64 {
        let begin_us = round * 4_000;
        log.extend((0..20).map(|write| served(begin_us + 100 * write, 20, Operation::Write)));
        log.push(served(begin_us + 2_000, 900, Operation::Flush));
        log.push(served(begin_us + 2_050, 850, Operation::Read));
    }
    assert_eq!(contradiction(&model, &log), None);
    log.retain(|one| one.operation != Operation::Flush);
    let found = contradiction(&model, &log).expect("without them they recur as no buffer has them");
    // And no bit is named that selects nothing, such as one beyond the drive's addresses.
    assert!(found.contains("after 20 pages written, the model's after 62"), "{found}");
}

/// Once each page of a log was looked up, so that one of long writes took all memory.
#[test]
fn writes_as_long_as_there_are_end_soon() {
    let model: DeviceModel = serde_json::from_value(json!({
        "sectors": 1u64 << 45,
        "volume_bits": [],
        "gc_volume_bits": null,
        "write_buffer": { "bytes": 1 << 20, "type": "back", "flush": ["full"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 20_000, "flush": 0, "collection": 0 },
        "sleep": null,
        "undetermined": [],
    }))
    .expect("a model");
    let write = |number: u64| Measured {
        submitted: Time(number * 1_000_000),
        latency: Span::from_us(if number.is_multiple_of(10) { 900 } else { 20 }),
        operation: Operation::Write,
        lba: Lba(number << 32),
        sectors: u32::MAX,
    };
    contradiction(&model, &(0..10_000).map(write).collect::<Vec<_>>());
}

/// Once half of the reads, in a volume that is never written, were all at one count of pages, which recurs after
/// any number: memory was taken for ever more. And writes of one size come at multiples of it alone.
#[test]
fn requests_that_are_slow_at_random_contradict_no_model_whatever_is_written() {
    let model: DeviceModel = serde_json::from_value(json!({
        "sectors": 1 << 22,
        "volume_bits": [],
        "gc_volume_bits": null,
        "write_buffer": { "bytes": 62 * 4_096, "type": "back", "flush": ["full", "read_trigger"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 20_000, "flush": 1_000_000, "collection": 0 },
        "sleep": null,
        "undetermined": [],
    }))
    .expect("a model");
    for pages in [2u64, 8, 16, 32] {
        let mut random = Stream::new(pages, "log");
        let served = |number: u64| {
            let is_write = random.chance(0.1);
            let (operation, each) = if is_write { (Operation::Write, pages) } else { (Operation::Read, 1) };
            let latency = Span::from_us(if !is_write && random.chance(0.02) { 900 } else { 20 });
            let lba = Lba(random.below((1 << 19) / each) * each * 8);
            let submitted = Time(number * 1_000_000);
            Measured { submitted, latency, operation, lba, sectors: 8 * each as u32 }
        };
        let log: Vec<Measured> = (0..60_000).map(served).collect();
        assert_eq!(contradiction(&model, &log), None, "{pages} pages a write");
    }
}
