//! Small devices and a closed loop to exercise them.

#![allow(dead_code, reason = "each test file uses its part")]

use flashkeel_device::{DeviceConfig, MapCacheSize, Pattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Completion, Lba, Leaf, Operation, Request, RequestId, Stream, Submit, Time};

/// A device of `chips` on two channels with little of everything.
pub fn tiny() -> DeviceConfig {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 24;
    config.geometry.pages_per_block = 8;
    config.logical_capacity = Bytes(4 << 20);
    config.map_cache = MapCacheSize::All;
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.buffer.size = Bytes(256 << 10);
    config
}

/// Builds and preconditions a device.
pub fn ready(config: &DeviceConfig, seed: u64) -> Ssd {
    let layout = config.validate().expect("the test's device is valid");
    let mut ssd = Ssd::new(&layout, seed);
    if config.precondition.pattern != Pattern::None {
        ssd.precondition(&mut |_| ());
    }
    ssd
}

/// A request of whole 4 KiB pages.
pub fn request(id: u64, operation: Operation, page: u64, pages: u32) -> Request {
    Request { id: RequestId(id), operation, lba: Lba(page * 8), sectors: pages * 8 }
}

/// Serves `requests` with `depth` of them outstanding; returns completions in
/// order. Panics if the device stops making progress.
pub fn closed_loop(
    ssd: &mut Ssd,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Completion> {
    let mut requests = requests.into_iter();
    let (mut all, mut new, mut flying, mut now) = (Vec::new(), Vec::new(), 0, Time::ZERO);
    loop {
        while flying < depth {
            let Some(request) = requests.next() else { break };
            assert_eq!(ssd.submit(now, &request), Submit::Accepted);
            flying += 1;
        }
        if flying == 0 {
            return all;
        }
        now = ssd.next_event().expect("a device with requests inside has something to do");
        ssd.advance(now, &mut new);
        flying -= new.len();
        all.append(&mut new);
    }
}

/// Uniform random requests of one page each.
pub fn random_pages(operation: Operation, span: u64, count: u64, seed: u64) -> impl Iterator<Item = Request> {
    let mut random = Stream::new(seed, "test workload");
    (0..count).map(move |id| request(id, operation, random.below(span), 1))
}
