//! From a document to plans: layers, variants, validation.

use std::{collections::BTreeMap, ops::ControlFlow};

use flashkeel_config::{ConfigError, Kind, Node, Origin, did_you_mean, preset_layer, preset_name};
use flashkeel_device::{DeviceConfig, PRESETS};
use flashkeel_host::StackConfig;
use flashkeel_host::device::{Size, put_capacity};
use flashkeel_stats::MeasureConfig;
use flashkeel_workload::{Watch, WorkloadConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::stack::{self, Checked};
use crate::{Error, Target, arrivals, footprint, paths, schema};

/// An experiment: one device under one workload, and the variants to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// One line for the top of tables and pictures.
    #[serde(default)]
    pub title: String,
    /// Everything random follows from it.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// The SSD; with `stack.devices`, what the SSDs there are laid over.
    #[serde(default)]
    pub device: DeviceConfig,
    /// What the host puts between the workload and the device, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
    /// What is asked of it; with `stack.tenants`, what their workloads are laid
    /// over.
    pub workload: WorkloadConfig,
    /// What is measured beyond what always is.
    #[serde(default)]
    pub measure: MeasureConfig,
    /// Variants to run instead of the experiment as it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Variant>,
}

/// A variant of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Names the run in results.
    pub name: String,
    /// Keys set over the experiment's own: `{ "device.scheduler" = "fifo" }`.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
}

/// One run, complete: nothing is left to look up or to decide but the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    /// The variant's name; `run` where there are no variants.
    pub name: String,
    /// The preset the device was based on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The resolved experiment, without variants.
    pub config: Experiment,
    /// What was left out of the document, as another key makes it useless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the data of real drives may be destroyed. No document says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destroys: bool,
}

fn first_seed() -> u64 {
    1
}

/// Resolves a TOML document into its runs.
///
/// Later layers win: defaults, the preset named by `device.preset`, the
/// document, a variant's `set`, `sets` (path and value, as `--set` gives
/// them). `name` is what errors call the document; where it is a path,
/// relative paths in the document start at its folder. `seed` replaces the
/// experiment's.
///
/// # Errors
/// [`Error::Input`] for anything wrong in the document, the overrides, or the
/// head of the trace they name; nothing has been written by then.
pub fn resolve(
    document: &str,
    name: &str,
    sets: &[(String, String)],
    seed: Option<u64>,
) -> Result<Vec<RunPlan>, Error> {
    resolve_watched(document, name, sets, seed, &mut |_| ControlFlow::Continue(()))
}

/// Resolves a document as [`resolve`] does; `watch` is told how much has been
/// read of a trace.
///
/// # Errors
/// As for [`resolve`], or that `watch` breaks off.
pub fn resolve_watched(
    document: &str,
    name: &str,
    sets: &[(String, String)],
    seed: Option<u64>,
    watch: &mut Watch<'_>,
) -> Result<Vec<RunPlan>, Error> {
    let mut file = Node::parse(document, name)?;
    paths::anchor(&mut file, name);
    let overrides = overrides(sets)?;
    let mut plans: Vec<RunPlan> = Vec::new();
    let mut checked = Checked::default();
    let variants = variants(&file, &overrides)?;
    let mut resolve = |(variant, set): &(String, Vec<Node>)| -> Result<RunPlan, Error> {
        let (plan, tree) = plan(&file, set.clone(), &overrides, variant.clone(), seed, watch)?;
        let Size { sectors, foresees, .. } = checked.look(Target::of(&plan.config), &tree)?;
        stack::check_foresight(&plan.config, foresees, &tree)?;
        checked.check(&plan.config, sectors, &tree, watch)?;
        Ok(plan)
    };
    for (index, variant) in variants.iter().enumerate() {
        let plan = match resolve(variant) {
            // What is wrong in some runs only is no fault of the others.
            Err(Error::Input(message)) => {
                let is_alike =
                    |other: Result<_, Error>| matches!(other, Err(Error::Input(it)) if it == message);
                // Those before it are right.
                let is_everywhere = index == 0 && variants[1..].iter().all(|other| is_alike(resolve(other)));
                let run =
                    if is_everywhere { String::new() } else { format!(" (in the run {:?})", variant.0) };
                return Err(Error::Input(message + &run));
            }
            plan => plan?,
        };
        if plans.iter().any(|earlier| earlier.name == plan.name) {
            let message = format!("two runs are named {:?}", plan.name);
            return Err(file.error_at(&format!("runs.{}.name", plans.len()), message).into());
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Resolves what a document drives: its tables `device` and `stack`, or all of it as
/// the device where it has neither. Tenants are left out: whoever probes is alone.
/// `sets` have paths as in an experiment, `device.…` or `stack.…`. `name` is as for
/// [`resolve`].
///
/// # Errors
/// [`Error::Input`] for anything wrong in the document or the overrides.
pub fn resolve_target(document: &str, name: &str, sets: &[(String, String)]) -> Result<Target, Error> {
    let mut file = Node::parse(document, name)?;
    paths::anchor(&mut file, name);
    let mut whole = Node::from_json(json!({ "workload": { "source": "synthetic" } }), &Origin::Default);
    if ["device", "stack"].into_iter().all(|key| file.get(key).is_none()) {
        whole.merge(file.nest("device")?)?;
    } else {
        // What an experiment has beside them says nothing of the drive; what it has not is a
        // mistake.
        let mut drive = file.clone();
        for key in ["workload", "measure", "runs"] {
            drive.remove(key);
        }
        whole.merge(drive)?;
    }
    let overrides = overrides(sets)?;
    let go_on = &mut |_| ControlFlow::Continue(());
    let (plan, tree) = plan(&whole, Vec::new(), &overrides, "device".into(), None, go_on)?;
    let mut target = Target::of(&plan.config);
    if let Some(stack) = &mut target.stack {
        stack.tenants.clear();
    }
    validate(&target, &tree)?;
    Ok(target)
}

/// Most characters of a run's name in the name of a file, which has 255 with its seed and
/// its ending.
const LONGEST_NAME: usize = 200;

/// How many characters a name takes in the name of a file: what a path could not hold as it
/// is takes three for each byte.
fn in_file_names(name: &str) -> usize {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b" _.-~".contains(&byte);
    name.bytes().map(|byte| if is_kept(byte) { 1 } else { 3 }).sum()
}

/// What is set from outside, as layers.
fn overrides(sets: &[(String, String)]) -> Result<Vec<Node>, ConfigError> {
    let sets = sets.iter().map(|(path, text)| (path.as_str(), text)).collect();
    policies_first(sets).into_iter().map(|(path, text)| Node::parse_override(path, text)).collect()
}

/// Puts a policy, or a preset, before what is set of its table: another one leaves nothing
/// of what was set for the last.
fn policies_first<T>(entries: Vec<(&str, T)>) -> Vec<(&str, T)> {
    let mut ordered: Vec<(&str, T)> = Vec::with_capacity(entries.len());
    for (path, value) in entries {
        let table = path.strip_suffix("policy").or_else(|| path.strip_suffix("preset"));
        let table = table.filter(|table| table.ends_with('.'));
        let place = table.map_or(ordered.len(), |table| {
            let again = ordered.iter().rposition(|(other, _)| *other == path).map_or(0, |last| last + 1);
            let first = ordered[again..].iter().position(|(other, _)| other.starts_with(table));
            first.map_or(ordered.len(), |first| again + first)
        });
        ordered.insert(place, (path, value));
    }
    ordered
}

/// Every variant's name and layers.
fn variants(file: &Node, overrides: &[Node]) -> Result<Vec<(String, Vec<Node>)>, ConfigError> {
    let mut whole = file.clone();
    for over in overrides {
        whole.merge(over.clone())?;
    }
    let Some(runs) = whole.get("runs") else { return Ok(vec![("run".into(), Vec::new())]) };
    let variants: Vec<Variant> = runs.read().map_err(|error| error.within("runs"))?;
    if variants.is_empty() {
        return Err(whole.error_at("runs", "there are none; leave the key out for a single run"));
    }
    let mut found = Vec::new();
    for (index, variant) in variants.into_iter().enumerate() {
        if variant.name.is_empty() {
            return Err(whole.error_at(&format!("runs.{index}.name"), "a run needs a name"));
        }
        if variant.name.contains(char::is_control) {
            let message = format!("{:?} has control characters in it, such as a line's end", variant.name);
            return Err(whole.error_at(&format!("runs.{index}.name"), message));
        }
        let length = in_file_names(&variant.name);
        if length > LONGEST_NAME {
            let message = format!(
                "it is part of the names of files, and takes {length} characters there, {LONGEST_NAME} at most"
            );
            return Err(whole.error_at(&format!("runs.{index}.name"), message));
        }
        let mut layers = Vec::new();
        if let Some(Kind::Table(entries)) = runs.get(&format!("{index}.set")).map(|set| &set.kind) {
            let entries = entries.iter().map(|(path, value)| (path.as_str(), value)).collect();
            for (path, value) in policies_first(entries) {
                layers.push(value.clone().nest(path)?);
            }
        }
        found.push((variant.name, layers));
    }
    Ok(found)
}

fn plan(
    file: &Node,
    set: Vec<Node>,
    overrides: &[Node],
    name: String,
    seed: Option<u64>,
    watch: &mut Watch<'_>,
) -> Result<(RunPlan, Node), Error> {
    let groups = [std::slice::from_ref(file), &set, overrides];
    let layers = groups.concat();
    let mut tree = defaults();
    let preset = layers.iter().rev().find_map(|layer| layer.get("device.preset"));
    if let Some(node) = preset {
        tree.merge(preset_layer(node, "device.preset", PRESETS)?.nest("device")?)?;
    }
    let mut notes = Vec::new();
    for group in groups {
        let mut over = Node { kind: Kind::Table(BTreeMap::new()), origin: Origin::Default };
        for layer in group {
            over.merge(layer.clone())?;
        }
        notes.extend(arrivals::drop_from(&mut tree, &over));
        for layer in group {
            tree.merge(layer.clone())?;
        }
    }
    tree.remove("runs");
    if let Some(device) = tree.get_mut("device") {
        device.remove("preset");
        put_capacity(device, "device")?;
    }
    refuse_misspelt_preset(&tree)?;
    let shares = footprint::take_shares(&mut tree)?;
    notes.extend(stack::expand(&mut tree)?);
    let read = |tree: &Node| -> Result<Experiment, Error> {
        let config: Experiment = tree.read().map_err(|error| error.with_choices(&schema()))?;
        Ok(Experiment { seed: seed.unwrap_or(config.seed), ..config })
    };
    let mut config = read(&tree)?;
    if !shares.is_empty() {
        let Size { sectors, .. } = validate(&Target::of(&config), &tree)?;
        footprint::put_capacities(&shares, &mut tree, &config, sectors, watch)?;
        config = read(&tree)?;
    }
    let preset = preset.and_then(preset_name);
    Ok((RunPlan { name, preset, config, notes, destroys: false }, tree))
}

/// The lowest layer: settings of a policy can then be overridden without
/// naming the policy that is the default.
fn defaults() -> Node {
    let value = json!({ "device": DeviceConfig::default(), "measure": MeasureConfig::default() });
    Node::from_json(value, &Origin::Default)
}

/// A slip in `preset`, which the device itself does not know.
fn refuse_misspelt_preset(tree: &Node) -> Result<(), ConfigError> {
    let Some(Kind::Table(keys)) = tree.get("device").map(|device| &device.kind) else { return Ok(()) };
    match keys.keys().find(|key| !did_you_mean(key, ["preset"]).is_empty()) {
        Some(key) => {
            let hint = did_you_mean(key, ["preset"]);
            Err(tree.error_at(&format!("device.{key}"), format!("unknown key{hint}")))
        }
        None => Ok(()),
    }
}

/// Checks what types alone cannot say, and that the machine can hold it; returns what
/// a client sees of it.
fn validate(target: &Target, tree: &Node) -> Result<Size, Error> {
    accept(target.check(), tree)
}

/// Places what was found of a target, and refuses what the machine cannot hold.
pub(crate) fn accept(found: stack::Found, tree: &Node) -> Result<Size, Error> {
    let size = found.map_err(|(table, message)| tree.error_in(table, &message))?;
    crate::memory::check(size.memory_bytes, tree)?;
    Ok(size)
}
