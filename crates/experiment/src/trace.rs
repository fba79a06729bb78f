//! Traces by themselves: described, converted, generated.

use std::path::Path;

use flashkeel_config::{Node, Origin};
use flashkeel_workload::{Trace, TraceInfo, WriterName, Written};
use serde_json::Value;

use crate::{Error, Experiment};

/// Reads a trace to its end and describes it. `options` is a JSON object with
/// keys of the trace source, such as `format`.
///
/// # Errors
/// What is wrong with an option, or the first thing wrong with the trace.
pub fn trace_info(path: &Path, options: &str) -> Result<TraceInfo, Error> {
    Ok(flashkeel_workload::info(&trace(path, options)?)?)
}

/// Writes a trace to `out` in another format; options as for [`trace_info`].
///
/// # Errors
/// What is wrong with an option or the trace, or that `out` cannot be written.
pub fn trace_convert(path: &Path, options: &str, out: &Path, format: &str) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    Ok(flashkeel_workload::convert(&trace(path, options)?, format, out)?)
}

/// Writes the workload of a resolved experiment, given as JSON, as a trace.
///
/// # Errors
/// If the workload is wrong or never ends, or `out` cannot be written.
pub fn trace_synth(experiment: &str, out: &Path, format: &str, seed: u64) -> Result<Written, Error> {
    let format = WriterName::parse(format).map_err(Error::Input)?;
    let experiment: Experiment = serde_json::from_str(experiment)
        .map_err(|error| Error::Input(format!("not a resolved experiment: {error}")))?;
    let layout = experiment.device.validate().map_err(Error::Input)?;
    let mut source = experiment.workload.open(layout.sectors(), seed)?;
    Ok(flashkeel_workload::save(source.as_mut(), format, out)?)
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
