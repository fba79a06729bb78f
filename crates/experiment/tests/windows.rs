//! Mirrors whose copies do their background work in turn.

use std::ops::ControlFlow;

use flashkeel_engine::{
    Answer, Arena, Command, Lba, Leaf, Operation, Place, Request, RequestId, Span, Submit, Time,
};
use flashkeel_experiment::{Error, RunPlan, Target, resolve, run};
use flashkeel_host::device::Device;
use flashkeel_host::reports;
use serde_json::Value;

const DOCUMENT: &str = "\
[device]
logical_capacity = \"96MiB\"
map_cache = \"all\"
scheduler = \"priority\"
sets = 2
gc = { start_below = 24, stop_above = 40 }
buffer = { size = \"8MiB\", flush = [\"page\"] }
window = { policy = \"commanded\", writes_typical = 128 }
geometry = { channels = 4, chips_per_channel = 1, planes_per_chip = 1, blocks_per_plane = 128, pages_per_block = 32 }

[stack]
depth = 64
[[stack.devices]]
mirror.devices = [{ ssd = {} }]
mirror.windows = \"alternate\"
mirror.read = \"window\"

[workload]
requests = 60000
warm_up = \"1s\"
[workload.source]
policy = \"synthetic\"
read_fraction = 0.7
block_sizes = [\"4KiB/100\"]
arrivals = { policy = \"poisson\", iops = 1500 }
";

fn plan(sets: &[(&str, &str)]) -> RunPlan {
    let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    resolve(DOCUMENT, "windows.toml", &sets, None).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

struct Seen {
    slowest_read_ns: u64,
    window_ns: u64,
    mirror: Value,
}

fn seen(sets: &[(&str, &str)]) -> Seen {
    let finished = run(&plan(sets), 1, None, &mut |_, _| ControlFlow::Continue(())).expect("it runs");
    let summary = serde_json::to_value(&finished.outcome.summary).expect("a summary");
    let mirror = finished.outcome.stack.expect("a stack")["mirrors"]["0"].clone();
    Seen {
        slowest_read_ns: summary["read"]["max_ns"].as_u64().expect("a number"),
        window_ns: summary["blame_ns"]["window"].as_u64().expect("a number"),
        mirror,
    }
}

#[test]
fn reads_of_a_copy_in_its_window_wait_for_no_background_work() {
    let plain = [
        ("device.window", "none"),
        ("stack.devices.0.mirror.windows", "none"),
        ("stack.devices.0.mirror.read", "shortest-queue"),
    ];
    let (windows, queue) = (seen(&[]), seen(&plain));
    assert!(windows.mirror["windows_begun"].as_u64() > Some(100), "{}", windows.mirror);
    assert_eq!(windows.mirror["none_deterministic"], 0, "{}", windows.mirror);
    assert_eq!(windows.mirror["windows_ended_early"], 0, "{}", windows.mirror);
    // A program takes 500 us, an erase 5 ms; reads behind reads are left.
    assert!(windows.slowest_read_ns < 500_000, "{} ns", windows.slowest_read_ns);
    assert!(queue.slowest_read_ns > 5_000_000, "{} ns", queue.slowest_read_ns);
    assert_eq!(queue.mirror["windows_begun"], 0);
}

#[test]
fn a_window_that_is_on_at_the_end_of_the_warm_up_is_counted() {
    for warm_up_ms in (1_000..2_000).step_by(100) {
        let (warm_up, end) = (format!("{warm_up_ms}ms"), format!("{}ms", warm_up_ms + 4));
        let often = ("workload.source.arrivals.iops", "3000");
        let seen = seen(&[("workload.warm_up", &warm_up), ("workload.duration", &end), often]);
        assert!(seen.mirror["windows_begun"].as_u64() >= Some(1), "{warm_up}: {}", seen.mirror);
    }
}

#[test]
fn writes_that_windows_have_no_room_for_wait_and_reads_do_not() {
    let seen = seen(&[
        ("device.window", "{ policy = \"commanded\", writes_typical = 16 }"),
        ("workload.source.read_fraction", "0.3"),
    ]);
    assert!(seen.window_ns > 0);
    assert!(seen.mirror["changes_held_for_windows"].as_u64() > Some(10), "{}", seen.mirror);
    assert_eq!(seen.mirror["none_deterministic"], 0, "{}", seen.mirror);
    assert!(seen.slowest_read_ns < 500_000, "{} ns", seen.slowest_read_ns);
}

#[test]
fn what_a_window_takes_is_counted_in_pages_of_its_own_drive() {
    let small = "ssd={geometry={page_size=\"4KiB\",pages_per_block=128}}";
    let seen = seen(&[
        ("device.sets", "1"),
        ("workload.source.read_fraction", "0.3"),
        ("workload.source.arrivals.iops", "6000"),
        ("stack.devices.0.mirror.devices", &format!("[{{ssd={{}}}},{{{small}}}]")),
    ]);
    assert!(seen.mirror["changes_held_for_windows"].as_u64() > Some(10), "{}", seen.mirror);
    assert_eq!(seen.mirror["windows_ended_early"], 0, "{}", seen.mirror);
}

/// Copies over software that keeps windows, which counts large writes apart from what it holds.
fn seen_over_software(window: &str) -> Seen {
    let copy = format!("{{windowed={{device={{ssd={{}}}},window={{{window}}}}}}}");
    seen(&[
        ("device.window", "none"),
        ("device.sets", "1"),
        ("stack.devices.0.mirror.devices", &format!("[{copy},{copy}]")),
        ("workload.requests", "6000"),
        ("workload.source.block_sizes", "[\"128KiB\"]"),
        ("workload.source.arrivals.iops", "400"),
    ])
}

#[test]
fn large_writes_that_windows_let_pass_take_no_room_of_what_is_held() {
    // Some 120 of them a second come to a room for eight.
    let free = seen_over_software("time_maximum=\"1s\",held=\"1MiB\"");
    assert!(free.mirror["windows_begun"].as_u64() > Some(10), "{}", free.mirror);
    assert_eq!(free.mirror["changes_held_for_windows"], 0, "{}", free.mirror);
    assert_eq!(free.window_ns, 0);
}

#[test]
fn large_writes_that_windows_have_no_count_for_wait_and_end_none() {
    let counted = seen_over_software("time_maximum=\"1s\",held=\"1MiB\",writes=64");
    assert!(counted.mirror["changes_held_for_windows"].as_u64() > Some(10), "{}", counted.mirror);
    assert_eq!(counted.mirror["windows_ended_early"], 0, "{}", counted.mirror);
}

#[test]
fn a_copy_that_is_alone_keeps_its_window_and_no_write_waits_for_another() {
    let plan =
        plan(&[("device.sets", "1"), ("stack.devices.0.mirror.devices", "[{ ssd = {} }, { ssd = {} }]")]);
    let target = Target::of(&plan.config);
    let mut device = target.build(1, None, &mut |_, _| ControlFlow::Continue(())).expect("a device");
    let mut data = Arena::new();
    let begun =
        |device: &dyn Device| reports(device)["mirrors"]["0"]["windows_begun"].as_u64().expect("a count");
    let advance = |device: &mut dyn Device, ms: u64, data: &mut Arena| {
        let mut done = Vec::new();
        device.advance(Time::ZERO + Span::from_ms(ms), data, &mut done);
        done.len()
    };
    advance(&mut *device, 100, &mut data);
    assert!(begun(&*device) > 2, "they take turns");
    // Where the mirror stands depends on what is put around it.
    let mut places = (0..3).map(|depth| Place([vec![0; depth], vec![1]].concat()));
    let now = Time::ZERO + Span::from_ms(100);
    assert!(places.any(|place| device.command(now, &place, &Command::Remove, &mut data) == Ok(Answer::Done)));
    let write = |id: u64| Request::new(RequestId(id), Operation::Write, Lba(8 * id), 8);
    let mut ended = 0;
    // Twice what a window promises to take: the mirror sees that one is gone, and goes on.
    for id in 0..1_024 {
        assert_eq!(device.submit(now + Span::from_us(100 * id), &write(id), &mut data), Submit::Accepted);
        ended += advance(&mut *device, 100 + (100 * (id + 1)) / 1_000, &mut data);
    }
    ended += advance(&mut *device, 400, &mut data);
    assert_eq!(ended, 1_024);
    let before = begun(&*device);
    advance(&mut *device, 2_400, &mut data);
    assert!(begun(&*device) <= before + 1, "{} windows in two seconds", begun(&*device) - before);
}

#[test]
fn windows_that_nobody_could_command_are_refused() {
    let refused = |expected: &str, sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        match resolve(DOCUMENT, "windows.toml", &sets, None) {
            Err(Error::Input(message)) => assert!(message.contains(expected), "{message}"),
            other => panic!("{expected}: {}", other.is_ok()),
        }
    };
    refused(
        "devices.0: windows is \"alternate\", but its windows cannot be commanded",
        &[("device.window", "none")],
    );
    refused(
        "mirror.read: is \"window\", but windows is \"none\"",
        &[("stack.devices.0.mirror.windows", "none")],
    );
    refused("mirror.devices: there are 1; a mirror needs 2 or more", &[("device.sets", "1")]);
    refused(
        "16 with the spares; a mirror has 8 at most",
        &[
            ("device.sets", "4"),
            ("device.geometry.chips_per_channel", "4"),
            ("stack.devices.0.mirror.devices", "[{ssd={}},{ssd={}},{ssd={}},{ssd={}}]"),
        ],
    );
    refused("rest", &[("stack.devices.0.mirror.windows", "{ policy = \"alternate\", rest = \"0ns\" }")]);
    refused(
        "mirror.read: is \"predicted\", which knows devices, and no sets of one",
        &[("stack.devices.0.mirror.read", "predicted")],
    );
    let imposed = |device: &str, window: &str| {
        ("stack.devices", format!("[{{ windowed = {{ device = {device}, window = {window} }} }}]"))
    };
    let wrong = [
        ("windowed.device: it obeys windows itself", "{ ssd = {} }", "{}"),
        ("windowed.window.held: is 0B", "{ nvm = {} }", "{ held = \"0B\" }"),
        ("windowed.window.time_maximum: is 0ns", "{ nvm = {} }", "{ time_maximum = \"0ns\" }"),
        ("windowed.window.time_maximum: is 1ns; at least 1us", "{ nvm = {} }", "{ time_maximum = \"1ns\" }"),
        ("windowed.window.writes_warning: is of what is left", "{ nvm = {} }", "{ writes_warning = 3 }"),
        ("window.time_warning: is 2ms", "{ nvm = {} }", "{ time_maximum = \"1ms\", time_warning = \"2ms\" }"),
        ("unknown key", "{ nvm = {} }", "{ writes_typical = 3 }"),
        ("windowed.device.nvm.capacity", "{ nvm = { capacity = \"1B\" } }", "{}"),
    ];
    for (expected, device, window) in wrong {
        let (key, value) = imposed(device, window);
        refused(expected, &[(key, &value)]);
    }
}
