//! What tiers cost: memory and an NVM before a small device.

use std::hint::black_box;

use flashkeel_config::{Node, Origin};
use flashkeel_device::DeviceConfig;
use flashkeel_engine::{Time, units::Bytes};
use flashkeel_host::device::{Device, DeviceKind, Maker};
use flashkeel_host::reports;
use serde_json::{Map, Value, json};

use super::{Speeds, run, saturated, small, speeds};

/// Through memory, NVM and SSD.
const TIERED: u64 = 1_000_000;
/// Policies that are measured so.
pub const PRESETS: [&str; 2] = ["oc", "nlcwip"];
/// Share of reads among them.
const MIX: f64 = 0.9;
/// Requests that fill memory and NVM.
const FILLING: u64 = 200_000;

/// It below memory and an NVM, which together hold half of it.
pub fn behind(preset: &str) -> Box<dyn Device> {
    let (config, ssd) = small();
    let part = |share: f64| json!(Bytes((config.logical_capacity.0 as f64 * share) as u64 / 4096 * 4096));
    let lower = json!({ "upper": { "nvm": { "capacity": part(0.41) } }, "lower": { "ssd": config.clone() } });
    let upper = json!({ "dram": { "capacity": part(0.17) } });
    let tier = json!({ "preset": preset, "upper": upper, "lower": { "tier": lower } });
    let mut node = Node::from_json(json!({ "tier": tier }), &Origin::Default);
    DeviceKind::expand(&mut node, "device", None).expect("a tier");
    let kind: DeviceKind = node.read().expect("a tier");
    let mut take = |_: &DeviceConfig, _| Ok(ssd.clone());
    kind.build(&mut Maker::new(1, &mut take)).expect("a tier")
}

/// Requests through memory, NVM and SSD, and how many of the pages read the first two have.
pub fn speeds_of_tiers() -> Map<String, Value> {
    let mut figures = Map::new();
    let workload = saturated(MIX, TIERED);
    for preset in PRESETS {
        let mut device = behind(preset);
        // Fills what is in front.
        run(&mut *device, &workload);
        device.reset_counters(Time::ZERO);
        let Speeds { fastest, slowest } = speeds(|| run(&mut *dyn_clone::clone_box(&*device), &workload));
        run(&mut *device, &workload);
        let report = reports(&*device);
        let count = |tier: &str, key: &str| report["tiers"][tier][key].as_f64().expect("a number");
        let all = count("1", "pages_read_from_nvm") + count("1", "pages_read_from_ssd");
        let hits = 1.0 - count("0", "pages_read_from_ssd") / all;
        let bytes = count("0", "table_bytes") / count("0", "upper_pages");
        let name = format!("{preset}_tier_requests_per_s");
        let per_us = fastest / 1e6;
        println!("{name:>28} {per_us:8.2} M/s   hit ratio {hits:.2}, {bytes:.2} bytes a page of NVM");
        figures.insert(
            name,
            json!({ "value": fastest, "slowest": slowest, "unit": "requests/s", "limit_ratio": null, "hit_ratio": hits }),
        );
    }
    figures
}

/// Runs so many requests once memory and NVM are full.
pub fn mix(preset: &str, requests: u64) {
    let mut device = behind(preset);
    run(&mut *device, &saturated(MIX, FILLING));
    black_box(run(&mut *device, &saturated(MIX, requests)));
}
