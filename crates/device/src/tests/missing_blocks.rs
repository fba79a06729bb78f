//! What collection tells the scheduler: how many free blocks are missing, of all chips,
//! whatever pages are divided among.

use std::ops::ControlFlow;

use flashkeel_engine::{Arena, Lba, Leaf, Operation, Request, RequestId, Stream, Submit, Time};
use serde_json::json;

use crate::sched::Task;
use crate::{DeviceConfig, Ssd};

const START_BELOW: u32 = 40;

#[test]
fn every_missing_block_is_an_error_however_pages_are_divided() {
    for (allocation, redundancy) in [
        ("dynamic", json!("none")),
        ("striped", json!("none")),
        ("dynamic", json!({ "policy": "physical", "pages": 4 })),
    ] {
        let config: DeviceConfig = serde_json::from_value(json!({
            "geometry": {
                "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1, "blocks_per_plane": 200,
                "pages_per_block": 16, "page_size": "4KiB",
            },
            "logical_capacity": "28MiB",
            "map_cache": "all",
            "buffer": { "size": "256KiB" },
            "gc": { "start_below": START_BELOW, "stop_above": 48 },
            "allocation": allocation,
            "redundancy": &redundancy,
            "scheduler": { "policy": "debit", "gc_static": 0.0 },
        }))
        .expect("a device");
        let mut ssd = Ssd::new(&config.validate().expect("a device that has room"), 1);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        let (mut bytes, mut random) = (Arena::new(), Stream::new(1, "test workload"));
        let mut most = 0;
        for number in 0..3_000 {
            let now = Time(number * 500_000);
            ssd.advance(now, &mut bytes, &mut Vec::new());
            let page = random.below(ssd.sectors() / 8 - 4);
            let write = Request::new(RequestId(number), Operation::Write, Lba(page * 8), 32);
            assert_eq!(ssd.submit(now, &write, &mut bytes), Submit::Accepted);
            let ftl = &ssd.partitions[0].ftl;
            let missing = START_BELOW.saturating_sub(ftl.tables.free_blocks());
            let error = ftl.signals().error[Task::Gc as usize];
            assert!(
                (missing..=START_BELOW).contains(&error),
                "{allocation}, {redundancy}: {missing} blocks are missing, and the error is {error}"
            );
            most = most.max(missing);
        }
        assert!(most > START_BELOW / 2, "{allocation}, {redundancy}: at most {most} blocks were missing");
    }
}
