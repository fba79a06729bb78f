//! What a run drives: from the document's `[device]` and `[stack]` tables to a
//! device and its tenants.

use std::path::Path;

use flashkeel_config::{ConfigError, Kind, Node, Origin};
use flashkeel_engine::units::Bytes;
use flashkeel_host::StackConfig;
use flashkeel_host::device::{Build, Device, DeviceKind, Maker};
use flashkeel_host::stack::{TenantConfig, TierShort};
use flashkeel_workload::{LOGICAL_BLOCK_BYTES, Stopped, Watch, WorkloadConfig};
use serde_json::json;

use crate::run::{Progress, steady_state};
use crate::{Error, Experiment};

/// Puts defaults, presets and the experiment's own tables under what a stack
/// says of its devices and tenants.
pub(crate) fn expand(tree: &mut Node) -> Result<(), ConfigError> {
    let Some(written) = tree.remove("stack") else { return Ok(()) };
    let mut stack = Node::from_json(json!(StackConfig::default()), &Origin::Default);
    stack.merge(written)?;
    TierShort::lengthen(&mut stack)?;
    StackConfig::expand(&mut stack, "stack", tree.get("device"))?;
    let shared = tree.get("workload").cloned();
    let tenants = match stack.get_mut("tenants").map(|tenants| &mut tenants.kind) {
        Some(Kind::Array(tenants)) => &mut tenants[..],
        _ => &mut [],
    };
    for tenant in tenants {
        let Some(mut workload) = shared.clone() else { break };
        if let Some(own) = tenant.remove("workload") {
            workload.merge(own)?;
        }
        if let Kind::Table(keys) = &mut tenant.kind {
            keys.insert("workload".into(), workload);
        }
    }
    // An experiment has a workload, if only the first tenant's.
    let lacks_source = shared.is_none_or(|workload| workload.get("source").is_none());
    let first = stack.get("tenants.0.workload").filter(|_| lacks_source).cloned();
    if let Kind::Table(keys) = &mut tree.kind {
        keys.insert("stack".into(), stack);
        keys.extend(first.map(|workload| ("workload".into(), workload)));
    }
    Ok(())
}

/// The stack, if there is one, over its own devices or else the experiment's.
fn resolved(config: &Experiment) -> Option<StackConfig> {
    let mut stack = config.stack.clone()?;
    if stack.devices.is_empty() {
        stack.devices.push(DeviceKind::Ssd(Box::new(config.device.clone())));
    }
    Some(stack)
}

/// What the run drives, in its steady state.
pub(crate) fn device(
    config: &Experiment,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Box<dyn Device>, Error> {
    let seed = config.seed;
    let mut precondition = |ssd: &_, seed| steady_state(ssd, seed, cache_dir, progress);
    let mut maker = Maker::new(seed, &mut precondition);
    Ok(match resolved(config) {
        Some(stack) => stack.assemble(seed, &mut maker)?,
        None => config.device.build(&mut maker)?,
    })
}

/// Who asks, where they have names.
pub(crate) fn tenants(config: &Experiment) -> &[TenantConfig] {
    config.stack.as_ref().map_or(&[], |stack| &stack.tenants)
}

/// Each tenant's workload; without tenants the experiment's own.
pub(crate) fn workloads(config: &Experiment) -> Vec<&WorkloadConfig> {
    match tenants(config) {
        [] => vec![&config.workload],
        tenants => tenants.iter().map(|tenant| &tenant.workload).collect(),
    }
}

/// The logical block that clients see.
pub(crate) fn block(config: &Experiment) -> Bytes {
    let smaller = config.stack.as_ref().and_then(|stack| stack.block);
    smaller.unwrap_or(Bytes(LOGICAL_BLOCK_BYTES))
}

/// Checks what types alone cannot say. The experiment's own device, of so many
/// sectors, has been checked.
pub(crate) fn validate(
    config: &Experiment,
    sectors: u64,
    tree: &Node,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let volume = match resolved(config) {
        Some(stack) => stack.validate().map_err(|message| tree.error_in("stack", &message))?,
        None => sectors,
    };
    for (index, workload) in workloads(config).into_iter().enumerate() {
        let Err(stopped) = workload.check(volume, block(config), config.seed, watch) else { continue };
        let Stopped::Wrong(error) = stopped else { return Err(Error::Interrupted) };
        let is_key = error.subject.split('.').next() == Some("workload");
        let place = match tenants(config) {
            [] => error.subject.clone(),
            _ => format!("stack.tenants.{index}.{}", error.subject),
        };
        return Err(if is_key { tree.error_at(&place, error.message).into() } else { error.into() });
    }
    Ok(())
}
