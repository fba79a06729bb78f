//! Hosts that share deterministic windows by counts.

use std::ops::ControlFlow;

use flashkeel_experiment::{RunPlan, resolve, run};
use serde_json::Value;

const DOCUMENT: &str = "\
[device]
logical_capacity = \"192MiB\"
map_cache = \"all\"
scheduler = \"priority\"
gc = { start_below = 24, stop_above = 40 }
buffer = { size = \"8MiB\", flush = [\"page\"] }
window = \"commanded\"
geometry = { channels = 4, chips_per_channel = 1, planes_per_chip = 1, blocks_per_plane = 128, pages_per_block = 32 }

[stack]
depth = 1024
[[stack.devices]]
coordinator.device = { ssd = {} }
coordinator.share = { count = 300, window = \"50ms\", rest = \"10ms\", message_delay = \"20us\" }

[workload]
requests = 20000
warm_up = \"200ms\"
[workload.source]
policy = \"synthetic\"
read_fraction = 1.0
block_sizes = [\"4KiB/100\"]
arrivals = { policy = \"poisson\", iops = 2000 }

[[stack.tenants]]
name = \"a\"
priority = \"high\"
[[stack.tenants]]
name = \"b\"
priority = \"medium\"
[[stack.tenants]]
name = \"c\"
priority = \"low\"
";

fn plans(sets: &[(&str, &str)]) -> Result<RunPlan, String> {
    let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    let plans = resolve(DOCUMENT, "shared.toml", &sets, None);
    plans.map(|mut plans| plans.remove(0)).map_err(|error| error.to_string())
}

/// What the coordinator has counted, and each tenant's summary.
fn seen(sets: &[(&str, &str)]) -> (Value, Vec<Value>) {
    let plan = plans(sets).unwrap_or_else(|error| panic!("{error}"));
    let finished = run(&plan, 1, None, &mut |_, _| ControlFlow::Continue(())).expect("it runs");
    let tenants = finished.outcome.tenants.iter();
    let tenants = tenants.map(|tenant| serde_json::to_value(&tenant.summary).expect("a summary"));
    let stack = finished.outcome.stack.expect("a stack");
    (stack["coordinators"]["0"].clone(), tenants.collect())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

fn of_hosts(coordinator: &Value, key: &str) -> Vec<u64> {
    coordinator["hosts"].as_array().expect("hosts").iter().map(|host| number(&host[key])).collect()
}

#[test]
fn where_counts_suffice_nobody_waits_for_background_work() {
    let (coordinator, tenants) = seen(&[("stack.devices.0.coordinator.share.count", "1200")]);
    assert!(number(&coordinator["windows"]) > 100, "{coordinator}");
    for (beyond, asked) in of_hosts(&coordinator, "beyond").iter().zip(of_hosts(&coordinator, "asked")) {
        // Expectations follow what came: at times they fall short.
        assert!(beyond * 5 < asked, "{coordinator}");
    }
    assert!(tenants.iter().all(|tenant| number(&tenant["read"]["count"]) > 10_000));
}

#[test]
fn exact_counts_that_suffice_cover_every_read_and_are_used_up() {
    let (coordinator, _) = seen(&[
        ("stack.devices.0.coordinator.share.count", "1200"),
        ("stack.devices.0.coordinator.share.demand", "exact"),
        ("stack.devices.0.coordinator.share.message_delay", "0ns"),
    ]);
    assert!(number(&coordinator["windows"]) > 100, "{coordinator}");
    assert_eq!(of_hosts(&coordinator, "beyond"), [0, 0, 0], "{coordinator}");
    assert_eq!(of_hosts(&coordinator, "given"), of_hosts(&coordinator, "used"), "{coordinator}");
    for host in coordinator["hosts"].as_array().expect("hosts") {
        assert_eq!(host["utilisation_percent"], serde_json::json!([100, 100, 100]));
    }
}

#[test]
fn where_they_do_not_suffice_a_higher_class_waits_less() {
    for allocation in ["strict-priority", "fixed-ratio"] {
        let (coordinator, _) = seen(&[
            ("stack.devices.0.coordinator.share.count", "200"),
            ("stack.devices.0.coordinator.share.allocation", allocation),
        ]);
        let [high, medium, low] = of_hosts(&coordinator, "beyond")[..] else { panic!("three hosts") };
        assert!(high < medium && medium < low, "{allocation}: {coordinator}");
        assert!(number(&coordinator["used_up"]) > 0, "{allocation}: {coordinator}");
    }
}

#[test]
fn a_host_that_overtakes_is_named_and_held_to_its_counts() {
    let overtakes = ("stack.tenants.2.overtakes", "true");
    let few = ("stack.devices.0.coordinator.share.count", "200");
    let (bounded, _) = seen(&[overtakes, few]);
    let (unbounded, _) = seen(&[overtakes, few, ("stack.devices.0.coordinator.share.bounds", "false")]);
    for coordinator in [&bounded, &unbounded] {
        let overtaken = of_hosts(coordinator, "overtaken");
        assert_eq!(overtaken[..2], [0, 0], "{coordinator}");
        assert!(overtaken[2] > 100, "{coordinator}");
    }
    // Held to its counts it gets in a window what it would have asked for honestly.
    let (honest, _) = seen(&[few]);
    assert_eq!(of_hosts(&bounded, "used"), of_hosts(&honest, "used"), "{bounded} {honest}");
    assert_ne!(of_hosts(&unbounded, "used"), of_hosts(&honest, "used"), "{unbounded} {honest}");
}

#[test]
fn hosts_are_given_what_is_left_within_a_window_if_they_may_ask() {
    let share = |top_ups| {
        seen(&[
            ("stack.devices.0.coordinator.share.count", "450"),
            ("stack.devices.0.coordinator.share.top_ups", top_ups),
        ])
        .0
    };
    let (without, with) = (share("false"), share("true"));
    assert_eq!(number(&without["top_ups"]), 0);
    assert!(number(&with["top_ups"]) > 100, "{with}");
    let part = |coordinator: &Value| {
        let sum = |key| of_hosts(coordinator, key).iter().sum::<u64>() as f64;
        sum("beyond") / sum("asked")
    };
    assert!(part(&with) < part(&without), "{with} {without}");
}

#[test]
fn a_host_may_use_its_minimum_before_it_has_heard_of_the_coordinator() {
    let slow = ("stack.devices.0.coordinator.share.message_delay", "10ms");
    let enough = ("stack.devices.0.coordinator.share.count", "1200");
    // What it needs beyond what is expected would wait.
    let exact = ("stack.devices.0.coordinator.share.demand", "exact");
    let (without, _) = seen(&[slow, enough, exact]);
    let minimum = "{ high = 0.5, medium = 0.0, low = 0.0 }";
    let (with, tenants) =
        seen(&[slow, enough, exact, ("stack.devices.0.coordinator.share.minimum", minimum)]);
    let tail = |coordinator: &Value, host: usize| number(&coordinator["hosts"][host]["tail_p50_ns"]);
    assert!(tail(&without, 0) > 10_000_000, "{without}");
    assert!(tail(&with, 0) < 1_000_000, "{with}");
    assert!(tail(&with, 1) > 10_000_000, "{with}");
    assert_eq!(tenants.len(), 3);
}

#[test]
fn beyond_their_counts_hosts_read_the_copy_that_does_its_background_work() {
    let (coordinator, tenants) = seen(&[
        ("device.sets", "2"),
        (
            "stack.devices",
            "[{ coordinator = { device = { mirror = { devices = [{ ssd = {} }], windows = { policy = \"alternate\", \
             rest = \"20ms\" }, read = \"window\" } }, share = { count = 60, message_delay = \"0ns\" } } }]",
        ),
        ("workload.source.read_fraction", "0.9"),
        ("workload.source.arrivals.iops", "1200"),
    ]);
    assert!(number(&coordinator["windows"]) > 100, "{coordinator}");
    assert!(of_hosts(&coordinator, "beyond").iter().sum::<u64>() > 1_000, "{coordinator}");
    for tenant in tenants {
        assert_eq!(number(&tenant["blame_ns"]["window"]), 0, "nothing waits for a window");
    }
}

#[test]
fn it_is_noted_where_the_device_gives_less_than_is_shared_out() {
    let notes = |reads: u64| {
        let window = format!("{{ policy = \"commanded\", reads_typical = {reads} }}");
        let plan = plans(&[("device.window", &window)]).unwrap_or_else(|error| panic!("{error}"));
        let finished = run(&plan, 1, None, &mut |_, _| ControlFlow::Continue(())).expect("it runs");
        finished.outcome.notes.join(" ")
    };
    assert!(notes(20).contains("most deterministic windows of coordinator 0: what it promises was used up"));
    assert!(!notes(300).contains("deterministic windows"));
}

#[test]
fn what_cannot_be_shared_is_refused_with_its_key() {
    let share =
        |keys: &str| format!("[{{ coordinator = {{ device = {{ ssd = {{}} }}, share = {{ {keys} }} }} }}]");
    let exact = "coordinator={device={ssd={}},share={count=100,demand=\"exact\"}}";
    let in_turn = "[{coordinator={device={mirror={devices=[{ssd={}},{ssd={}}],read=\"window\",\
                   windows={policy=\"alternate\",rest=\"10ms\"}}},share={count=10,message_delay=\"5ms\"}}}]";
    let refused: [(&[(&str, &str)], &str); 22] = [
        (&[("stack.devices.0.coordinator.share.count", "0")], "share.count: is 0; a window"),
        (
            &[("stack.devices.0.coordinator.share.count", "1000000")],
            "share.count: is 1000000, but in a window of 50ms",
        ),
        (
            &[("device.window", "{ policy = \"commanded\", time_maximum = \"49ms\" }")],
            "share.window: is 50ms, but the device ends a window after 49ms",
        ),
        (
            &[("stack.devices.0.coordinator.share.rest", "1ms")],
            "share.rest: is 1ms, in which no block could be erased; at least 5ms",
        ),
        (
            &[(
                "stack.devices",
                "[{ mirror = { devices = [{ ssd = {} }, { ssd = {} }], windows = { policy = \"alternate\", \
                 rest = \"1ms\" } } }]",
            )],
            "windows.rest: is 1ms, in which no block could be erased",
        ),
        (&[("device.window", "none")], "it has no deterministic windows to share out"),
        (&[("device.sets", "2")], "it has several NVM sets"),
        (
            &[("stack.devices.0.coordinator.share.minimum", "{ urgent = 0.1 }")],
            "minimum.urgent: is given, but no tenant has the priority \"urgent\"",
        ),
        (&[("stack.devices.0.coordinator.share.minimum", "{ high = 1.5 }")], "minimum.high: is 1.5"),
        (
            &[("stack.devices.0.coordinator.share.demand", "{ policy = \"smoothed\", smoothing = 1.5 }")],
            "smoothing: is 1.5; it must lie between 0 and 1",
        ),
        (
            &[("stack.devices.0.coordinator.share.demand", "exact"), ("workload.pacing", "closed")],
            "stack.tenants.0.workload.pacing",
        ),
        (&[("stack.devices", &share("count = 10, window = \"0ns\""))], "window: is 0ns; at least 1us"),
        (&[("stack.devices", &share("window = \"999ns\""))], "window: is 999ns; at least 1us"),
        (
            &[("stack.devices", &share("count = 10, window = \"50ms\", message_delay = \"25ms\""))],
            "message_delay: is 25ms, so that a window of 50ms is over",
        ),
        (
            &[("stack.devices.0.coordinator.share.message_delay", "\"2h\"")],
            "message_delay: is 2h; at most 1h",
        ),
        (&[("stack.devices", in_turn)], "message_delay: is 5ms, so that a window of 10ms is over"),
        (
            &[("stack.devices", &format!("[{{{exact}}},{{{exact}}}]"))],
            "devices.0.coordinator: a coordinator in it foresees all reads of its hosts",
        ),
        (
            &[(
                "stack.devices",
                &format!(
                    "[{{tier={{preset=\"base\",upper={{dram={{capacity=\"64MiB\"}}}},lower={{{exact}}}}}}}]"
                ),
            )],
            "lower: a coordinator in it foresees all reads of its hosts",
        ),
        (
            &[("stack.devices", &format!("[{{mirror={{devices=[{{{exact}}},{{{exact}}}]}}}}]"))],
            "devices.0: a coordinator in it foresees all reads of its hosts",
        ),
        (&[("stack.devices", &share("rest = \"5ms\""))], "rest: is given, but without count nobody"),
        (
            &[("stack.tenants", "[]"), ("stack.devices", &share("count = 10, minimum = { high = 0.1 }"))],
            "minimum.high: is given, but no tenant has the priority \"high\"",
        ),
        (
            &[
                ("stack.devices.0.coordinator.share.demand", "exact"),
                ("stack.tenants.1.workload.source", "{ policy = \"trace\", path = \"-\" }"),
            ],
            "stack.tenants.1.workload.source.path",
        ),
    ];
    for (sets, message) in refused {
        let error = plans(sets).expect_err(message);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn without_counts_windows_follow_the_clock_and_nobody_waits() {
    let devices = "[{ coordinator = { device = { ssd = {} }, share = { window = \"50ms\" } } }]";
    let observed = [("device.window", "none"), ("stack.devices", devices)];
    let (coordinator, tenants) = seen(&observed);
    assert_eq!(of_hosts(&coordinator, "beyond"), [0, 0, 0], "{coordinator}");
    assert_eq!(of_hosts(&coordinator, "used"), of_hosts(&coordinator, "asked"), "{coordinator}");
    // 20,000 requests at 2,000 a second and host, less the warm-up.
    let windows = number(&coordinator["windows"]);
    assert!((180..=210).contains(&windows), "{windows}");
    assert!(tenants.iter().all(|tenant| number(&tenant["blame_ns"]["window"]) == 0));
}

#[test]
fn minima_that_are_more_than_there_is_are_refused() {
    let with = |minimum| plans(&[("stack.devices.0.coordinator.share.minimum", minimum)]);
    let error = with("{ high = 0.4, medium = 0.5, low = 0.2 }").expect_err("it is refused");
    assert_eq!(
        error.to_string(),
        "--set stack.devices.0.coordinator.share.minimum.medium: the minima of the 3 hosts are 1.1000 of count \
         together, but at most 1 in all is there to share, as each host of a class has its share"
    );
    assert!(with("{ high = 0.5, medium = 0.3, low = 0.2 }").is_ok());
}
