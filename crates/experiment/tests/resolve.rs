//! From a document to plans: layers, variants, and every refusal's message.

use flashkeel_device::Geometry;
use flashkeel_engine::Span;
use flashkeel_experiment::{EXPERIMENTS, Error, RunPlan, list, resolve, show};

const WORKLOAD: &str = "\
[workload]
requests = 100
[workload.source]
policy = \"synthetic\"
arrivals = \"poisson\"
";

fn sets(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
}

fn plans(document: &str, pairs: &[(&str, &str)]) -> Vec<RunPlan> {
    resolve(document, "exp.toml", &sets(pairs), None).unwrap()
}

fn refusal(document: &str, pairs: &[(&str, &str)]) -> String {
    match resolve(document, "exp.toml", &sets(pairs), None) {
        Err(Error::Input(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// The presets of SSDs.
fn ssds() -> Vec<String> {
    flashkeel_device::PRESETS.iter().map(|(name, _)| name.to_string()).collect()
}

#[test]
fn a_document_without_variants_is_one_run() {
    let found = plans(WORKLOAD, &[]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].config.seed), ("run", 1));
    assert_eq!(resolve(WORKLOAD, "x", &[], Some(9)).unwrap()[0].config.seed, 9);
    assert_eq!(plans(&format!("seed = 4\n{WORKLOAD}"), &[])[0].config.seed, 4);
}

#[test]
fn layers_lie_in_order() {
    let document = format!(
        "{WORKLOAD}\
         [measure]\nseries_window = \"1s\"\nlog_rows = 5\n\
         [[runs]]\nname = \"a\"\n\
         [[runs]]\nname = \"b\"\nset = {{ \"measure.series_window\" = \"2s\", measure.log_rows = 6 }}\n"
    );
    let windows = |pairs: &[_]| -> Vec<_> {
        plans(&document, pairs)
            .iter()
            .map(|plan| (plan.name.clone(), plan.config.measure.series_window, plan.config.measure.log_rows))
            .collect()
    };
    let row = |name: &str, seconds, rows| (name.to_string(), Span::from_secs(seconds), rows);
    assert_eq!(windows(&[]), [row("a", 1, 5), row("b", 2, 6)]);
    assert_eq!(windows(&[("measure.series_window", "3s")]), [row("a", 3, 5), row("b", 3, 6)]);
}

#[test]
fn a_setting_of_a_default_policy_needs_no_policy() {
    let plan = &plans(WORKLOAD, &[("device.scheduler", "debit")])[0];
    assert_eq!(plan.config.device.scheduler.name(), "debit");
    let sharper = &plans(WORKLOAD, &[("device.scheduler.period", "123us")])[0];
    assert_eq!(sharper.config.device.scheduler.name(), "debit");
    assert_ne!(sharper.config.device.scheduler, plan.config.device.scheduler);
}

#[test]
fn an_override_can_choose_another_preset() {
    let document = format!("device.preset = \"autossd\"\n{WORKLOAD}");
    assert_eq!(plans(&document, &[])[0].preset.as_deref(), Some("autossd"));
    for preset in ssds() {
        let found = &plans(&document, &[("device.preset", &preset)])[0];
        assert_eq!(found.preset.as_ref(), Some(&preset));
    }
}

#[test]
fn policies_are_laid_over_any_flash() {
    for flash in ssds() {
        let over = format!("[\"{flash}\", \"keel\"]");
        let found = &plans(WORKLOAD, &[("device.preset", &over)])[0];
        assert_eq!(found.preset, Some(format!("{flash}+keel")));
        let device = &found.config.device;
        let geometry = Geometry::resolve(&device.geometry).expect("valid");
        let share = device.logical_capacity.0 as f64 / (geometry.units() * 4096) as f64;
        // Rounded down to whole periods of the partition bits.
        assert!((0.8..=0.875).contains(&share), "{flash}: {share} of the flash");
        assert_eq!(device.gc.movement.name(), "page-copyback");
    }
}

#[test]
fn a_capacity_is_a_share_of_the_flash() {
    let share = |capacity: &str| {
        format!("[device]\npreset = \"tlc-modern\"\nlogical_capacity = \"{capacity}\"\n{WORKLOAD}")
    };
    let (half, flash) = (plans(&share("50%"), &[])[0].config.device.clone(), 8 * 440 * 2304 * 4 * (16 << 10));
    assert_eq!(half.logical_capacity.0, flash / 2);
    for wrong in ["101%", "-1%", "x%", "%"] {
        let message = refusal(&share(wrong), &[]);
        let expected = format!(
            "exp.toml:3: device.logical_capacity: \"{wrong}\" is no share of the flash; write one as"
        );
        assert!(message.starts_with(&expected), "{message}");
    }
    assert!(refusal(&share("100%"), &[]).contains("too little over-provisioning"));

    // The parts of a device are of one size, whatever the share comes to.
    let pages = |sets: &str| {
        let plan = &plans(&share("33.3333%"), &[("device.sets", sets)])[0];
        plan.config.device.logical_capacity.0 / 4096
    };
    assert!(!pages("1").is_multiple_of(8));
    assert_eq!(pages("8"), pages("1") / 8 * 8);
    let beyond = refusal(&share("50%"), &[("device.partition_bits", "[40]")]);
    assert!(beyond.contains("is not a multiple of 1024TiB, the period of partition bit 40"), "{beyond}");
}

#[test]
fn a_plan_survives_json() {
    for plan in plans(&show("demo").unwrap(), &[]) {
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<RunPlan>(&text).unwrap(), plan);
    }
}

#[test]
fn the_built_in_experiments_resolve() {
    for (name, document) in EXPERIMENTS {
        assert!(!resolve(document, name, &[], None).unwrap().is_empty());
    }
    let names: Vec<_> = plans(&show("demo").unwrap(), &[]).into_iter().map(|plan| plan.name).collect();
    assert_eq!(names, ["fifo", "priority", "fair", "debit"]);
}

#[test]
fn wrong_documents_are_refused_with_place_and_remedy() {
    for (prefix, suffix, expected) in [
        ("[devise]\n", "", "exp.toml:1: devise: unknown key; did you mean \"device\"?"),
        ("tittle = 1\n", "", "exp.toml:1: tittle: unknown key; did you mean \"title\"?"),
        ("seed = -1\n", "", "exp.toml:1: seed: expected a whole number, 0 or more, found the integer -1"),
        (
            "device.preset = \"autosd\"\n",
            "",
            "exp.toml:1: device.preset: unknown preset \"autosd\", expected one of PRESETS; did you mean \"autossd\"?",
        ),
        (
            "device.preset = 3\n",
            "",
            "exp.toml:1: device.preset: expected the name of a preset, or several in an array, of PRESETS",
        ),
        (
            "",
            "[measure]\nseries_window = \"50\"",
            "exp.toml:7: measure.series_window: \"50\" has no unit; a duration is a number and a unit \
             (ns, us, ms, s, min, h, d, w)",
        ),
        (
            "",
            "[[runs]]\nname = \"a\"\n[[runs]]\nname = \"a\"",
            "exp.toml:9: runs.1.name: two runs are named \"a\"",
        ),
        ("", "[[runs]]\nnam = \"a\"", "exp.toml:7: runs.0.nam: unknown key; did you mean \"name\"?"),
        ("", "[[runs]]\nset = {}", "exp.toml:6: runs.0: the key \"name\" is missing"),
        ("", "[[runs]]\nname = \"\"", "exp.toml:7: runs.0.name: a run needs a name"),
        (
            "",
            "[[runs]]\nname = \"a\\tb\"",
            "exp.toml:7: runs.0.name: \"a\\tb\" has control characters in it, such as a line's end",
        ),
        ("runs = []\n", "", "exp.toml:1: runs: there are none; leave the key out for a single run"),
        (
            "",
            "[[runs]]\nname = \"a\"\nset = { \"device.shceduler\" = \"fifo\" }",
            "exp.toml:8: device.shceduler: unknown key; did you mean \"scheduler\"?",
        ),
        (
            "",
            "[[runs]]\nname = \"a\"\nset = { \"device..x\" = 1 }",
            "exp.toml:8: \"device..x\" is not a key; write names joined by dots, such as device.scheduler",
        ),
        ("", "seed = 1\nseed = 2", "exp.toml:7: column 1: duplicate key"),
    ] {
        let expected = expected.replace("PRESETS", &ssds().join(", "));
        assert_eq!(refusal(&format!("{prefix}{WORKLOAD}{suffix}"), &[]), expected, "{prefix}{suffix}");
    }
    assert_eq!(refusal("", &[]), "exp.toml:1: the key \"workload\" is missing");
    let sources = "exp.toml:1: workload: the key \"source\" is missing; one of trace, synthetic, profile";
    assert_eq!(refusal("[workload]", &[]), sources);
    let tier = "stack.devices = [{ tier = { upper = { nvm = {} }, lower = { ssd = {} } } }]\n\
                [workload]\nsource.policy = \"synthetic\"";
    let policies = "none, write-back, small-large, hybrid-pas";
    let key = "exp.toml:1: stack.devices.0.tier: the key \"placement\" is missing; one of";
    assert_eq!(refusal(tier, &[]), format!("{key} {policies}"));
    let (cut, _) = WORKLOAD.split_at(WORKLOAD.len() - 4);
    assert!(refusal(cut, &[]).starts_with("exp.toml:5: column "), "a truncated document");
}

#[test]
fn wrong_overrides_are_named_as_overrides() {
    for (path, text, expected) in [
        ("device.schduler", "fifo", "--set device.schduler: unknown key; did you mean \"scheduler\"?"),
        (
            "device.gc.victim",
            "{policy = \"d-choices\", d = 0}",
            "--set device.gc.victim.d: is 0; it must lie between 1 and 1000",
        ),
        ("device.presett", "autossd", "--set device.presett: unknown key; did you mean \"preset\"?"),
        ("workload.requests", "0", "--set workload.requests: a workload has at least 1 request"),
        (
            "workload.source.read_fraction",
            "1.5",
            "--set workload.source.read_fraction: 1.5 is not between 0 and 1",
        ),
        ("runs.0.name", "x", "--set runs: expected an array, found a table"),
    ] {
        assert_eq!(refusal(WORKLOAD, &[(path, text)]), expected);
    }
}

#[test]
fn a_key_deeper_than_any_is_refused_before_anything_recurs_over_it() {
    let deep = ["a"; 60_000].join(".");
    assert!(refusal(WORKLOAD, &[(&deep, "1")]).contains("more than 64 names"));
    let run = format!("{WORKLOAD}[[runs]]\nname = \"a\"\nset = {{ \"{deep}\" = 1 }}\n");
    assert!(refusal(&run, &[]).contains("more than 64 names"));
}

#[test]
fn impossible_devices_are_refused_at_the_key_at_fault() {
    for (path, text, expected) in [
        (
            "device.geometry.channels",
            "0",
            "--set device.geometry.channels: is 0; it must lie between 1 and 256",
        ),
        (
            "device.logical_capacity",
            "300GiB",
            "--set device.logical_capacity: 300GiB exceeds the flash, 256GiB",
        ),
        ("device.timing.read", "[]", "--set device.timing.read: is empty; give one time per page type"),
    ] {
        assert_eq!(refusal(WORKLOAD, &[(path, text)]), expected);
    }
    let full = format!("\n[device]\nlogical_capacity = \"256GiB\"\n{WORKLOAD}");
    let message = refusal(&full, &[]);
    assert!(
        message.starts_with("exp.toml:3: device.logical_capacity: too little over-provisioning: "),
        "{message}"
    );
}

#[test]
fn what_is_wrong_with_a_default_is_placed_at_what_was_written_beside_it() {
    let flush = "device.buffer.flush: has \"page\" with kind \"fore\": ";
    let message = refusal(&format!("{WORKLOAD}[device]\n\nbuffer.kind = \"fore\"\n"), &[]);
    assert!(message.starts_with(&format!("exp.toml:8: {flush}")), "{message}");
    // Nothing in the document, and no set key of that name.
    let message = refusal(&format!("{WORKLOAD}[device]\n"), &[("device.buffer.kind", "fore")]);
    assert!(message.starts_with(flush), "{message}");
    let scrub = "exp.toml:7: device.scrub.stop_below: is 80000, above scrub.start_above";
    let message = refusal(&format!("{WORKLOAD}[device]\nscrub.start_above = 5\n"), &[]);
    assert!(message.starts_with(scrub), "{message}");
}

#[test]
fn a_path_in_a_document_starts_at_its_folder() {
    let document = "[workload.source]\npolicy = \"trace\"\npath = \"none.csv\"";
    let refusal = |name: &str, pairs| match resolve(document, name, &sets(pairs), None) {
        Err(Error::Input(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(refusal("a/b/exp.toml", &[]).starts_with("a/b/none.csv: "));
    assert!(refusal("exp.toml", &[]).starts_with("none.csv: "));
    assert!(refusal("a/exp.toml", &[("workload.source.path", "other.csv")]).starts_with("other.csv: "));
}

#[test]
fn so_does_one_of_a_demand_whose_mistakes_have_their_own_place() {
    let arrivals = |traffic: &str| {
        format!(
            "[workload]\nrequests = 1\n[workload.source]\npolicy = \"synthetic\"\nread_fraction = 0.0\n\
                 [workload.source.arrivals]\npolicy = \"demand\"\n[workload.source.arrivals.traffic]\n{traffic}"
        )
    };
    let refusal = |traffic: &str| match resolve(&arrivals(traffic), "a/exp.toml", &[], None) {
        Err(Error::Input(message)) => message,
        other => panic!("{other:?}"),
    };
    let series = refusal("policy = \"series\"\npath = \"traffic.csv\"");
    assert!(series.starts_with("a/traffic.csv: "), "{series}");
    let trace = refusal("policy = \"trace\"\ntrace = { path = \"none.csv\" }");
    assert!(trace.starts_with("a/none.csv: "), "{trace}");
    let key = refusal("policy = \"profile\"\nname = \"prox\"");
    assert!(key.starts_with("a/exp.toml:10: workload.source.arrivals.traffic.name: "), "{key}");
    let key = refusal("policy = \"trace\"\ntrace = { path = \"none.csv\", align = \"3KiB\" }");
    assert!(key.starts_with("a/exp.toml:10: workload.source.arrivals.traffic.trace.align: "), "{key}");
}

#[test]
fn so_does_one_in_what_a_run_sets() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("set-paths");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("t.mqsim"), "0 0 0 8 1\n1000 0 8 8 0\n").expect("a trace");
    let name = folder.join("exp.toml").display().to_string();
    let trace = "{ policy = \"trace\", path = \"t.mqsim\" }";
    let open = "\"workload.pacing\" = \"open\"";
    let tenants = format!("[{{ name = \"t\", workload = {{ source = {trace}, requests = 1 }} }}]");
    for set in [
        format!("\"workload.source\" = {trace}, {open}"),
        format!("workload = {{ source = {trace}, pacing = \"open\" }}"),
        format!("\"workload.source.path\" = \"t.mqsim\", \"workload.source.policy\" = \"trace\", {open}"),
        format!("\"stack.tenants\" = {tenants}"),
        format!("stack = {{ tenants = {tenants} }}"),
    ] {
        let document = format!("[[runs]]\nname = \"a\"\nset = {{ {set} }}\n");
        let found = resolve(&document, &name, &[], None);
        assert!(found.is_ok(), "{set}: {found:?}");
    }
    let file = "[[runs]]\nname = \"a\"\nset = { stack.devices = [{ file = { path = \"no\" } }] }\n";
    let found = resolve(&format!("{WORKLOAD}{file}"), &name, &[], None);
    let Err(Error::Input(message)) = found else { panic!("there is none: {found:?}") };
    assert!(message.contains("set-paths/no"), "{message}");
}

#[test]
fn a_policy_may_be_named_behind_its_settings() {
    let victims = |pairs: &[_]| {
        let mut plans = plans(WORKLOAD, pairs);
        serde_json::to_value(plans.remove(0).config.device.gc.victim).expect("JSON")
    };
    let three = serde_json::json!({ "policy": "d-choices", "d": 3 });
    let (policy, d) = (("device.gc.victim.policy", "d-choices"), ("device.gc.victim.d", "3"));
    assert_eq!(victims(&[policy, d]), three);
    assert_eq!(victims(&[d, policy]), three);
    assert_eq!(victims(&[("device.gc.victim.policy", "fifo"), d, policy]), three);
    // What is written later replaces what it names as a whole.
    assert_eq!(victims(&[d, policy, ("device.gc.victim", "greedy")])["policy"], "greedy");
    assert_eq!(victims(&[("device.gc.victim", "greedy"), d, policy]), three);
}

#[test]
fn unknown_names_are_refused_with_a_suggestion() {
    assert!(show("dmeo").unwrap_err().to_string().ends_with("did you mean \"demo\"?"));
    assert!(list("preset").unwrap_err().to_string().ends_with("did you mean \"presets\"?"));
    for policy in ["scheduler debit", "I/O scheduler pas", "volume manager va-lvm", "placement hybrid-pas"] {
        assert!(list("policies").unwrap().contains(&policy.to_string()), "{policy}");
    }
}

#[test]
fn what_is_wrong_in_some_runs_only_names_the_first_of_them() {
    let runs = "[[runs]]\nname = \"plain\"\nset = { \"device.window\" = \"none\" }\n\
                [[runs]]\nname = \"turns\"\nset = { \"device.window\" = \"periodic\" }\n";
    let document = format!("{WORKLOAD}{runs}");
    let refused = |pair| refusal(&document, &[pair]);
    let message = refused(("device.window.policy", "\"alternating\""));
    assert!(
        message.starts_with("--set device.window: unknown window ") && !message.contains("run"),
        "{message}"
    );
    let message = refused(("device.window.bogus", "1"));
    assert!(message.ends_with("(in the run \"plain\")"), "{message}");
    let message = refused(("device.window.period", "0"));
    assert!(message.ends_with("(in the run \"plain\")"), "{message}");
    let single = format!("{WORKLOAD}[device]\nwindow = \"none\"\n");
    assert!(refusal(&single, &[("device.window.bogus", "1")]).ends_with("no keys here"));
}

/// Once the run ended before it was told that its tables could not be written.
#[test]
fn a_name_that_no_file_can_have_is_refused() {
    let named = |name: &str| format!("{WORKLOAD}[[runs]]\nname = \"{name}\"");
    assert!(resolve(&named(&"a".repeat(200)), "exp.toml", &[], None).is_ok());
    for (name, length) in [("a".repeat(201), 201), ("\u{e9}".repeat(34), 204)] {
        let expected = format!(
            "exp.toml:7: runs.0.name: it is part of the names of files, and takes {length} characters there, 200 \
             at most"
        );
        assert_eq!(refusal(&named(&name), &[]), expected);
    }
}

#[test]
fn closed_pacing_of_a_higher_layer_leaves_out_the_arrivals_below() {
    let note = "pacing is closed: the arrivals of exp.toml:5 are left out";
    let closed = [("workload.pacing", "{ policy = \"closed\", depth = 8 }")];
    assert_eq!(plans(WORKLOAD, &closed)[0].notes, [note]);
    let policy = [("workload.pacing.policy", "closed"), ("workload.pacing.depth", "8")];
    assert_eq!(plans(WORKLOAD, &policy)[0].notes, [note]);
    let variants =
        format!("{WORKLOAD}[[runs]]\nname = \"a\"\nset = {{ \"workload.pacing.policy\" = \"closed\" }}\n");
    assert_eq!(plans(&variants, &[("workload.pacing.depth", "4")])[0].notes, [note]);
    let tenant = format!("{WORKLOAD}[[stack.tenants]]\nname = \"a\"\nworkload.pacing = \"closed\"\n");
    assert_eq!(plans(&tenant, &[])[0].notes, [note]);
    let tenants = format!("{WORKLOAD}[[stack.tenants]]\nname = \"a\"\n");
    let only = [("stack.tenants.0.workload.pacing", "closed")];
    assert_eq!(plans(&tenants, &only)[0].notes, [note]);
    assert!(plans(WORKLOAD, &[]).iter().all(|plan| plan.notes.is_empty()));
}

#[test]
fn arrivals_beside_closed_pacing_are_refused() {
    let both = format!("{WORKLOAD}[workload.pacing]\npolicy = \"closed\"\n");
    let said = "workload.source.arrivals: closed pacing decides when requests arrive; leave it out";
    assert!(refusal(&both, &[]).contains(said));
    let arrivals = ("workload.source.arrivals", "{ policy = \"poisson\", iops = 9 }");
    assert!(refusal(WORKLOAD, &[arrivals, ("workload.pacing", "closed")]).contains(said));
}
