//! Capacities of tiers as shares of what the workload touches.

use std::ops::ControlFlow;

use flashkeel_experiment::{Error, RunOutcome, RunPlan, resolve, run};

/// 2000 writes of 16 KiB, one behind the other, in the first 8 MiB: so much is touched.
const DOCUMENT: &str = "\
[device]
logical_capacity = \"64MiB\"
map_cache = \"all\"
gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }
geometry = { channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 64, pages_per_block = 32 }
[workload]
requests = 2000
pacing = \"closed\"
[workload.source]
policy = \"synthetic\"
read_fraction = 0.0
block_sizes = [\"16KiB\"]
pattern = \"sequential\"
region_size = \"8MiB\"
";
const TIERS: &str = "\
[[stack.devices]]
tier.preset = \"nlcwip\"
tier.upper.dram.capacity = \"2%\"
tier.lower.tier.upper.nvm.capacity = \"12.5 %\"
tier.lower.tier.lower.ssd = {}
";

fn plans(sets: &[(&str, &str)]) -> Result<Vec<RunPlan>, Error> {
    let sets: Vec<_> = sets.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    resolve(&format!("{DOCUMENT}{TIERS}"), "exp.toml", &sets, None)
}

fn outcome(document: &str) -> RunOutcome {
    let plans = resolve(document, "exp.toml", &[], None).unwrap_or_else(|error| panic!("{error}"));
    run(&plans[0], 1, None, &mut |_, _| ControlFlow::Continue(())).unwrap().outcome
}

fn capacities(plan: &RunPlan) -> [String; 2] {
    let stack = serde_json::to_value(plan.config.stack.as_ref().unwrap()).unwrap();
    let top = &stack["devices"][0]["tier"];
    [&top["upper"]["dram"]["capacity"], &top["lower"]["tier"]["upper"]["nvm"]["capacity"]]
        .map(|capacity| capacity.as_str().unwrap().to_owned())
}

#[test]
fn a_share_is_taken_of_the_blocks_that_are_touched() {
    assert_eq!(capacities(&plans(&[]).unwrap()[0]), ["160KiB", "1MiB"]);
    // The footprint follows the workload.
    let half = [("workload.source.region_size", "4MiB")];
    assert_eq!(capacities(&plans(&half).unwrap()[0])[1], "512KiB");
    let short =
        [("stack.nvm.capacity", "25%"), ("stack.tier", "write-back"), ("stack.devices", "[{ ssd = {} }]")];
    let plan = &plans(&short).unwrap()[0];
    let stack = serde_json::to_value(plan.config.stack.as_ref().unwrap()).unwrap();
    assert_eq!(stack["devices"][0]["tier"]["upper"]["nvm"]["capacity"], "2MiB");
}

#[test]
fn a_trim_touches_nothing() {
    let Err(Error::Input(message)) = plans(&[("workload.source.trim_fraction", "1")]) else {
        panic!("nothing is touched")
    };
    assert!(message.contains("footprint, which is empty"), "{message}");
}

#[test]
fn a_share_that_is_none_is_refused_with_its_key() {
    let key = "stack.devices.0.tier.upper.dram.capacity";
    for (sets, reason) in [
        ([(key, "0%"), ("workload.requests", "2000")], "no share of the footprint"),
        ([(key, "many%"), ("workload.requests", "2000")], "no share of the footprint"),
        ([(key, "5000%"), ("workload.requests", "2000")], "more than the"),
    ] {
        let Err(Error::Input(message)) = plans(&sets) else { panic!("{sets:?} is taken") };
        assert!(message.contains(reason) && message.contains("tier.upper"), "{message}");
    }
    let endless = format!("{DOCUMENT}{TIERS}").replace("requests = 2000", "duration = \"1s\"");
    let Err(Error::Input(message)) = resolve(&endless, "exp.toml", &[], None) else { panic!("it is taken") };
    assert!(message.contains("upper.nvm.capacity") && message.contains("workload.requests"), "{message}");
}

#[test]
fn an_upper_device_that_never_fills_is_named_in_a_note() {
    let is_named =
        |outcome: &RunOutcome| outcome.notes.iter().filter(|note| note.contains("never filled")).count();
    let base = |capacity: &str| {
        let tier =
            format!("tier.preset = \"base\"\ntier.upper.dram.capacity = {capacity:?}\ntier.lower.ssd = {{}}");
        outcome(&format!("{DOCUMENT}[[stack.devices]]\n{tier}\n"))
    };
    assert_eq!(is_named(&base("200%")), 1);
    assert_eq!(is_named(&base("10%")), 0);
}
