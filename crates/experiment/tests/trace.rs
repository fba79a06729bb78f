//! Traces by themselves: options, generation, conversion.

use std::{fs, ops::ControlFlow, path::Path};

use flashkeel_experiment::{
    Error, list, resolve, resolve_watched, show, trace_convert, trace_info, trace_synth,
};

fn go_on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn options_are_checked_like_any_configuration() {
    let path = Path::new("none.csv");
    let refusal = |options: &str| trace_info(path, options, &mut go_on).unwrap_err().to_string();
    assert_eq!(refusal(r#"{"formt": "msr"}"#), "--set formt: unknown key; did you mean \"format\"?");
    assert!(refusal(r#"{"window.from": "5"}"#).starts_with("--set window.from: \"5\" has no unit"));
    assert_eq!(refusal("3"), "trace options: not a table");
    assert!(refusal("{}").starts_with("none.csv: "));
}

#[test]
fn what_is_wrong_in_a_trace_is_found_once_however_many_runs_have_it() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.csv");
    let line =
        |index: u64| format!("{},host,0,Write,{},4096,0\n", 128166372003061629 + 1000 * index, 4096 * index);
    let text: String = (0..40_000).map(line).chain(["no line of it\n".to_owned()]).collect();
    fs::write(&path, text).unwrap();
    let runs = "[[runs]]\nname = \"a\"\n[[runs]]\nname = \"b\"\nset = { \"device.scheduler\" = \"fifo\" }\n";
    let refused = |runs: &str| {
        let source = format!("source = {{ policy = \"trace\", path = {path:?}, fold = \"compact\" }}");
        let document = format!("[workload]\npacing = \"closed\"\n{source}\n{runs}");
        let mut asked = 0;
        let refused = resolve_watched(&document, "test", &[], None, &mut |_| {
            asked += 1;
            ControlFlow::Continue(())
        });
        (refused.unwrap_err().to_string(), asked)
    };
    let (alone, among) = (refused(""), refused(runs));
    assert!(alone.0.contains("wrong.csv:40001: ") && alone.1 > 0, "{alone:?}");
    assert_eq!(among, alone);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_generated_workload_becomes_a_trace_and_another() {
    let document = "[workload]\nrequests = 500\nsource = { policy = \"synthetic\", arrivals = \"poisson\" }";
    let plan = &resolve(document, "test", &[], None).unwrap()[0];
    let config = serde_json::to_string(&plan.config).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (first, second) = (folder.join("synth.msr"), folder.join("synth.fio"));
    let written = trace_synth(&config, &first, "msr", 1, &mut go_on).unwrap();
    assert_eq!(written.requests, 500);
    let formats = [("fio", &second)];
    for (format, out) in formats {
        let written = trace_convert(&first, "{}", out, format, &mut go_on).unwrap();
        assert_eq!(written.requests, 500);
    }
    assert_eq!(trace_info(&second, "{}", &mut go_on).unwrap().requests, 500);
    let error = trace_convert(&first, "{}", &second, "msrr", &mut go_on).unwrap_err().to_string();
    assert!(error.ends_with("did you mean \"msr\"?"), "{error}");
    for file in [first, second] {
        fs::remove_file(file).unwrap();
    }
}

/// Once it was as large as the device that is not used beside a stack.
#[test]
fn a_workload_of_a_stack_is_as_large_as_that() {
    let document = "stack.devices = [{ nvm = { preset = \"optane-memory-32gb\", capacity = \"1MiB\" } }]\n\
                    [workload]\nrequests = 500\nsource = { policy = \"synthetic\", arrivals = \"poisson\" }";
    let plan = &resolve(document, "test", &[], None).unwrap()[0];
    let config = serde_json::to_string(&plan.config).unwrap();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stack.fio");
    trace_synth(&config, &out, "fio", 1, &mut go_on).unwrap();
    let info = trace_info(&out, "{}", &mut go_on).unwrap();
    assert_eq!(info.max_address_bytes, 1 << 20);
    fs::remove_file(out).unwrap();
}

#[test]
fn a_workload_that_a_drive_ends_is_no_trace() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("endless.fio");
    let synth = |end: &str, pacing: &str, source: &str| {
        let document = format!("[workload]\n{end}\npacing = \"{pacing}\"\nsource = {{ {source} }}");
        let plan = &resolve(&document, "test", &[], None).unwrap()[0];
        let config = serde_json::to_string(&plan.config).unwrap();
        trace_synth(&config, &out, "fio", 1, &mut go_on)
    };
    let (plain, timed) = ("policy = \"synthetic\"", "policy = \"synthetic\", arrivals = \"poisson\"");
    for (pacing, source) in
        [("closed", plain), ("think", timed), ("think", "policy = \"profile\", name = \"rad-as\"")]
    {
        let error = synth("duration = \"1ms\"", pacing, source).unwrap_err().to_string();
        let expected = format!("workload.duration: under the pacing \"{pacing}\" a drive says how many");
        assert!(error.starts_with(&expected) && error.ends_with("set workload.requests"), "{error}");
        assert!(!out.exists());
        assert_eq!(synth("requests = 7", pacing, source).unwrap().requests, 7);
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn every_listed_profile_shows_as_an_experiment_that_uses_it() {
    let names = list("profiles").unwrap();
    assert!(!names.is_empty());
    for name in names {
        let document = show(&name).unwrap();
        let plan = &resolve(&document, &name, &[], None).unwrap()[0];
        let source = serde_json::to_value(&plan.config.workload.source).unwrap();
        assert_eq!((&source["policy"], &source["name"]), (&"profile".into(), &name.as_str().into()));
    }
}

#[test]
fn a_scan_before_a_run_is_watched() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("long.mqsim");
    let lines: String = (0..40_000).map(|n| format!("{} 0 {} 8 1\n", n * 1000, n % 1000 * 8)).collect();
    fs::write(&path, lines).unwrap();
    let document = format!("[workload.source]\npolicy = \"trace\"\npath = {:?}", path);
    // Of one that is broken off nothing is remembered.
    let stopped = resolve_watched(&document, "test", &[], None, &mut |_| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err(), Error::Interrupted);
    let mut told = Vec::new();
    resolve_watched(&document, "test", &[], None, &mut |fraction| {
        told.push(fraction);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(!told.is_empty() && told.is_sorted(), "{told:?}");
    fs::remove_file(path).unwrap();
}
