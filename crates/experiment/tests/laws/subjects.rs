//! What the laws are tried on: every policy of every axis below `device` and
//! `stack`, and whatever is switched on or off there, as the schema lists them.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use flashkeel_engine::Durable;
use flashkeel_experiment::{Experiment, Target, resolve, schema};
use flashkeel_host::device::Device;
use serde_json::Value;

use crate::bases::{ALONE, BASES, OF_STACKS};

/// A device, and what has to be known of it.
pub struct Subject {
    /// The policy and the document it was put into.
    pub name: String,
    /// How many ask, each in a volume of its own.
    pub tenants: u16,
    /// Whether it is a stack, which orders flushes.
    pub is_stack: bool,
    /// In the state it starts in.
    pub device: Box<dyn Device>,
}

/// A policy of an axis.
pub struct Policy {
    /// As `device.gc.victim=fifo`.
    pub name: String,
    /// Keys to set over a document, with their values.
    pub sets: Vec<(String, String)>,
}

impl Policy {
    /// The policy in each of the documents that accept it.
    ///
    /// # Errors
    /// What each of them has against it, if none does.
    pub fn subjects(&self) -> Result<Vec<Subject>, String> {
        let put = |(base, document): &(&str, &str)| {
            let plans = resolve(document, base, &self.sets, None).map_err(|error| error.to_string())?;
            subject(format!("{} in {base}", self.name), &plans[0].config)
        };
        let is_of_device = self.name.starts_with("device.");
        let bases = BASES.iter().filter(|(base, _)| !(is_of_device && OF_STACKS.contains(base)));
        let (accepted, refused): (Vec<_>, Vec<_>) = bases.map(put).partition(Result::is_ok);
        if accepted.is_empty() {
            let refusals: Vec<String> = refused.into_iter().filter_map(Result::err).collect();
            return Err(format!("{}: no document accepts it:\n  {}", self.name, refusals.join("\n  ")));
        }
        Ok(accepted.into_iter().flatten().collect())
    }
}

/// The documents as they are, but for the one that is not whole.
pub fn documents() -> Vec<Subject> {
    let whole = BASES[..BASES.len() - 1].iter().chain(&ALONE).map(|(base, document)| {
        let plans = resolve(document, base, &[], None).map_err(|error| error.to_string())?;
        subject((*base).into(), &plans[0].config)
    });
    whole.collect::<Result<_, String>>().unwrap_or_else(|refused| panic!("{refused}"))
}

/// Every policy of every axis, and every switch in its other position, below a table
/// of the experiment, but those of workloads.
pub fn policies(table: &str) -> Vec<Policy> {
    let schema = schema();
    let mut found = Vec::new();
    // Each type once, where it is nearest to the root.
    let mut known = BTreeSet::new();
    let root = &schema["properties"][table];
    let mut open = VecDeque::from([(root, table.to_owned(), Vec::new())]);
    while let Some((node, path, sets)) = open.pop_front() {
        if let Some(name) = node["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            let is_elsewhere = name == "WorkloadConfig" || table != "device" && name == "DeviceConfig";
            if !is_elsewhere && known.insert(name) {
                open.push_back((&schema["$defs"][name], path, sets));
            }
            continue;
        }
        let options = ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| node[key].as_array());
        for option in options.flatten() {
            let mut sets = sets.clone();
            if node.get("x-axis").is_some() {
                // Of the bare names each has a table of its own, too.
                let Some((name, set)) = chosen(option, &path) else { continue };
                sets.push(set);
                found.push(Policy { name: format!("{path}={name}"), sets: sets.clone() });
            }
            open.push_back((option, path.clone(), sets));
        }
        for (key, value) in node["properties"].as_object().into_iter().flatten() {
            if value["type"] == "boolean" {
                let (key, other) = (format!("{path}.{key}"), !value["default"].as_bool().unwrap_or(false));
                let name = format!("{key}={other}");
                let sets = sets.iter().cloned().chain([(key, other.to_string())]).collect();
                found.push(Policy { name, sets });
            }
            open.push_back((value, format!("{path}.{key}"), sets.clone()));
        }
        if node["items"].is_object() {
            open.push_back((&node["items"], format!("{path}.0"), sets));
        }
    }
    found
}

/// The name of an axis's option, and the key that chooses it.
fn chosen<'a>(option: &'a Value, path: &str) -> Option<(&'a str, (String, String))> {
    if let Some(name) = option["properties"]["policy"]["const"].as_str() {
        return Some((name, (path.into(), format!("{{policy = {name:?}}}"))));
    }
    // A kind is the only key of its table.
    let name = option["required"][0].as_str()?;
    Some((name, (format!("{path}.{name}"), "{}".into())))
}

/// What a document describes, in the state it starts in.
pub fn subject(name: String, config: &Experiment) -> Result<Subject, String> {
    let tenants = config.stack.as_ref().map_or(1, |stack| stack.tenants.len().max(1)) as u16;
    let target = Target::of(config);
    let device = target.build(config.seed, None, &mut |_, _| ControlFlow::Continue(()));
    let mut device = device.map_err(|error| format!("{name}: {error}"))?;
    // What was said of it before it was made is so.
    let (size, limits) = (target.check().map_err(|(_, message)| message)?, device.limits());
    assert_eq!(
        (size.sectors, size.is_volatile),
        (limits.sectors, limits.durable == Durable::Never),
        "{name}"
    );
    device.keep_data();
    Ok(Subject { name, tenants, is_stack: config.stack.is_some(), device })
}
