//! Measures the speed and memory bars and writes `target/bench.json`.
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
//! What tiers cost is measured on a small device with memory and an NVM in front, under policy
//! I (`oc`) and III (`nlcwip`): 90 % reads, half of what they ask for is found in one of the two.
//!
//! With `valgrind` installed, instructions per request are counted too, on a
//! small device: `instructions write N` (or `read N`, N requests) is how this
//! program is called for that. Beside them stands what a stack adds, as a ratio:
//! `stacked_write` is under a stack without policies, `fair_write` under the
//! scheduler `fair` on one device, `pair_write` over two devices end to end, and
//! `tiered_write` below memory and an NVM, `shared_write` below a coordinator of windows; `oc_mix` and `nlcwip_mix` are what tiers cost
//! once they are full, with the same mix as their speed.
//! Figures that lie more than 3 % above those of `bench/record.json` are shown;
//! `record` counts instructions alone and writes that file.
//! `reading` measures only how fast traces are read, `tiers` only tiers.

mod tiers;

use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::Instant;

use flashkeel_device::{DeviceConfig, MapCacheSize, Ssd, WindowConfig};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Status, Stream, Time,
};
use flashkeel_host::device::{Device, DeviceKind, Maker};
use flashkeel_host::stack::StackConfig;
use flashkeel_host::{Measured as _, Tenant, drive};
use flashkeel_ssdcheck::{DeviceModel, Engine};
use flashkeel_stats::{MeasureConfig, Recorder};
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
/// Length of the traces that are read.
const TRACE_REQUESTS: u64 = 3_000_000;
/// Measurements of each speed.
const TIMES: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, operation, requests] = &arguments[..]
        && mode == "instructions"
    {
        return count_instructions(operation, requests.parse().expect("a number of requests"));
    }
    if let [_, mode] = &arguments[..]
        && mode == "record"
    {
        return renew_record();
    }
    if let [_, mode] = &arguments[..]
        && mode == "reading"
    {
        return reading_per_s()
            .iter()
            .for_each(|(name, per_s)| println!("{name:>28} {:8.2} M/s", per_s / 1e6));
    }
    if let [_, mode] = &arguments[..]
        && mode == "tiers"
    {
        return drop(tiers::speeds_of_tiers());
    }
    let mut figures = Map::new();
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

    for (name, per_s) in reading_per_s() {
        println!("{name:>28} {:8.2} M/s", per_s / 1e6);
        figures.insert(name.into(), json!({ "value": per_s, "unit": "requests/s", "limit_ratio": null }));
    }
    let bytes = ssd.bytes_per_page();
    println!("{:>28} {bytes:8.2} bytes", "bytes_per_page");
    for (name, value) in prediction_ns() {
        println!("{name:>28} {value:8.1} ns");
        figures.insert(name.into(), json!({ "value": value, "unit": "ns", "limit_ratio": null }));
    }
    figures.insert("bytes_per_page".into(), json!({ "value": bytes, "unit": "bytes", "limit_ratio": null }));
    let counted = instructions();
    compare_with_record(&counted);
    figures.extend(counted);
    let path = "target/bench.json";
    std::fs::create_dir_all("target").expect("target can be made");
    let text = serde_json::to_string_pretty(&Value::Object(figures)).expect("plain data");
    std::fs::write(path, text + "\n").expect("target can be written");
    println!("written to {path}");
}

/// Requests read in a second from a trace of binary records, and from one of
/// lines: vSCSI and MSR's CSV, from a file in memory to arrivals, aligned and
/// placed. Each is read as often as a speed is measured.
fn reading_per_s() -> [(&'static str, f64); 2] {
    std::fs::create_dir_all("target").expect("target can be made");
    let (mut records, mut lines) = (Vec::new(), String::new());
    for number in 0..TRACE_REQUESTS {
        let (time_us, sector) = (number * 97, number * 7919 % (1 << 27) * 8);
        for word in [number as u32, 4096, 1, 0x0100_0000 | if number % 3 == 0 { 0x2a } else { 0x28 }] {
            records.extend(word.to_le_bytes());
        }
        records.extend(sector.to_le_bytes());
        records.extend(time_us.to_le_bytes());
        let operation = if number % 3 == 0 { "Write" } else { "Read" };
        let (time, offset) = (128_166_372_003_061_629 + time_us * 10, sector * 512);
        writeln!(lines, "{time},hm,1,{operation},{offset},4096,{}", 100 + number % 4000).expect("text grows");
    }
    [
        ("binary_trace_requests_per_s", "target/bench.vscsi", &records[..]),
        ("text_trace_requests_per_s", "target/bench.csv", lines.as_bytes()),
    ]
    .map(|(name, path, contents)| {
        std::fs::write(path, contents).expect("target can be written");
        let source = json!({ "policy": "trace", "path": path, "devices": "merge" });
        let workload: WorkloadConfig =
            serde_json::from_value(json!({ "source": source })).expect("a valid workload");
        let per_s = speeds(|| {
            let start = Instant::now();
            let mut source = workload.open(1 << 40, 1).expect("a valid trace");
            let (mut batch, mut requests) = (Vec::new(), 0);
            loop {
                source.fill(&mut batch, 4096).expect("a valid trace");
                if black_box(&batch).is_empty() {
                    break;
                }
                requests += batch.len() as u64;
            }
            assert_eq!(requests, TRACE_REQUESTS);
            requests as f64 / start.elapsed().as_secs_f64()
        });
        std::fs::remove_file(path).expect("it was just written");
        (name, per_s.fastest)
    })
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
    let mut source = workload.open(device.limits().sectors, 1).expect("a valid workload");
    let names = device.gauge_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&MeasureConfig::default(), workload.warm_up, &names);
    let start = Instant::now();
    let tenant = Tenant { source: source.as_mut(), workload, recorder: None };
    let go_on = &mut |_| ControlFlow::Continue(());
    let measured = drive(device, None, vec![tenant], recorder, go_on);
    let seconds = start.elapsed().as_secs_f64();
    measured.expect("a valid workload").0.summary.requests as f64 / seconds
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

/// What valgrind runs: `requests` on a small device in its steady state.
fn count_instructions(operation: &str, requests: u64) {
    let read_fraction = if operation.ends_with("read") { 1.0 } else { 0.0 };
    let (config, mut ssd) = small();
    let workload = saturated(read_fraction, requests);
    let Some((kind, _)) = operation.split_once('_') else {
        black_box(run(&mut ssd, &workload));
        return;
    };
    if kind == "tiered" {
        black_box(run(&mut *tiers::behind("oc"), &workload));
        return;
    }
    if let Some(preset) = operation.strip_suffix("_mix") {
        return tiers::mix(preset, requests);
    }
    if kind == "shared" {
        let window = serde_json::from_value(json!("commanded")).expect("a window");
        let (config, ssd) = small_with(window);
        let share = json!({ "count": 4000, "window": "20ms", "rest": "6ms" });
        let shared = json!({ "coordinator": { "device": { "ssd": config }, "share": share } });
        let shared: DeviceKind = serde_json::from_value(shared).expect("a coordinator");
        let mut take = |_: &DeviceConfig, _| Ok(ssd.clone());
        let mut device = shared.build(&mut Maker::new(1, &mut take)).expect("a coordinator");
        black_box(run(&mut *device, &workload));
        return;
    }
    // A depth that leaves nothing waiting.
    let devices = if kind == "pair" { 2 } else { 1 };
    let scheduler = if kind == "fair" { "fair" } else { "none" };
    let mut stack: StackConfig =
        serde_json::from_value(json!({ "scheduler": scheduler, "depth": DEPTH })).expect("a stack");
    stack.devices = vec![DeviceKind::Ssd(Box::new(config)); devices];
    let mut take = |_: &DeviceConfig, _| Ok(ssd.clone());
    let mut stack = stack.assemble(1, &mut Maker::new(1, &mut take)).expect("a stack");
    black_box(run(&mut *stack, &workload));
}

/// Instructions per request, plain and under stacks, by name; printed on the way.
/// Empty without valgrind.
fn instructions() -> Map<String, Value> {
    let mut figures = Map::new();
    for operation in ["write", "read"] {
        let mut plain = None;
        for stack in ["", "stacked_", "fair_", "pair_", "tiered_", "shared_"] {
            let Some(each) = instructions_per_request(&format!("{stack}{operation}")) else { continue };
            let ratio = each / *plain.get_or_insert(each);
            let name = format!("instructions_per_{stack}random_{operation}");
            println!("{name:>40} {each:8.0}   {ratio:.2} of plain");
            let figure = json!({ "value": each, "unit": "instructions", "plain_ratio": ratio });
            figures.insert(name, figure);
        }
    }
    for preset in tiers::PRESETS {
        let Some(each) = instructions_per_request(&format!("{preset}_mix")) else { continue };
        let name = format!("instructions_per_{preset}_tier_request");
        println!("{name:>40} {each:8.0}");
        figures.insert(name, json!({ "value": each, "unit": "instructions", "plain_ratio": null }));
    }
    figures
}

/// Where the figures are kept that others are compared with.
const RECORD: &str = "bench/record.json";
/// By how much one may lie above its record without being shown.
const TOLERANCE: f64 = 0.03;

/// Shows which of `figures` have risen above their record.
fn compare_with_record(figures: &Map<String, Value>) {
    let text = std::fs::read_to_string(RECORD).unwrap_or_else(|error| panic!("{RECORD}: {error}"));
    let record: Map<String, Value> = serde_json::from_str(&text).expect("a record is an object");
    for (name, figure) in figures {
        let (Some(now), Some(then)) = (figure["value"].as_f64(), record.get(name).and_then(Value::as_f64))
        else {
            println!("{name:>40} is not in {RECORD}");
            continue;
        };
        if now > then * (1.0 + TOLERANCE) {
            let rise = (now / then - 1.0) * 100.0;
            println!("{name:>40} has risen by {rise:.1} %, from {then:.0} to {now:.0}");
        }
    }
}

/// Makes what is counted now the record.
fn renew_record() {
    let figures = instructions();
    assert!(!figures.is_empty(), "instructions are counted by valgrind, which is not there");
    let rounded = |figure: &Value| figure["value"].as_f64().map(|value| json!(value.round() as u64));
    let record: Map<String, Value> =
        figures.iter().filter_map(|(name, figure)| Some((name.clone(), rounded(figure)?))).collect();
    let text = serde_json::to_string_pretty(&Value::Object(record)).expect("plain data");
    std::fs::write(RECORD, text + "\n").unwrap_or_else(|error| panic!("{RECORD}: {error}"));
    println!("written to {RECORD}");
}

/// Instructions of one request: the difference between two runs of different
/// length, so that set-up cancels out. `None` without valgrind.
fn instructions_per_request(operation: &str) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let count = |requests: u64| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(["instructions", operation, &requests.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("Collected"))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let (few, many) = (20_000, 60_000);
    Some((count(many)? - count(few)?) / (many - few) as f64)
}

/// Time of one prediction for a drive with four internal volumes, and of telling
/// the predictor of a request and its completion.
fn prediction_ns() -> [(&'static str, f64); 2] {
    const REQUESTS: u64 = 2_000_000;
    let model = json!({
        "sectors": 1 << 23, "volume_bits": [17, 18], "gc_volume_bits": [17, 18],
        "write_buffer": { "bytes": 131_072, "type": "back", "flush": ["full"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 8_000, "flush": 1_000_000, "collection": 9_000_000 },
        "sleep": { "after_ns": 20_000_000, "wake_ns": 1_000_000 }, "undetermined": [],
    });
    let model: DeviceModel = serde_json::from_value(model).expect("a device model");
    let mut engine = Engine::new(&model, None);
    let mut random = Stream::new(1, "prediction");
    let requests: Vec<Request> = (0..REQUESTS)
        .map(|id| {
            let operation = if random.chance(0.5) { Operation::Read } else { Operation::Write };
            Request::new(RequestId(id), operation, Lba(random.below(1 << 20) * 8), 8)
        })
        .collect();
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e9 / REQUESTS as f64;
    let start = Instant::now();
    for request in &requests {
        let now = Time(request.id.0 * 100_000);
        engine.submitted(now, request);
        let is_slow = request.id.0 % 97 < 3;
        let time = Time(now.0 + if is_slow { 900_000 } else { 50_000 });
        let completion = Completion { id: request.id, time, status: Status::Ok, ledger: Ledger::ZERO };
        engine.observe(time, &completion);
    }
    let learning = each(start);
    let start = Instant::now();
    for request in &requests {
        let now = Time((REQUESTS + request.id.0) * 100_000);
        black_box(engine.predict(now, &[], request));
    }
    [("prediction_ns", each(start)), ("prediction_learning_ns", learning)]
}
