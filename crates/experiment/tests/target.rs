//! What a document drives, alone or as a stack: checked, probed, predicted.

use std::ops::ControlFlow;

use flashkeel_experiment::{Error, Target, parse_model, predict, probe, resolve, resolve_target};

const DEVICE: &str = "\
[device]
logical_capacity = \"64MiB\"
map_cache = \"all\"
gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }
buffer = { size = \"256KiB\" }
geometry = { channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 64, pages_per_block = 32 }
";

/// A cache of memory over the device.
const TIER: &str = "\
[[stack.devices]]
tier.preset = \"base\"
tier.upper.dram = { capacity = \"16MiB\" }
tier.lower.ssd = {}
";

fn target(document: &str) -> Target {
    resolve_target(document, "drive.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(document: &str) -> String {
    match resolve(document, "exp.toml", &[], None) {
        Err(Error::Input(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_document_without_tables_is_a_device() {
    let keys = DEVICE.strip_prefix("[device]\n").expect("its first line");
    assert_eq!(target(keys), target(DEVICE));
}

#[test]
fn whoever_probes_a_stack_of_tenants_has_it_alone() {
    let tenants = "[[stack.tenants]]\nname = \"a\"\n[[stack.tenants]]\nname = \"b\"\n";
    let sectors = |document: &str| target(document).check().expect("a target").sectors;
    assert_eq!(sectors(&format!("{DEVICE}{tenants}")), sectors(DEVICE));
    let slip = format!("{DEVICE}{}", tenants.replace("name = \"b\"", "nmae = \"b\""));
    let refused = resolve_target(&slip, "drive.toml", &[]).unwrap_err().to_string();
    assert!(refused.contains("nmae"), "{refused}");
}

#[test]
fn a_table_beside_the_drive_is_one_of_an_experiment() {
    let beside = "title = \"Mine\"\nseed = 3\n";
    let behind = "[workload]\nrequests = 5\n[[runs]]\nname = \"a\"\n";
    assert_eq!(target(&format!("{beside}{DEVICE}{behind}")), target(DEVICE));
    let slip = format!("{DEVICE}[[stak.devices]]\nssd = {{}}\n");
    let refused = resolve_target(&slip, "drive.toml", &[]).unwrap_err().to_string();
    assert!(refused.contains("stak") && refused.contains("did you mean \"stack\"?"), "{refused}");
}

#[test]
fn a_stack_is_probed_as_it_is_run() {
    let found = |document: &str| {
        let report = probe(&target(document), 1, None, None, &mut |_, _| ControlFlow::Continue(()));
        report.unwrap_or_else(|error| panic!("{error}")).model
    };
    let (alone, cached) = (found(DEVICE), found(&format!("{DEVICE}{TIER}")));
    assert_eq!(alone.sectors, cached.sectors);
    // What was written just before is in memory.
    assert!(cached.latencies_ns.read < alone.latencies_ns.read / 2, "{cached:?}");
}

#[test]
fn a_model_of_another_device_is_refused_before_the_device_is_made() {
    let workload = "[workload]\nrequests = 10\npacing = \"closed\"\nsource = \"synthetic\"\n";
    let plan = &resolve(&format!("{DEVICE}{workload}"), "exp.toml", &[], None).unwrap()[0];
    let model = r#"{ "sectors": 4096, "volume_bits": [], "gc_volume_bits": null, "sleep": null, "undetermined": [],
        "write_buffer": { "bytes": null, "type": "unknown", "flush": [] },
        "thresholds_ns": { "read": 200000, "write": 200000 },
        "latencies_ns": { "read": 50000, "write": 50000, "flush": 0, "collection": 0 } }"#;
    let model = parse_model(model, "model.json").unwrap_or_else(|error| panic!("{error}"));
    let refused = predict(plan, &model, None, 1, None, &mut |phase, _| panic!("{phase}"));
    let why = refused.expect_err("another device").to_string();
    assert_eq!(why, "the model is of a device of 4096 sectors, this one has 131072");
}

#[test]
fn every_ssd_of_a_stack_counts_for_memory() {
    let bytes = |document: &str| target(document).check().expect("a target").memory_bytes;
    let one = bytes(DEVICE);
    assert!(one > 0);
    assert_eq!(bytes(&format!("{DEVICE}{TIER}")), one);
    let several = "[[stack.devices]]\nssd = {}\n[[stack.devices]]\nstack.devices = [{ ssd = {} }]\n";
    assert_eq!(bytes(&format!("{DEVICE}{several}[[stack.devices]]\nnvm = {{}}\n")), 2 * one);
}

/// A workload that is right for one device may be wrong for the next.
#[test]
fn each_variant_is_checked_on_its_own_device() {
    let document = format!(
        "{DEVICE}[workload]\nrequests = 10\npacing = \"closed\"\nsource = {{ policy = \"synthetic\", region_size = \
         \"48MiB\" }}\n[[runs]]\nname = \"large\"\n[[runs]]\nname = \"small\"\n\
         set.\"device.logical_capacity\" = \"32MiB\"\n"
    );
    let reaches_beyond = "the region reaches beyond the 32MiB of the device";
    assert!(refusal(&document).contains(reaches_beyond));
    let of_stacks = document.replace(
        "\"device.logical_capacity\" = \"32MiB\"",
        "\"stack.devices\" = [{ nvm = { capacity = \"32MiB\" } }]",
    );
    assert!(refusal(&of_stacks).contains(reaches_beyond));
}

/// Nothing is wrong before the steady state is made that would be found only then.
#[test]
fn a_journal_in_a_stack_of_memory_or_in_whole_pages_is_refused_at_once() {
    let with = |upper: &str| {
        format!(
            "{DEVICE}[workload]\nrequests = 10\npacing = \"closed\"\nsource = \"synthetic\"\n{}tier.journal = true\n",
            TIER.replace("upper.dram = { capacity = \"16MiB\" }", upper)
        )
    };
    let memory = refusal(&with("upper.stack.devices = [{ dram = { capacity = \"16MiB\" } }]"));
    assert!(memory.contains("the upper forgets everything when power is cut"));
    let mirror = "mirror.devices = [{ nvm.capacity = \"16MiB\" }, { nvm.capacity = \"16MiB\" }]";
    for (upper, block) in [("ssd = {}", ""), (mirror, ""), (mirror, ", block = \"4KiB\"")] {
        let upper = format!("upper.stack = {{ devices = [{{ network.device.{upper} }}]{block} }}");
        assert!(refusal(&with(&upper)).contains("units of 512 bytes"), "{upper}");
    }
}

#[test]
fn the_tenants_of_a_workload_share_what_is_put_into_its_plan() {
    let document = format!(
        "{DEVICE}[workload]\nrequests = 10\npacing = \"closed\"\nsource = \"synthetic\"\n\
         [stack]\nscheduler = \"fair\"\n[[stack.tenants]]\nname = \"a\"\n[[stack.tenants]]\nname = \"b\"\n"
    );
    let mut plan = resolve(&document, "exp.toml", &[], None).unwrap().remove(0);
    target(&format!("{DEVICE}{TIER}")).put_into(&mut plan);
    let stack = plan.config.stack.expect("the target's");
    assert_eq!((stack.tenants.len(), stack.devices[0].name(), stack.scheduler.name()), (2, "tier", "none"));
}
