//! Traces by themselves: described, converted, generated.

use std::path::{Path, PathBuf};

use flashkeel_config::{Node, Origin};
use flashkeel_workload::{
    Beginnings, Context, FormatName, Seeds, SourceConfig, Trace, TraceInfo, Watch, WriterName, Written,
};
use serde_json::Value;

use crate::{Error, Experiment, Target, stack};

/// Reads a trace to its end and describes it. `options` is a JSON object with
/// keys of the trace source, such as `format`; `watch` is told how much has been
/// read.
///
/// # Errors
/// What is wrong with an option, the first thing wrong with the trace, or that
/// `watch` breaks off.
pub fn trace_info(path: &Path, options: &str, watch: &mut Watch<'_>) -> Result<TraceInfo, Error> {
    Ok(flashkeel_workload::info(&trace(path, options)?, watch)?)
}

/// The format of a trace, by `options` as for [`trace_info`] or what it begins with.
///
/// # Errors
/// What is wrong with an option, or that it is no trace.
pub fn trace_format(path: &Path, options: &str) -> Result<FormatName, Error> {
    Ok(trace(path, options)?.format()?)
}

/// Writes a trace to `out` in another format; options and `watch` as for
/// [`trace_info`].
///
/// # Errors
/// What is wrong with an option or the trace, that `out` cannot be written, or
/// that `watch` breaks off.
pub fn trace_convert(
    path: &Path,
    options: &str,
    out: &Path,
    format: &str,
    watch: &mut Watch<'_>,
) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    Ok(flashkeel_workload::convert(&trace(path, options)?, format, out, watch)?)
}

/// Writes the workload of a resolved experiment, given as JSON, as a trace;
/// `watch` as for [`trace_info`].
///
/// # Errors
/// If the workload is wrong or never ends, or after a time that only a drive can tell, `out` cannot be written, or `watch`
/// breaks off.
pub fn trace_synth(
    experiment: &str,
    out: &Path,
    format: &str,
    seed: u64,
    watch: &mut Watch<'_>,
) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    let experiment: Experiment = serde_json::from_str(experiment)
        .map_err(|error| Error::Input(format!("not a resolved experiment: {error}")))?;
    if experiment.stack.as_ref().is_some_and(|stack| !stack.tenants.is_empty()) {
        return Err(Error::Input("each tenant of the stack has a workload; a trace holds only one".into()));
    }
    if experiment.workload.is_ended_by_a_drive() {
        return Err(Error::Input(format!(
            "workload.duration: under the pacing \"{}\" a drive says how many requests come in that time; \
             set workload.requests",
            experiment.workload.pacing.name()
        )));
    }
    let size = Target::of(&experiment).check().map_err(|(_, message)| Error::Input(message))?;
    let block = stack::block(&experiment);
    if let SourceConfig::Trace(trace) = &experiment.workload.source {
        flashkeel_workload::refuse_overwriting(trace, out)?;
    }
    let mut source = experiment.workload.open_watched(size.sectors, block, Seeds::alone(seed), watch)?;
    Ok(flashkeel_workload::save(source.as_mut(), format, out, watch)?)
}

/// Writes several traces as one; `options` and `watch` as for [`trace_info`],
/// the options for each of them. `beginnings` is `together` or `recorded`,
/// `spaces` is `separate` or `merge`, as for the devices of a trace.
///
/// # Errors
/// As for [`trace_convert`].
pub fn trace_merge(
    paths: &[PathBuf],
    options: &str,
    (beginnings, spaces): (&str, &str),
    out: &Path,
    format: &str,
    watch: &mut Watch<'_>,
) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    let beginnings = match beginnings {
        "together" => Beginnings::Together,
        "recorded" => Beginnings::Recorded,
        other => return Err(Error::Input(format!("times are together or recorded, not {other:?}"))),
    };
    let spaces = serde_json::from_value(Value::String(spaces.to_owned()))
        .map_err(|error| Error::Input(format!("address spaces: {error}")))?;
    let traces = paths.iter().map(|path| trace(path, options)).collect::<Result<Vec<_>, _>>()?;
    Ok(flashkeel_workload::merge(&traces, beginnings, spaces, format, out, watch)?)
}

/// Writes a synthetic trace that is like another; `options` and `watch` as for
/// [`trace_info`]. It has `requests` requests, or as many as the other.
///
/// # Errors
/// As for [`trace_convert`], or if `path` is a pipe.
pub fn trace_like(
    path: &Path,
    options: &str,
    (seed, requests): (u64, Option<u64>),
    out: &Path,
    format: &str,
    watch: &mut Watch<'_>,
) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    let trace = trace(path, options)?;
    if trace.is_read_once() {
        let message = "measuring reads a trace twice, and a pipe cannot be; save it to a file first";
        return Err(Error::Input(format!("{}: {message}", path.display())));
    }
    flashkeel_workload::refuse_overwriting(&trace, out)?;
    let context = Context { seeds: Seeds::alone(seed), requests, ..flashkeel_workload::conversion() };
    let whole = Context { requests: None, ..context };
    let measured = flashkeel_workload::profiles::measure(&trace, &whole, watch)?;
    Ok(flashkeel_workload::save(&mut *measured.source(&context), format, out, watch)?)
}

/// A trace source from a path and options.
fn trace(path: &Path, options: &str) -> Result<Trace, Error> {
    let refuse = |why: String| Error::Input(format!("trace options: {why}"));
    let options: Value = serde_json::from_str(options).map_err(|error| refuse(error.to_string()))?;
    let Value::Object(options) = options else { return Err(refuse("not a table".into())) };
    let mut tree = Node::from_json(serde_json::json!({ "path": path.to_string_lossy() }), &Origin::Default);
    for (key, value) in options {
        tree.merge(Node::from_json(value, &Origin::Override).nest(&key)?)?;
    }
    let mut trace: Trace = tree.read()?;
    // A name need not be text.
    path.clone_into(&mut trace.path);
    Ok(trace)
}
