//! Stacks: from the document's `[stack]` table to a result.

use std::{path::Path, time::Instant};

use flashkeel_config::{ConfigError, Kind, Node, Origin};
use flashkeel_device::{DeviceConfig, PRESETS};
use flashkeel_host::{HostStack, Measured, Nothing, StackConfig, Tenant, drive_tenants, stack::seed_of};
use flashkeel_stats::{MeasureConfig, Recorder, RequestLog};
use flashkeel_workload::{Basis, Source, Stopped, Watch, WorkloadConfig};
use serde_json::{Value, json};

use crate::{
    Error, Experiment, RunOutcome, RunPlan, VERSION,
    document::preset_layer,
    outcome::{TenantOutcome, pool_reports, sum_of_counts},
    run::{Finished, Progress, steady_state},
};

/// Puts defaults, presets and the experiment's own tables under what a stack
/// says of its devices and tenants.
pub(crate) fn expand(tree: &mut Node) -> Result<(), ConfigError> {
    let Some(written) = tree.remove("stack") else { return Ok(()) };
    let mut stack = Node::from_json(json!(StackConfig::default()), &Origin::Default);
    stack.merge(written)?;
    if let Some(nvm) = stack.get_mut("nvm") {
        expand_nvm(nvm, "stack.nvm")?;
    }
    for (index, choice) in elements(&mut stack, "devices").iter_mut().enumerate() {
        let key = format!("stack.devices.{index}");
        if let Some(ssd) = choice.get_mut("ssd") {
            expand_ssd(ssd, &format!("{key}.ssd"), tree.get("device"))?;
        }
        if let Some(nvm) = choice.get_mut("nvm") {
            expand_nvm(nvm, &format!("{key}.nvm"))?;
        }
    }
    let shared = tree.get("workload").cloned();
    for tenant in elements(&mut stack, "tenants") {
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

fn elements<'a>(stack: &'a mut Node, key: &str) -> &'a mut [Node] {
    match stack.get_mut(key).map(|node| &mut node.kind) {
        Some(Kind::Array(items)) => items,
        _ => &mut [],
    }
}

/// Lays an SSD of a stack over its preset, or else over the experiment's device.
fn expand_ssd(ssd: &mut Node, key: &str, device: Option<&Node>) -> Result<(), ConfigError> {
    let mut base = match (ssd.remove("preset"), device) {
        (None, Some(device)) => device.clone(),
        (preset, _) => {
            let mut base = Node::from_json(json!(DeviceConfig::default()), &Origin::Default);
            if let Some(preset) = preset {
                base.merge(preset_layer(&preset, &format!("{key}.preset"), PRESETS)?)?;
            }
            base
        }
    };
    base.merge(ssd.clone())?;
    *ssd = base;
    Ok(())
}

/// Lays an NVM over its preset, or else over the first there is.
fn expand_nvm(nvm: &mut Node, key: &str) -> Result<(), ConfigError> {
    let presets = flashkeel_nvm::PRESETS;
    let mut base = match nvm.remove("preset") {
        Some(preset) => preset_layer(&preset, &format!("{key}.preset"), presets)?,
        None => Node::parse(presets[0].1, &format!("preset {}", presets[0].0))?,
    };
    base.merge(nvm.clone())?;
    *nvm = base;
    Ok(())
}

/// Checks what types alone cannot say.
pub(crate) fn validate(
    stack: &StackConfig,
    config: &Experiment,
    tree: &Node,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    if config.measure.chip_log.is_some() {
        let message = "chips are watched where there is one device, without a [stack]";
        return Err(tree.error_in("measure.chip_log", message).into());
    }
    let volume = stack.validate(&config.device).map_err(|message| tree.error_in("stack", &message))?;
    for (index, workload) in workloads(stack, &config.workload).into_iter().enumerate() {
        let Err(stopped) = workload.check(volume, config.seed, watch) else { continue };
        let Stopped::Wrong(error) = stopped else { return Err(Error::Interrupted) };
        let is_key = error.subject.split('.').next() == Some("workload");
        let place = if stack.tenants.is_empty() {
            error.subject.clone()
        } else {
            format!("stack.tenants.{index}.{}", error.subject)
        };
        return Err(if is_key { tree.error_at(&place, error.message).into() } else { error.into() });
    }
    Ok(())
}

/// Each tenant's workload.
fn workloads<'a>(stack: &'a StackConfig, only: &'a WorkloadConfig) -> Vec<&'a WorkloadConfig> {
    match &stack.tenants[..] {
        [] => vec![only],
        tenants => tenants.iter().map(|tenant| &tenant.workload).collect(),
    }
}

/// Runs a plan that has a stack, as [`run`](crate::run) does.
pub(crate) fn run(
    plan: &RunPlan,
    stack: &StackConfig,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Finished, Error> {
    let mut config = plan.config.clone();
    config.seed = seed;
    let mut ssds = Vec::new();
    for (index, choice) in stack.devices(&config.device).iter().enumerate() {
        if let Some(ssd) = &choice.ssd {
            ssds.push(steady_state(ssd, seed_of(seed, "device", index), cache_dir, progress)?);
        }
    }
    let mut host = HostStack::new(stack, &config.device, ssds, seed).map_err(Error::Input)?;
    let workloads = workloads(stack, &config.workload);
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        let seed = seed_of(seed, "tenant", index);
        sources.push(
            workload.open_watched(host.volume_sectors(), seed, &mut |fraction| progress("scan", fraction))?,
        );
    }
    let gauges = host.gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let warm_up = workloads.iter().map(|workload| workload.warm_up).max().unwrap_or_default();
    let recorder = Recorder::new(&config.measure, warm_up, &gauges);
    // The log of all requests is kept once, with those of all tenants.
    let unlogged = MeasureConfig { log_requests: false, ..config.measure.clone() };
    let tenants = sources.iter_mut().zip(&workloads);
    let tenants = tenants.map(|(source, workload)| Tenant {
        source: source.as_mut(),
        workload,
        recorder: Recorder::new(&unlogged, warm_up, &[]),
    });
    let tenants = tenants.collect();
    let start = Instant::now();
    let (all, each) = drive_tenants(&mut host, &mut Nothing, tenants, recorder, &mut |fraction| {
        progress("replay", fraction)
    })?;
    let wall_s = start.elapsed().as_secs_f64();

    let report = host.report();
    let mut device = json!({});
    let mut waf = None;
    for ssd in &report.ssds {
        waf = pool_reports(&mut device, &json!(ssd));
    }
    let mut notes: Vec<String> = Vec::new();
    for note in sources.iter().flat_map(|source| source.notes()) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let counts = sources.iter().map(|source| source.counts().clone());
    let tenants =
        stack.tenants.iter().zip(each).zip(&sources).map(|((tenant, measured), source)| TenantOutcome {
            name: tenant.name.clone(),
            summary: measured.summary,
            basis: source.basis(),
            workload: source.counts().clone(),
        });
    // Where any part is generated, the whole is no recorded trace.
    let is_synthetic = sources.iter().any(|source| source.basis() == Basis::Synthetic);
    let basis = if is_synthetic { Basis::Synthetic } else { Basis::Trace };
    let outcome = RunOutcome {
        name: plan.name.clone(),
        seed,
        summary: all.summary,
        wall_s,
        waf,
        erases: report.ssds.iter().map(|ssd| ssd.erases).sum(),
        basis,
        notes,
        version: VERSION.into(),
        preset: plan.preset.clone(),
        device,
        workload: counts.reduce(|sum, other| sum_of_counts(&sum, &other)).unwrap_or_default(),
        tenants: tenants.collect(),
        stack: Some(by_number(json!(report))),
        config: config.clone(),
    };
    Ok(Finished {
        outcome,
        series: all.series.columns(),
        requests: all.log.map(RequestLog::into_columns),
        chips: None,
    })
}

/// Turns arrays into tables by index, whose counts are pooled key by key.
fn by_number(report: Value) -> Value {
    let Value::Object(kinds) = report else { return report };
    let table = |value: Value| match value {
        Value::Array(items) => {
            items.into_iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        other => other,
    };
    kinds.into_iter().map(|(kind, value)| (kind, table(value))).collect()
}
