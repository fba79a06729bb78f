//! A device that is written to without timing wears as one that is simulated.

mod support;

use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Leaf, Operation, Span, Stream, Submit, Time};
use serde_json::json;
use support::*;

/// Pages of 4 KiB of the device, a quarter of whose flash is spare.
const PAGES: u64 = 6_528;
/// Writes of 8 KiB after which a block has been erased some fifty times.
const WRITES: u64 = 60_000;
/// One of them comes every so often.
const EVERY: Span = Span(4_000_000);

/// Eight chips of 64 blocks.
fn device(threshold: Option<u32>) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.channels = 4;
    config.geometry.blocks_per_plane = 64;
    config.geometry.page_size = Bytes(8192);
    config.logical_capacity = Bytes(PAGES * 4096);
    config.buffer.flush = vec![policy("page")];
    config.buffer.size = Bytes(1 << 20);
    config.wear = policy(json!({ "policy": "self-recovery", "onset": "10ms" }));
    config.wear_levelling.enabled = threshold.is_some();
    config.wear_levelling.threshold = threshold.unwrap_or(100);
    config.gc.start_below = 12;
    config.gc.stop_above = 16;
    config.gc.concurrent_victims = 2;
    config.precondition.read_counts_below = Some(0);
    config
}

/// Where `WRITES` writes go: with probability `hot` to the first `space` of the
/// device, otherwise to the rest.
fn places(space: f64, hot: f64) -> Vec<u64> {
    let mut stream = Stream::new(1, "places");
    let (all, first) = (PAGES / 2, (space * PAGES as f64 / 2.0) as u64);
    let mut place = || match (stream.below(1 << 20) as f64) < hot * f64::from(1 << 20) {
        true => stream.below(first),
        false => first + stream.below(all - first),
    };
    (0..WRITES).map(|_| place()).collect()
}

/// Mean cycles of a block; most wear and its deviation, over the mean.
#[derive(Debug)]
struct Wear {
    cycles: f64,
    most: f64,
    deviation: f64,
}

fn worn(write: impl FnOnce(&mut Ssd), config: &DeviceConfig) -> Wear {
    let mut ssd = ready(config, 1);
    write(&mut ssd);
    ssd.check();
    let worn: Vec<f64> = ssd.worn().collect();
    let mean = worn.iter().sum::<f64>() / worn.len() as f64;
    let square = worn.iter().map(|worn| (worn / mean - 1.0) * (worn / mean - 1.0)).sum::<f64>();
    Wear {
        cycles: ssd.endurance().cycles,
        most: worn.iter().copied().fold(0.0, f64::max) / mean,
        deviation: (square / worn.len() as f64).sqrt(),
    }
}

/// Writes to `places`, each simulated.
fn simulate(ssd: &mut Ssd, places: &[u64]) {
    let mut done = Vec::new();
    for (id, &place) in places.iter().enumerate() {
        let at = Time(EVERY.0 * (id as u64 + 1));
        ssd.advance(at, &mut Arena::new(), &mut done);
        let write = request(id as u64, Operation::Write, 2 * place, 2);
        assert_eq!(ssd.submit(at, &write, &mut Arena::new()), Submit::Accepted);
    }
    settle(ssd, &mut done);
}

/// Writes to `places` without timing.
fn age(ssd: &mut Ssd, places: &[u64]) {
    let pages = places.iter().flat_map(|&place| [2 * place, 2 * place + 1]);
    ssd.age(Time::ZERO, Span(EVERY.0 / 2), pages);
}

#[test]
fn blocks_wear_as_if_every_write_were_simulated() {
    for (threshold, space, hot) in [(None, 0.5, 0.5), (None, 0.2, 0.8), (Some(10), 0.5, 1.0)] {
        let (places, config) = (places(space, hot), device(threshold));
        let [simulated, aged] = [simulate, age].map(|write| worn(|ssd| write(ssd, &places), &config));
        println!("{threshold:?} {space} {hot}: {simulated:.3?} {aged:.3?}");
        // Where only one block is emptied at a time, a few more pages are moved.
        assert!((aged.cycles / simulated.cycles - 1.0).abs() < 0.06);
        assert!((aged.deviation / simulated.deviation - 1.0).abs() < 0.2);
        assert!((aged.most - simulated.most).abs() < 0.08);
    }
}

#[test]
fn levelling_puts_no_data_on_worn_blocks_that_are_soon_written_again() {
    let places: Vec<u64> = (0..WRITES).map(|n| n % (PAGES / 2)).collect();
    for write in [simulate, age] {
        let [without, with] =
            [None, Some(10)].map(|threshold| worn(|ssd| write(ssd, &places), &device(threshold)));
        assert!(with.most < without.most + 0.1, "{without:?}, levelled {with:?}");
    }
}
