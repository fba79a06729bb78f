//! Measures the speed and memory bars and writes `target/bench.json`, which also says how
//! this was compiled.
//!
//! The device is `autossd` with its map in memory, preconditioned at random,
//! under the debit scheduler. Beside each speed stands the ratio to what the
//! machine's memory allows: independent random accesses over a table as large
//! as the map, as many per request as the model cannot avoid. Absolute speeds
//! move with the machine; the ratio moves less. Each is measured three times: who
//! shares the machine only ever slows it down, so that the fastest counts, and the
//! slowest is shown beside it.
//!
//! Writes are measured at a rate that the device sustains with garbage
//! collection running, and again saturated, where every request also waits for
//! the buffer; reads with as many outstanding as the chips have slots.
//!
//! What stripes with parity, and collection in turn, cost is measured on
//! ttFlash's device, a sixteenth of its size, beside the same device without:
//! the same random writes, at a rate that both sustain.
//!
//! Requests of several sizes are those of the demonstration, on its device.
//!
//! What tiers cost is measured on a small device with memory and an NVM in front, under policy
//! I (`oc`) and III (`nlcwip`): 90 % reads, half of what they ask for is found in one of the two.
//!
//! With `valgrind` installed, instructions per request are counted too, on a
//! small device: `instructions write N` (or `read N`, N requests) is how this
//! program is called for that. Beside them stands what a stack adds, as a ratio:
//! `stacked_write` is under a stack without policies, `fair_write` under the
//! scheduler `fair` on one device, `pair_write` over two devices end to end, and
//! `tiered_write` below memory and an NVM, `shared_write` below a coordinator of windows; `oc_mix` and `nlcwip_mix` are what tiers cost
//! once they are full, with the same mix as their speed, `prediction` what one prediction costs,
//! and `learning_prediction` what it costs with learning from what became of the request.
//! Figures that lie more than 3 % above those of `bench/record.json` are shown;
//! `record` counts instructions alone and writes that file.
//! `reading` measures only how fast traces are read, `tiers` only tiers.

mod instructions;
mod mixed;
mod prediction;
mod reading;
mod tiers;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use flashkeel_device::{DeviceConfig, MapCacheSize, Ssd, WindowConfig};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{BUILD, Stream};
use flashkeel_host::device::Device;
use flashkeel_host::{Measured as _, Tenant, drive};
use flashkeel_stats::{MeasureConfig, Recorder, Summary};
use flashkeel_workload::WorkloadConfig;
use serde_json::{Map, Value, json};

/// Rate of the open loop: four fifths of what the device takes at most.
const WRITE_IOPS: u64 = 30_000;
/// Requests in flight in the closed loops: as many as the chips have slots.
const DEPTH: u32 = 64;
const WRITES: u64 = 4_000_000;
const READS: u64 = 6_000_000;
/// The same for ttFlash's device, which programs every page with its parity.
const STRIPED_IOPS: u64 = 10_000;
const STRIPED_WRITES: u64 = 1_000_000;
/// Measurements of each speed.
const TIMES: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["instructions", operation, requests] => {
            instructions::take(operation, requests.parse().expect("a number of requests"));
        }
        ["record"] => instructions::renew_record(),
        ["reading"] => {
            for (name, per_s) in reading::per_s() {
                println!("{name:>28} {:8.2} M/s", per_s / 1e6);
            }
        }
        ["tiers"] => drop(tiers::speeds_of_tiers()),
        _ => everything(),
    }
}

/// Measures all there is, and writes it down.
fn everything() {
    println!("{:>28} {BUILD}", "build");
    let mut figures = Map::new();
    figures.insert("build".into(), json!({ "value": BUILD, "unit": "", "limit_ratio": null }));
    let config = DeviceConfig { map_cache: MapCacheSize::All, ..DeviceConfig::default() };
    let layout = config.validate().expect("the default device is valid");

    let precondition = || {
        let mut ssd = Ssd::new(&layout, 1);
        let start = Instant::now();
        let steady = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        let steady = steady.continue_value().flatten().expect("written at random");
        (steady.host_pages as f64 / start.elapsed().as_secs_f64(), steady.write_amplification, ssd)
    };
    let preconditioning = speeds(|| precondition().0);
    let (_, waf, ssd) = precondition();
    let mut image = Vec::new();
    ssd.save(&mut image).expect("memory takes what is written");
    let restored = || {
        let mut ssd = Ssd::new(&layout, 1);
        ssd.restore(&mut image.as_slice()).expect("the image was just made");
        ssd
    };

    let accesses_per_s = random_accesses_per_s((ssd.sectors() / 8) as usize);
    let mut speed = |name: &str, Speeds { fastest, slowest }: Speeds, accesses_each: f64| {
        let limit = accesses_per_s / accesses_each;
        println!(
            "{name:>28} {:8.2} M/s   {:.2} of the memory limit, {:.1} M/s   slowest {:.2} M/s",
            fastest / 1e6,
            fastest / limit,
            limit / 1e6,
            slowest / 1e6
        );
        let unit = if name.contains("pages") { "pages/s" } else { "requests/s" };
        let figure =
            json!({ "value": fastest, "slowest": slowest, "unit": unit, "limit_ratio": fastest / limit });
        figures.insert(name.into(), figure);
    };
    // Each page written or moved has its map entry changed once.
    speed("precondition_pages_per_s", preconditioning, waf);
    // A write changes its map entry when it is buffered and when it is
    // programmed; each page moved, when it is programmed.
    let mut measure = |name: &str, workload: WorkloadConfig, accesses_each: f64| {
        speed(name, speeds(|| run(&mut restored(), &workload)), accesses_each);
    };
    measure("random_write_requests_per_s", sustained_writes(WRITE_IOPS, WRITES), 1.0 + waf);
    measure("saturated_random_write_requests_per_s", saturated(0.0, WRITES), 1.0 + waf);
    measure("random_read_requests_per_s", saturated(1.0, READS), 1.0);

    let [plain, striped] = [false, true].map(|stripes| {
        let layout = ttflash(stripes).validate().expect("ttFlash's device is valid");
        let mut ssd = Ssd::new(&layout, 1);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        speeds(|| run(&mut ssd.clone(), &sustained_writes(STRIPED_IOPS, STRIPED_WRITES))).fastest
    });
    for (name, per_s) in [("plain_write_requests_per_s", plain), ("striped_write_requests_per_s", striped)] {
        println!("{name:>28} {:8.2} M/s   {:.2} of plain", per_s / 1e6, per_s / plain);
        figures.insert(
            name.into(),
            json!({ "value": per_s, "unit": "requests/s", "limit_ratio": per_s / plain }),
        );
    }

    figures.extend(tiers::speeds_of_tiers());

    let mixed = speeds(|| mixed::pages_per_s(&mut mixed::demonstration())).fastest;
    println!("{:>28} {:8.2} M/s", "mixed_pages_per_s", mixed / 1e6);
    figures.insert(
        "mixed_pages_per_s".into(),
        json!({ "value": mixed, "unit": "pages/s", "limit_ratio": null }),
    );

    for (name, per_s) in reading::per_s() {
        println!("{name:>28} {:8.2} M/s", per_s / 1e6);
        figures.insert(name.into(), json!({ "value": per_s, "unit": "requests/s", "limit_ratio": null }));
    }
    let bytes = ssd.bytes_per_page();
    println!("{:>28} {bytes:8.2} bytes", "bytes_per_page");
    for (name, value) in prediction::times_ns() {
        println!("{name:>28} {value:8.1} ns");
        figures.insert(name.into(), json!({ "value": value, "unit": "ns", "limit_ratio": null }));
    }
    figures.insert("bytes_per_page".into(), json!({ "value": bytes, "unit": "bytes", "limit_ratio": null }));
    let counted = instructions::count();
    instructions::compare_with_record(&counted);
    figures.extend(counted);
    let path = "target/bench.json";
    std::fs::create_dir_all("target").expect("target can be made");
    let text = serde_json::to_string_pretty(&Value::Object(figures)).expect("plain data");
    std::fs::write(path, text + "\n").expect("target can be written");
    println!("written to {path}");
}

/// ttFlash's device with fewer blocks: with logical stripes and collection by
/// copyback in turn, or with neither.
fn ttflash(stripes: bool) -> DeviceConfig {
    let device = json!({
        "geometry": {
            "channels": 8, "chips_per_channel": 8, "planes_per_chip": 1, "blocks_per_plane": 256,
            "pages_per_block": 256, "page_size": "4KiB",
        },
        "timing": { "read": ["40us"], "program": ["800us"], "erase": "2ms", "channel_rate": "40960KB/s" },
        "logical_capacity": "12GiB",
        "map_cache": "all",
        "allocation": "striped",
        "scheduler": "fifo",
        "buffer": { "size": "4MiB", "rewrite": "coalesce", "flush": ["watermark"] },
        "redundancy": if stripes { "logical" } else { "none" },
        "read_path": if stripes { "gc-tolerant" } else { "plain" },
        "gc": {
            "start_below": 656, "stop_above": 820, "force_below": 328, "victim": "greedy",
            "concurrent_victims": 1,
            "movement": if stripes { "plane-blocking" } else { "queued" },
            "rotation": if stripes { "plane-group" } else { "none" },
        },
        "precondition": { "fill": 0.66 },
    });
    serde_json::from_value(device).expect("ttFlash's device")
}

/// A closed loop that keeps the device saturated.
fn saturated(read_fraction: f64, requests: u64) -> WorkloadConfig {
    let workload = json!({
        "source": { "policy": "synthetic", "read_fraction": read_fraction },
        "pacing": { "policy": "closed", "depth": DEPTH },
        "requests": requests,
    });
    serde_json::from_value(workload).expect("a valid workload")
}

/// An open loop of writes at a rate that the device sustains.
fn sustained_writes(iops: u64, requests: u64) -> WorkloadConfig {
    let workload = json!({
        "source": {
            "policy": "synthetic",
            "read_fraction": 0.0,
            "arrivals": { "policy": "constant", "iops": iops },
        },
        "requests": requests,
    });
    serde_json::from_value(workload).expect("a valid workload")
}

/// Of several measurements, per second.
struct Speeds {
    fastest: f64,
    slowest: f64,
}

fn speeds(mut per_s: impl FnMut() -> f64) -> Speeds {
    let each: Vec<f64> = (0..TIMES).map(|_| per_s()).collect();
    Speeds {
        fastest: each.iter().copied().fold(0.0, f64::max),
        slowest: each.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

/// Runs a workload; returns requests per second.
fn run(device: &mut dyn Device, workload: &WorkloadConfig) -> f64 {
    let (summary, seconds) = measure(device, workload);
    summary.requests as f64 / seconds
}

/// Runs a workload; returns what was measured, and the seconds that it took.
fn measure(device: &mut dyn Device, workload: &WorkloadConfig) -> (Summary, f64) {
    let mut source = workload.open(device.limits().sectors, 1).expect("a valid workload");
    let names = device.gauge_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&MeasureConfig::default(), workload.warm_up, &names);
    let start = Instant::now();
    let tenant = Tenant { source: source.as_mut(), workload, recorder: None };
    let go_on = &mut |_| ControlFlow::Continue(());
    let measured = drive(device, None, vec![tenant], recorder, go_on);
    let seconds = start.elapsed().as_secs_f64();
    (measured.expect("a valid workload").0.summary, seconds)
}

/// Independent random read-modify-writes over a table of `len` words.
fn random_accesses_per_s(len: usize) -> f64 {
    let mut table = flashkeel_device::table::<u32>(len);
    let mut random = Stream::new(1, "memory limit");
    let count = 50_000_000u64;
    let start = Instant::now();
    for _ in 0..count {
        let at = random.below(len as u64) as usize;
        table[at] = table[at].wrapping_add(1);
    }
    black_box(&table);
    count as f64 / start.elapsed().as_secs_f64()
}

/// A small device in its steady state.
fn small() -> (DeviceConfig, Ssd) {
    small_with(WindowConfig::default())
}

fn small_with(window: WindowConfig) -> (DeviceConfig, Ssd) {
    let mut config = DeviceConfig { map_cache: MapCacheSize::All, window, ..DeviceConfig::default() };
    config.geometry.blocks_per_plane = 16;
    config.geometry.pages_per_block = 64;
    config.logical_capacity = Bytes(380 << 20);
    config.gc.start_below = 40;
    config.gc.stop_above = 60;
    let layout = config.validate().expect("the small device is valid");
    let mut ssd = Ssd::new(&layout, 1);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    (config, ssd)
}
