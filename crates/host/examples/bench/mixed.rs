//! Requests of several sizes: those of the demonstration.

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_workload::WorkloadConfig;
use serde_json::json;

use super::measure;

const REQUESTS: u64 = 600_000;

/// The device of the demonstration in its steady state.
pub fn demonstration() -> Ssd {
    let device = json!({
        "geometry": { "blocks_per_plane": 128 },
        "logical_capacity": "25GiB",
    });
    let config: DeviceConfig = serde_json::from_value(device).expect("the demonstration's device");
    let mut ssd = Ssd::new(&config.validate().expect("the demonstration's device is valid"), 1);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    ssd
}

/// Pages of 4 KiB in a second of the demonstration's workload.
pub fn pages_per_s(ssd: &mut Ssd) -> f64 {
    let workload = json!({
        "source": {
            "policy": "synthetic",
            "read_fraction": 0.7,
            "block_sizes": ["4KiB/60", "16KiB/30", "64KiB/10"],
            "pattern": { "policy": "zipf" },
            "arrivals": { "policy": "bursts", "iops": 30000, "on": "1s", "off": "1s" },
        },
        "requests": REQUESTS,
    });
    let workload: WorkloadConfig = serde_json::from_value(workload).expect("a valid workload");
    let (summary, seconds) = measure(ssd, &workload);
    (summary.read.bytes + summary.write.bytes) as f64 / 4096.0 / seconds
}
