//! Stages on their own: over leaves whose order of service the test decides.

mod agreeing;
mod barriers;
mod blocks;
mod coordinator;
mod drive;
mod hints;
mod holds;
mod mirror;
mod mirror_windows;
mod network;
mod oracle;
mod passing;
mod schedulers;
mod states;
mod striped;
mod tier;
mod tier_full;
mod timers;
mod windowed;

use flashkeel_engine::{Lba, Operation, Request, RequestId, TenantId};
use serde_json::{Value, json};

/// An SSD of 4 MiB, as a document has it.
fn small_ssd() -> Value {
    json!({ "ssd": {
        "geometry": {
            "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1,
            "blocks_per_plane": 24, "pages_per_block": 8,
        },
        "logical_capacity": "4MiB", "map_cache": "all",
        "gc": { "start_below": 8, "stop_above": 12, "concurrent_victims": 4 },
        "buffer": { "size": "256KiB" },
    } })
}

fn request(id: u64, tenant: u16, operation: Operation, page: u64, pages: u32) -> Request {
    let lba = Lba(page * 8);
    Request { tenant: TenantId(tenant), ..Request::new(RequestId(id), operation, lba, pages * 8) }
}
