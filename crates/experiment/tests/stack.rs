//! Stacks: resolved from documents, refused with a place, and run.

mod support;

use std::ops::ControlFlow;

use flashkeel_engine::Cause;
use flashkeel_experiment::{Error, RunOutcome, RunPlan, merge, resolve, run};
use flashkeel_host::device::DeviceKind;
use flashkeel_host::scheduler::IoSchedulerConfig;
use serde_json::Value;
use support::{DEVICE, WORKLOAD};

const TENANTS: &str = "\
[[stack.tenants]]
name = \"reader\"
weight = 300
workload.source.read_fraction = 1.0
[[stack.tenants]]
name = \"writer\"
workload.source.read_fraction = 0.0
workload.pacing.depth = 16
";

fn plans(document: &str, sets: &[(&str, &str)]) -> Result<Vec<RunPlan>, Error> {
    let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    resolve(document, "exp.toml", &sets, None)
}

fn outcome(document: &str, sets: &[(&str, &str)], seed: u64) -> RunOutcome {
    let plans = plans(document, sets).unwrap_or_else(|error| panic!("{error}"));
    run(&plans[0], seed, None, &mut |_, _| ControlFlow::Continue(())).unwrap().outcome
}

fn tenants() -> String {
    format!("{DEVICE}{WORKLOAD}[stack]\n{TENANTS}")
}

#[test]
fn tenants_and_devices_are_laid_over_what_the_experiment_says() {
    let document = format!(
        "{}[[stack.devices]]\nssd.scheduler = \"debit\"\n[[stack.devices]]\nssd = {{ preset = \"ssd-d\" }}\n\
         [[stack.devices]]\nnvm = {{ capacity = \"1GiB\" }}\n",
        tenants()
    );
    let plan = &plans(&document, &[("stack.devices.1.ssd.map_cache", "8MiB")]).unwrap()[0];
    let stack = plan.config.stack.as_ref().unwrap();
    let device = &plan.config.device;
    let [first, second, third] = &stack.devices[..] else { panic!("three devices") };
    let (DeviceKind::Ssd(first), DeviceKind::Ssd(second), DeviceKind::Nvm(third)) = (first, second, third)
    else {
        panic!("two SSDs and an NVM")
    };
    assert_eq!((first.scheduler.name(), &first.geometry), ("debit", &device.geometry));
    assert_eq!(second.partition_bits, [17]);
    assert_eq!(third.capacity.0, 1 << 30);
    assert_eq!(third.endurance.drive_writes_per_day, 30.0);
    let [reader, writer] = &stack.tenants[..] else { panic!("two tenants") };
    assert_eq!((reader.weight, writer.weight), (300, 100));
    assert_eq!(reader.workload.duration, plan.config.workload.duration);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<RunPlan>(&text).unwrap(), *plan);
}

#[test]
fn tenants_alone_make_a_workload() {
    let document = format!(
        "{DEVICE}[[stack.tenants]]\nname = \"a\"\nworkload = {{ requests = 10, source = \
         {{ policy = \"synthetic\" }}, pacing = \"closed\" }}\n"
    );
    let plan = &plans(&document, &[]).unwrap()[0];
    assert_eq!(plan.config.workload, plan.config.stack.as_ref().unwrap().tenants[0].workload);
}

#[test]
fn wrong_stacks_are_refused_with_place_and_remedy() {
    for (more, sets, expected) in [
        ("", ("stack.teir", "write-back"), "--set stack.teir: unknown key; did you mean \"tier\"?"),
        (
            "",
            ("stack.writebak.batch", "4KiB"),
            "--set stack.writebak: unknown key; did you mean \"writeback\"?",
        ),
        ("", ("stack.schduler", "pas"), "--set stack.schduler: unknown key; did you mean \"scheduler\"?"),
        (
            "",
            ("stack.scheduler", "paz"),
            "--set stack.scheduler: unknown I/O scheduler \"paz\", expected one of SCHEDULERS; \
             did you mean \"pas\"?",
        ),
        ("", ("stack.depth", "0"), "--set stack.depth: is 0; a device gets at least 1 request at a time"),
        ("", ("stack.depth", "100000"), "--set stack.depth: is 100000, but device 0 takes 65536 at most"),
        (
            "",
            ("stack.volumes", "va-lvm"),
            "--set stack: volumes.bits is empty; name the bits that select an internal volume",
        ),
        (
            "",
            ("stack.tier", "write-back"),
            "--set stack.tier: is \"write-back\", which needs an NVM; name it in nvm",
        ),
        (
            "",
            ("stack.nvm", "{preset = \"optane-p480x\"}"),
            "--set stack.nvm.preset: unknown preset \"optane-p480x\", expected one of optane-p4800x, optane-memory-32gb; did you mean \
             \"optane-p4800x\"?",
        ),
        (
            "",
            ("stack.nvm", "{capacity = \"1GiB\"}"),
            "--set stack.nvm: is for a tier, and there is none; choose a tier, such as tier = \"write-back\"",
        ),
        (
            "",
            ("stack.writeback", "conditional"),
            "--set stack.writeback: is for a tier, and there is none; choose a tier, such as tier = \"write-back\"",
        ),
        (
            "",
            ("stack.scheduler", "{policy = \"deadline\", read_expire = \"18446744073s\"}"),
            "--set stack.scheduler.read_expire: is 18446744073s; at most 1h",
        ),
        ("", ("stack.nvm", "{units = 0}"), "--set stack.nvm.units: is 0; it must lie between 1 and 1024"),
        (
            "",
            ("stack.tenants.1.name", "reader"),
            "--set stack.tenants.1.name: two tenants are named \"reader\"",
        ),
        (
            "",
            ("stack.tenants.1.workload.source.read_fraction", "2"),
            "--set stack.tenants.1.workload.source.read_fraction: 2 is not between 0 and 1",
        ),
        (
            "[[stack.devices]]\n",
            ("seed", "1"),
            "exp.toml:27: stack.devices.0: a device is a table with exactly one key, its kind: KINDS",
        ),
        (
            "[[stack.devices]]\nsdd = {}\n",
            ("seed", "1"),
            "exp.toml:27: stack.devices.0: unknown device \"sdd\", expected one of KINDS; did you mean \"ssd\"?",
        ),
        (
            "[[stack.devices]]\nnvm = {}\n",
            ("stack.tier", "{policy = \"write-back\"}"),
            "--set stack.tier: is \"write-back\", which needs an NVM; name it in nvm",
        ),
        (
            "[[stack.devices]]\ndram = {}\n[stack.nvm]\n[stack.tier]\npolicy = \"write-back\"\n",
            ("seed", "1"),
            "exp.toml:30: stack.tier: is for SSDs, but devices.0 is none",
        ),
        (
            "[[stack.devices]]\nssd.gc.start_below = 99\n",
            ("seed", "1"),
            "exp.toml:28: stack.devices.0.ssd.gc.start_below: is 99, above gc.stop_above, which is 12",
        ),
    ] {
        let expected = expected.replace("SCHEDULERS", &IoSchedulerConfig::NAMES.join(", "));
        let expected = expected.replace("KINDS", &DeviceKind::NAMES.join(", "));
        match plans(&format!("{}{more}", tenants()), &[sets]) {
            Err(Error::Input(message)) => assert_eq!(message, expected, "{more} {sets:?}"),
            other => panic!("{more} {sets:?}: {other:?}"),
        }
    }
}

#[test]
fn a_stack_without_policies_changes_nothing_but_the_order_of_waiting() {
    let plain = outcome(&format!("{DEVICE}{WORKLOAD}"), &[], 3);
    let stacked = outcome(&format!("{DEVICE}{WORKLOAD}[stack]\n"), &[], 3);
    assert_eq!(plain.summary.requests, stacked.summary.requests);
    assert_eq!(plain.summary.read, stacked.summary.read);
    assert_eq!(plain.summary.write, stacked.summary.write);
    assert_eq!(plain.device, stacked.device);
}

#[test]
fn every_scheduler_manager_and_tier_runs_and_tells_tenants_apart() {
    let nvm = ("stack.nvm", "{capacity = \"1MiB\"}");
    for sets in [
        vec![("stack.scheduler", "none")],
        vec![("stack.scheduler", "deadline")],
        vec![("stack.scheduler", "fair"), ("stack.volumes", "{policy = \"va-lvm\", bits = [14]}")],
        vec![("stack.tier", "write-back"), nvm],
        vec![("stack.devices", "[{ssd = {}}, {nvm = {capacity = \"64MiB\"}}]"), ("stack.scheduler", "fair")],
    ] {
        let result = outcome(&tenants(), &sets, 1);
        let [reader, writer] = &result.tenants[..] else { panic!("two tenants") };
        assert_eq!((reader.summary.write.count, writer.summary.read.count), (0, 0));
        assert_eq!(reader.summary.requests + writer.summary.requests, result.summary.requests);
        assert_eq!(reader.summary.read, result.summary.read);
        assert_eq!(result.summary.invalid_requests, 0, "{sets:?}");
        assert!(reader.summary.requests > 100 && writer.summary.requests > 100, "{sets:?}");
        assert_eq!(result.summary.digest, outcome(&tenants(), &sets, 1).summary.digest);
        assert_ne!(result.summary.digest, outcome(&tenants(), &sets, 2).summary.digest);
    }
}

#[test]
fn pooled_seeds_pool_tenants_and_devices() {
    let runs: Vec<RunOutcome> = (1..=2).map(|seed| outcome(&tenants(), &[], seed)).collect();
    let texts: Vec<String> = runs.iter().map(|run| serde_json::to_string(run).unwrap()).collect();
    let pool = merge(&texts).unwrap();
    for (index, tenant) in pool.tenants.iter().enumerate() {
        let sum: u64 = runs.iter().map(|run| run.tenants[index].summary.requests).sum();
        assert_eq!(tenant.summary.requests, sum);
    }
    let written = |run: &RunOutcome| run.stack.as_ref().unwrap()["ssds"]["0"]["host_bytes_written"].as_u64();
    assert_eq!(written(&pool), Some(runs.iter().map(|run| written(run).unwrap()).sum()));
}

#[test]
fn an_exact_prediction_makes_pas_shorten_the_tail_of_reads() {
    let document = "\
        [device]\n\
        preset = \"ssd-f\"\n\
        logical_capacity = \"64MiB\"\n\
        geometry = { blocks_per_plane = 96 }\n\
        [workload]\nrequests = 4000\npacing = { policy = \"closed\", depth = 16 }\n\
        source = { policy = \"synthetic\", read_fraction = 0.5 }\n\
        [stack]\ndepth = 1\npredictor = \"oracle\"\n";
    // A collection more or less is 2 % of one run: four of them.
    let [none, pas] = ["none", "pas"].map(|name| {
        let run = |seed| outcome(document, &[("stack.scheduler", name)], seed);
        let texts = [1, 2, 3, 4].map(|seed| serde_json::to_string(&run(seed)).unwrap());
        merge(&texts).unwrap()
    });
    let mean = |run: &RunOutcome| run.summary.read.mean_ns.unwrap();
    assert!(mean(&pas) < 0.3 * mean(&none), "{} instead of {}", mean(&pas), mean(&none));
    assert!(pas.summary.simulated_s <= none.summary.simulated_s * 1.02);
}

#[test]
fn the_short_way_to_write_a_tier_is_the_long_one() {
    let short =
        format!("{DEVICE}{WORKLOAD}[stack]\ntier = \"write-back\"\nnvm = {{ capacity = \"1MiB\" }}\n");
    let long = format!(
        "{DEVICE}{WORKLOAD}[[stack.devices]]\ntier = {{ placement = \"write-back\", upper = {{ nvm = {{ capacity = \
         \"1MiB\" }} }}, lower = {{ ssd = {{}} }} }}\n"
    );
    let [short, long] = [short, long].map(|document| outcome(&document, &[], 1));
    assert_eq!(short.summary.digest, long.summary.digest);
    assert_eq!(short.config, long.config);
    assert_eq!(short.stack, long.stack);
}

/// A cache of memory over a stack of an NVM and a tier.
const NESTED: &str = "\
[[stack.devices]]
[stack.devices.tier]
placement = \"write-back\"
writeback = { policy = \"periodic\", period = \"1ms\" }
upper = { dram = { capacity = \"256KiB\" } }
[[stack.devices.tier.lower.stack.devices]]
nvm = { capacity = \"16MiB\" }
[[stack.devices.tier.lower.stack.devices]]
tier = { placement = \"write-back\", upper = { nvm = { capacity = \"1MiB\" } }, lower = { ssd = {} } }
";

#[test]
fn kinds_of_device_nest_and_every_part_reports() {
    let document = format!("{}{NESTED}", tenants());
    let result = outcome(&document, &[], 1);
    assert_eq!(result.summary.invalid_requests, 0);
    let stack = result.stack.as_ref().unwrap();
    let numbers = |kind: &str| stack[kind].as_object().unwrap().len();
    assert_eq!((numbers("ssds"), numbers("nvms"), numbers("drams"), numbers("tiers")), (1, 2, 1, 2));
    let bytes = |part: &Value, key: &str| part[key].as_u64().unwrap();
    assert!(bytes(&stack["drams"]["0"], "bytes_written") > 0);
    assert!(bytes(&stack["nvms"]["0"], "bytes_read") > 0, "the reader's volume begins on it");
    assert!(bytes(&stack["nvms"]["1"], "bytes_written") > 0);
    let by =
        |cause| result.summary.blame_ns.iter().find(|&(other, _)| other == cause).map_or(0, |(_, ns)| ns);
    assert!(by(Cause::Controller) > 0 && by(Cause::Nvm) > 0);
    assert_eq!(result.summary.digest, outcome(&document, &[], 1).summary.digest);
    assert_ne!(result.summary.digest, outcome(&document, &[], 2).summary.digest);
}

#[test]
fn a_scheduler_within_another_device_knows_the_tenants() {
    let tenants = TENANTS.replace("weight = 300", "priority = \"urgent\"").replace("= 0.0", "= 1.0");
    let document = format!(
        "{DEVICE}{WORKLOAD}[[stack.devices]]\nnetwork.device.stack = {{ scheduler = \"weighted-round-robin\", \
         depth = 2, devices = [{{ ssd = {{}} }}] }}\n{tenants}"
    );
    let outcome = outcome(&document, &[], 1);
    let mean = |index: usize| {
        let summary = serde_json::to_value(&outcome.tenants[index].summary).expect("a summary");
        summary["read"]["mean_ns"].as_f64().expect("a number")
    };
    assert!(mean(0) * 1.5 < mean(1), "{} and {} ns", mean(0), mean(1));
}

#[test]
fn what_memory_writes_back_is_not_forced_to_flash() {
    let workload = WORKLOAD.replace("read_fraction = 0.5", "read_fraction = 0.0");
    let device = DEVICE.replace("\"256KiB\"", "\"256KiB\", volatile = true");
    let amplified = |devices: &str| {
        let document = format!("{device}{workload}[[stack.devices]]\n{devices}\n");
        let found = outcome(&document, &[("workload.requests", "4000"), ("workload.duration", "10s")], 1);
        found.stack.expect("a stack")["ssds"]["0"]["waf"].as_f64().expect("a number")
    };
    let memory = "tier = { preset = \"base\", upper.dram.capacity = \"4MiB\", lower.ssd = {} }";
    let (alone, memory) = (amplified("ssd = {}"), amplified(memory));
    assert!(memory < 1.3 * alone, "{memory} for {alone}");
}

#[test]
fn nested_devices_are_refused_at_their_own_place() {
    let kinds = DeviceKind::NAMES.join(", ");
    let unknown = format!(
        "--set stack.devices.0.tier.lower: a device is a table with exactly one key, its kind: {kinds}; \
         this one has sdd and stack"
    );
    let lower = "stack.devices.0.tier.lower.stack";
    for (path, value, expected) in [
        ("stack.devices.0.tier.lower", "{sdd = {}}", unknown.as_str()),
        ("devices.1.tier.upper.nvm.units", "0", "is 0; it must lie between 1 and 1024"),
        (
            "devices.1.tier.placement",
            "none",
            "is \"none\", and so is admission: the upper device is unused; name the lower one alone",
        ),
        ("depth", "2000", "is 2000, but device 0 takes 1024 at most"),
        (
            "tenants",
            "[{name = \"a\", workload = {source = \"synthetic\"}}]",
            "only the experiment's own stack has some",
        ),
        ("devices.1.tier.lower.ssd.preset", "ssd-z", "unknown preset \"ssd-z\""),
        (
            "devices.1.tier.preset",
            "nlcwip",
            "is \"nlcwip\", which sets policies of a tier in lower; name its devices in lower.tier, as upper and lower",
        ),
    ] {
        let path = if path.starts_with("stack") { path.to_owned() } else { format!("{lower}.{path}") };
        match plans(&format!("{}{NESTED}", tenants()), &[(&path, value)]) {
            Err(Error::Input(message)) => {
                let whole = if expected.starts_with("--set") {
                    expected.to_owned()
                } else {
                    format!("--set {path}: {expected}")
                };
                assert!(message.starts_with(&whole), "{message}, not {whole}");
            }
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[test]
fn what_works_for_a_device_works_for_a_stack() {
    let small = "logical_capacity = \"64MiB\"\n\
        geometry = { blocks_per_plane = 96 }\n\
        [workload]\nrequests = 600\npacing = { policy = \"closed\", depth = 8 }\n\
        source = { policy = \"synthetic\", read_fraction = 0.5 }\n\
        [measure]\nchip_log = { from = \"0s\", length = \"50ms\" }\n";
    let plain = format!("[device]\npreset = \"ssd-f\"\n{small}");
    let chips = |document: &str, sets: &[(&str, &str)]| {
        let plans = plans(document, sets).unwrap_or_else(|error| panic!("{error}"));
        run(&plans[0], 1, None, &mut |_, _| ControlFlow::Continue(())).unwrap().chips.unwrap()
    };
    let stacked = format!("{plain}[stack]\n");
    assert_eq!(
        chips(&plain, &[]),
        chips(&stacked, &[]),
        "a stack without policies leaves the chips' work as it is"
    );
    // A prediction of a tier, and of an NVM.
    for devices in [
        "[{tier = {placement = \"write-back\", upper = {dram = {capacity = \"16MiB\"}}, lower = {ssd = {}}}}]",
        "[{nvm = {capacity = \"64MiB\"}}]",
    ] {
        let sets = [
            ("stack.devices", devices),
            ("stack.scheduler", "pas"),
            ("stack.predictor", "oracle"),
            ("stack.depth", "1"),
        ];
        let result = outcome(&stacked, &sets, 1);
        assert_eq!((result.summary.requests, result.summary.invalid_requests), (600, 0));
    }
}

#[test]
fn clients_of_small_blocks_cost_reads_of_whole_ones() {
    let small =
        ("workload.source", "{policy = \"synthetic\", read_fraction = 0.0, block_sizes = [\"512B\"]}");
    let document = format!("{DEVICE}{WORKLOAD}");
    let Err(Error::Input(refused)) = plans(&document, &[small]) else {
        panic!("the device has larger blocks")
    };
    assert!(refused.ends_with("512B is not a multiple of 4KiB, the unit of the device"), "{refused}");
    let sets = [small, ("stack.block", "512B")];
    for document in [document.clone(), format!("{document}[stack]\nscheduler = \"fair\"\n")] {
        let outcome = outcome(&document, &sets, 1);
        let report = |key: &str| outcome.device[key].as_u64().unwrap() / 4096;
        let (read, written) = (report("host_bytes_read"), report("host_bytes_written"));
        assert!(written > 100 && read.abs_diff(written) <= 16, "{read} read, {written} written");
        assert!(outcome.summary.requests.abs_diff(written) <= 16);
    }
    let wrong = plans(&document, &[("stack.block", "3KiB")]).unwrap_err().to_string();
    assert!(wrong.contains("stack.block: is 3KiB; it must be 512B, 1KiB, 2KiB or 4KiB"), "{wrong}");
}

#[test]
fn a_workload_whose_duration_never_passes_is_refused() {
    for (device, share) in [
        ("[{nvm = {capacity = \"1MiB\"}}]", "trim_fraction"),
        ("[{dram = {capacity = \"1MiB\", latency = \"0ns\"}}]", "zero_fraction"),
    ] {
        let source = format!("{{policy = \"synthetic\", read_fraction = 0.0, {share} = 1.0}}");
        let sets = [("stack.devices", device), ("workload.source", &source)];
        let plan = &plans(&format!("{DEVICE}{WORKLOAD}"), &sets).unwrap()[0];
        let Err(Error::Input(message)) = run(plan, 1, None, &mut |_, _| ControlFlow::Continue(())) else {
            panic!("{device}: no time passes")
        };
        assert_eq!(
            message,
            "workload.duration: never passes: 0ns after the start the device serves requests in no time, and \
             others follow at once; set workload.requests, or pace them"
        );
    }
}

/// A read that would find writes in a buffer that reads flush is slow in its turn, whatever the reads before it
/// were: one that followed a slow and a quick one was let wait for a single write and then preferred, which
/// took a flush for each (Build of figure 14 at 8 KiB, seed 1: a sixth less throughput than without).
#[test]
fn reads_that_are_preferred_spare_flushes_whatever_came_last() {
    const DOCUMENT: &str = "\
[device]
preset = \"ssd-f\"
[workload]
requests = 6000
pacing = { policy = \"closed\", depth = 32, low = 24 }
source = { policy = \"synthetic\", read_fraction = 0.461, block_sizes = [\"8KiB\"] }
[stack]
depth = 1
";
    for seed in [1, 7] {
        let seconds =
            |scheduler: &str| outcome(DOCUMENT, &[("stack.scheduler", scheduler)], seed).summary.simulated_s;
        let (pas, none) = (seconds("pas"), seconds("none"));
        assert!(pas * 1.2 < none, "seed {seed}: {pas} s, {none} s without");
    }
}
