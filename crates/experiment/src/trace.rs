//! Traces by themselves: described, converted, generated.

use std::path::Path;

use flashkeel_config::{Node, Origin};
use flashkeel_workload::{Trace, TraceInfo, Watch, WriterName, Written};
use serde_json::Value;

use crate::{Error, Experiment};

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
/// If the workload is wrong or never ends, `out` cannot be written, or `watch`
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
    if experiment.stack.is_some_and(|stack| !stack.tenants.is_empty()) {
        return Err(Error::Input("each tenant of the stack has a workload; a trace holds only one".into()));
    }
    let layout = experiment.device.validate().map_err(Error::Input)?;
    let mut source = experiment.workload.open_watched(layout.sectors(), seed, watch)?;
    Ok(flashkeel_workload::save(source.as_mut(), format, out, watch)?)
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
    Ok(tree.read()?)
}
