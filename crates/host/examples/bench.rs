//! The speed and memory bars, written to `target/bench.json`.

use std::ops::ControlFlow;
use std::time::Instant;

use flashkeel_device::{DeviceConfig, MapCacheSize, Ssd};
use flashkeel_host::drive;
use flashkeel_stats::{MeasureConfig, Recorder};
use flashkeel_workload::WorkloadConfig;

fn workload(read_fraction: f64, depth: u32, requests: u64) -> WorkloadConfig {
    serde_json::from_value(serde_json::json!({
        "source": { "policy": "synthetic", "read_fraction": read_fraction },
        "pacing": { "policy": "closed", "depth": depth },
        "requests": requests,
    }))
    .expect("a valid workload")
}

fn run(ssd: &mut Ssd, workload: &WorkloadConfig) -> f64 {
    let mut source = workload.open(ssd.sectors(), 1).expect("a valid workload");
    let names = Ssd::gauge_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&MeasureConfig::default(), workload.warm_up, &names);
    let start = Instant::now();
    let m = drive(ssd, source.as_mut(), workload, recorder, &mut |_| ControlFlow::Continue(())).expect("runs");
    let s = start.elapsed().as_secs_f64();
    eprintln!("{:?}", m.summary.simulated_s); for (c, ns) in m.summary.blame_ns.iter() { if ns > 0 { eprintln!("  {} {:.1} us", c.label(), ns as f64 / m.summary.requests as f64 / 1e3); } } let mut g=vec![]; ssd.gauges(&mut g); eprintln!("{:?}", g);
    m.summary.requests as f64 / s
}

fn main() {
    let mut config = DeviceConfig::default();
    config.map_cache = MapCacheSize::All;
    let layout = config.validate().expect("the default device is valid");
    let mut ssd = Ssd::new(&layout, 1);
    let start = Instant::now();
    let mut pages = 0.0;
    let waf = ssd.precondition(&mut |f| pages = f);
    println!("precondition {:?} s waf {:?}", start.elapsed().as_secs_f64(), waf);
    let mut image = Vec::new();
    ssd.save(&mut image).expect("memory");
    println!("writes/s {}", run(&mut ssd, &workload(0.0, 256, 3_000_000)));
    println!("{:?}", ssd.report());
    let start = Instant::now();
    let mut ssd = Ssd::new(&layout, 1);
    ssd.restore(&mut image.as_slice()).expect("good");
    println!("restored {}", start.elapsed().as_secs_f64());
    println!("reads/s {}", run(&mut ssd, &workload(1.0, 256, 5_000_000)));
    println!("bytes per page {}", ssd.bytes_per_page());
}
