//! Traces by themselves: options, generation, conversion.

use std::{fs, path::Path};

use flashkeel_experiment::{resolve, trace_convert, trace_info, trace_synth};

#[test]
fn options_are_checked_like_any_configuration() {
    let path = Path::new("none.csv");
    let refusal = |options: &str| trace_info(path, options).unwrap_err().to_string();
    assert_eq!(refusal(r#"{"formt": "msr"}"#), "--set formt: unknown key; did you mean \"format\"?");
    assert!(refusal(r#"{"window.from": "5"}"#).starts_with("--set window.from: \"5\" has no unit"));
    assert_eq!(refusal("3"), "trace options: not a table");
    assert!(refusal("{}").starts_with("none.csv: "));
}

#[test]
fn a_generated_workload_becomes_a_trace_and_another() {
    let document = "[workload]\nrequests = 500\nsource = { policy = \"synthetic\", arrivals = \"poisson\" }";
    let plan = &resolve(document, "test", &[], None).unwrap()[0];
    let config = serde_json::to_string(&plan.config).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (first, second) = (folder.join("synth.msr"), folder.join("synth.fio"));
    let written = trace_synth(&config, &first, "msr", 1).unwrap();
    assert_eq!(written.requests, 500);
    let formats = [("fio", &second)];
    for (format, out) in formats {
        let written = trace_convert(&first, "{}", out, format).unwrap();
        assert_eq!(written.requests, 500);
    }
    assert_eq!(trace_info(&second, "{}").unwrap().requests, 500);
    let error = trace_convert(&first, "{}", &second, "msrr").unwrap_err().to_string();
    assert!(error.ends_with("did you mean \"msr\"?"), "{error}");
    for file in [first, second] {
        fs::remove_file(file).unwrap();
    }
}
