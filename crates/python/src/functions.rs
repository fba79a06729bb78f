//! Functions that take and give text.

use std::path::PathBuf;

use flashkeel_experiment as experiment;
use pyo3::prelude::*;
use serde_json::to_string;

use crate::{errors::exception, progress::watched};

pub(crate) fn json<T: serde::Serialize>(value: T) -> String {
    to_string(&value).expect("results are plain data")
}

/// Version of the simulator.
#[pyfunction]
pub fn version() -> &'static str {
    experiment::VERSION
}

/// Resolve a TOML document into a JSON list of run plans.
#[pyfunction]
#[pyo3(signature = (document, name, sets, seed=None, progress=None))]
pub fn resolve(
    py: Python<'_>,
    document: &str,
    name: &str,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::resolve_watched(document, name, &sets, seed, &mut |done| reporter.report("scan", done))
    })
    .map(json)
}

/// Say who owns the latency above a percentile, as JSON.
#[pyfunction]
#[pyo3(signature = (result_json, run_name, class_, above))]
pub fn explain(result_json: &str, run_name: &str, class_: &str, above: &str) -> PyResult<String> {
    experiment::explain(result_json, run_name, class_, above).map(json).map_err(exception)
}

/// Nanoseconds of a time as documents write it: `20us`.
#[pyfunction]
pub fn span_ns(text: &str) -> PyResult<u64> {
    experiment::span_ns(text).map_err(exception)
}

/// Pool the runs of one plan with different seeds.
#[pyfunction]
pub fn merge(py: Python<'_>, runs: Vec<String>) -> PyResult<String> {
    watched(py, None, |_| experiment::merge(&runs)).map(json)
}

/// Describe a trace, as JSON.
#[pyfunction]
#[pyo3(signature = (path, options_json, progress=None))]
pub fn trace_info(
    py: Python<'_>,
    path: PathBuf,
    options_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::trace_info(&path, options_json, &mut |done| reporter.report("read", done))
    })
    .map(json)
}

/// Name the format of a trace.
#[pyfunction]
pub fn trace_format(py: Python<'_>, path: PathBuf, options_json: &str) -> PyResult<String> {
    watched(py, None, |_| experiment::trace_format(&path, options_json)).map(|format| format.to_string())
}

/// Name the files that are read of a trace.
#[pyfunction]
pub fn trace_files(path: PathBuf) -> Vec<PathBuf> {
    experiment::trace_files(&path)
}

/// Convert a trace to another format; give the counts as JSON.
#[pyfunction]
#[pyo3(signature = (path, options_json, out_path, out_format, progress=None))]
pub fn trace_convert(
    py: Python<'_>,
    path: PathBuf,
    options_json: &str,
    out_path: PathBuf,
    out_format: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::trace_convert(&path, options_json, &out_path, out_format, &mut |done| {
            reporter.report("convert", done)
        })
    })
    .map(json)
}

/// Write the workload of a resolved experiment as a trace; give the counts as JSON.
#[pyfunction]
#[pyo3(signature = (config_json, out_path, out_format, seed, progress=None))]
pub fn trace_synth(
    py: Python<'_>,
    config_json: &str,
    out_path: PathBuf,
    out_format: &str,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::trace_synth(config_json, &out_path, out_format, seed, &mut |done| {
            reporter.report("write", done)
        })
    })
    .map(json)
}

/// Write several traces as one; give the counts as JSON.
#[pyfunction]
#[pyo3(signature = (paths, options_json, beginnings, spaces, out_path, out_format, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn trace_merge(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options_json: &str,
    beginnings: &str,
    spaces: &str,
    out_path: PathBuf,
    out_format: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::trace_merge(
            &paths,
            options_json,
            (beginnings, spaces),
            &out_path,
            out_format,
            &mut |done| reporter.report("merge", done),
        )
    })
    .map(json)
}

/// Write a synthetic trace that is like another; give the counts as JSON.
#[pyfunction]
#[pyo3(signature = (path, options_json, out_path, out_format, seed, requests=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn trace_like(
    py: Python<'_>,
    path: PathBuf,
    options_json: &str,
    out_path: PathBuf,
    out_format: &str,
    seed: u64,
    requests: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::trace_like(&path, options_json, (seed, requests), &out_path, out_format, &mut |done| {
            reporter.report("write", done)
        })
    })
    .map(json)
}

/// Find how long drives last, as JSON: for each plan a life with each seed.
#[pyfunction]
#[pyo3(signature = (plans_json, seeds, progress=None))]
pub fn lifetimes(
    py: Python<'_>,
    plans_json: &str,
    seeds: Vec<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |reporter| {
        experiment::lifetimes(plans_json, &seeds, &mut |phase, done| reporter.report(phase, done))
    })
    .map(json)
}

/// The built-in write profiles, as JSON.
#[pyfunction]
pub fn write_profiles() -> String {
    json(experiment::write_profiles())
}

/// Names of the series of a write demand, as JSON.
#[pyfunction]
pub fn demand_names(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    watched(py, None, |_| experiment::demand_names(&path)).map(json)
}

/// Share of a traffic's periods in which the demand is like that of the period before.
#[pyfunction]
pub fn demand_similarity(
    py: Python<'_>,
    traffic_json: &str,
    period_s: u64,
    share: f64,
    seed: u64,
) -> PyResult<Option<f64>> {
    watched(py, None, |_| experiment::demand_similarity(traffic_json, period_s, share, seed))
}

/// List `presets`, `tiers`, `policies`, `profiles` or `experiments`, as JSON.
#[pyfunction]
pub fn list_names(kind: &str) -> PyResult<String> {
    experiment::list(kind).map(json).map_err(exception)
}

/// The TOML document of a built-in experiment, preset or profile.
#[pyfunction]
pub fn show(name: &str) -> PyResult<String> {
    experiment::show(name).map_err(exception)
}

/// The JSON Schema of an experiment document.
#[pyfunction]
pub fn schema() -> String {
    serde_json::to_string_pretty(&experiment::schema()).expect("a schema is plain data")
}

/// The configuration reference in Markdown.
#[pyfunction]
pub fn reference() -> String {
    experiment::reference()
}
