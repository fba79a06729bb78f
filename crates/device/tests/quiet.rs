//! What a deterministic window keeps out of the flash beside collection.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Fault, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Leaf, Operation, Submit, Time};
use serde_json::json;
use support::{policy, ready, request, tiny};

const MS: u64 = 1_000_000;

fn advance(ssd: &mut Ssd, ms: u64) {
    ssd.advance(Time(ms * MS), &mut Arena::new(), &mut Vec::new());
}

/// In a deterministic window for the first 500 ms.
fn in_window(mut config: DeviceConfig) -> Ssd {
    config.window =
        policy(json!({ "policy": "periodic", "deterministic": "500ms", "non_deterministic": "500ms" }));
    ready(&config, 1)
}

#[test]
fn what_was_programmed_fast_is_folded_after_the_window() {
    // By silence, and because the cache is too full.
    for start_above in [1.0, 0.1] {
        let mut config = tiny();
        config.slc_cache = policy(json!({
            "policy": "fold", "size": "1MiB", "start_above": start_above, "stop_below": 0.0,
        }));
        let mut ssd = in_window(config);
        let before = ssd.counters().operations(Activity::Fold.program());
        for id in 0..32 {
            advance(&mut ssd, id);
            let write = request(id, Operation::Write, 4 * id, 4);
            assert_eq!(ssd.submit(Time(id * MS), &write, &mut Arena::new()), Submit::Accepted);
        }
        let folds = |ssd: &Ssd| ssd.counters().operations(Activity::Fold.program()) - before;
        advance(&mut ssd, 499);
        assert_eq!(folds(&ssd), 0, "start_above = {start_above}");
        advance(&mut ssd, 900);
        assert_eq!(folds(&ssd), 32, "start_above = {start_above}");
        ssd.check();
    }
}

#[test]
fn what_was_lost_is_restored_after_the_window() {
    let mut config = tiny();
    config.geometry.channels = 4;
    config.geometry.blocks_per_plane = 28;
    config.geometry.page_size = Bytes(8192);
    config.logical_capacity = Bytes(2 << 20);
    config.allocation = policy("striped");
    config.redundancy = policy("logical");
    config.buffer.rewrite = policy("coalesce");
    config.buffer.flush = vec![policy("watermark")];
    let mut ssd = in_window(config);
    advance(&mut ssd, 1);
    ssd.fail(Time(MS), Fault::Chip(1)).expect("the chip exists");
    let lost = ssd.lost_pages();
    advance(&mut ssd, 499);
    assert_eq!((ssd.counters().restored_pages, ssd.counters().operations(Activity::Restore.read())), (0, 0));
    advance(&mut ssd, 999);
    assert!(lost > 0 && ssd.counters().restored_pages > 0, "{lost} pages lost");
    ssd.check();
}
