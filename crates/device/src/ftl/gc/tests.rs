//! Collection under a victim policy that gains as little as it can.

use std::ops::ControlFlow;

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Lba, Leaf, Operation, Request, RequestId, Stream, Submit, Time};

use super::victim::{Candidates, Victim};
use crate::{DeviceConfig, MapCacheSize, Ssd};

/// The block with the most valid pages.
#[derive(Clone)]
struct Fullest;

impl Victim for Fullest {
    fn pick(&mut self, candidates: Candidates<'_>) -> Option<usize> {
        candidates.least(
            |index| {
                if candidates.is_candidate(index) { u32::MAX - candidates.valid[index] } else { u32::MAX }
            },
            u32::MAX,
        )
    }
}

/// Two chips of 48 blocks each that have been written at random.
fn device(map_cache: MapCacheSize) -> Ssd {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 1;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 48;
    config.geometry.pages_per_block = 8;
    config.logical_capacity = Bytes(8 << 20);
    config.map_cache = map_cache;
    config.buffer.size = Bytes(256 << 10);
    config.gc.victim = serde_json::from_value("fifo".into()).expect("a victim policy");
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.gc.concurrent_victims = 3;
    let mut ssd = Ssd::new(&config.validate().expect("a valid device"), 1);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    ssd.partitions[0].ftl.gc.victim = Box::new(Fullest);
    ssd
}

/// Serves so many random writes of a page, eight at a time, and comes to rest.
fn saturate(ssd: &mut Ssd, writes: u64) {
    let mut random = Stream::new(3, "test workload");
    let (mut now, mut submitted, mut completed, mut done) = (Time::ZERO, 0, 0, Vec::new());
    while completed < writes || ssd.next_event().time().is_some() {
        while submitted < writes.min(completed + 8) {
            let lba = Lba(random.below(ssd.sectors() / 8) * 8);
            let write = Request::new(RequestId(submitted), Operation::Write, lba, 8);
            assert_eq!(ssd.submit(now, &write, &mut Arena::new()), Submit::Accepted);
            submitted += 1;
        }
        now = ssd.next_event().time().expect("a device with requests inside has something to do");
        ssd.advance(now, &mut Arena::new(), &mut done);
        completed += done.drain(..).count() as u64;
    }
}

#[test]
fn greedy_takes_over_only_after_a_round_that_gained_nothing() {
    for map_cache in [MapCacheSize::All, MapCacheSize::Size(Bytes(4096))] {
        let mut ssd = device(map_cache);
        saturate(&mut ssd, 400);
        ssd.check();
        let report = ssd.report();
        let round = u64::from(ssd.partitions[0].ftl.blocks.len());
        assert!(report.counters.victims_by_greedy > 0, "{report:?}");
        assert!(report.counters.victims > round * report.counters.victims_by_greedy / 8, "{report:?}");
    }
}
