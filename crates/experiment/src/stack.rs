//! The `[stack]` table of a document, and the tenants' workloads.

use flashkeel_config::{ConfigError, Kind, Node, Origin};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Operation};
use flashkeel_host::StackConfig;
use flashkeel_host::coordinator::Foresight;
use flashkeel_host::device::{Build, Size, seed_of};
use flashkeel_host::stack::{TenantConfig, TierShort};
use flashkeel_workload::{Location, Seeds, Source, Stopped, Watch, WorkloadConfig, WorkloadError};
use serde_json::json;

use crate::{Error, Experiment, Target, arrivals, document};

/// Arrivals that are taken from a source at a time.
const FORESEEN_AT_ONCE: usize = 1 << 16;

/// Puts defaults, presets and the experiment's own tables under what a stack
/// says of its devices and tenants. Returns notes of what is left out of those.
pub(crate) fn expand(tree: &mut Node) -> Result<Vec<String>, ConfigError> {
    let Some(written) = tree.remove("stack") else { return Ok(Vec::new()) };
    let mut notes = Vec::new();
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
            notes.extend(arrivals::drop_one(&mut workload, &own));
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
    notes.dedup();
    Ok(notes)
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

/// Refuses workloads whose requests come by what became of others, or can be read only
/// once, where something on their way has to know them beforehand.
pub(crate) fn check_foresight(config: &Experiment, foresees: bool, tree: &Node) -> Result<(), ConfigError> {
    for (index, workload) in workloads(config).into_iter().enumerate().filter(|_| foresees) {
        let (key, message) = if !workload.pacing.policy().is_open() {
            let message =
                "requests that come at their own times: use pacing = \"open\", or demand = \"smoothed\"";
            ("pacing", message)
        } else if workload.is_read_once() {
            ("source.path", "a trace that can be read twice, and a pipe cannot be; save it to a file first")
        } else {
            continue;
        };
        let place = match tenants(config) {
            [] => format!("workload.{key}"),
            _ => format!("stack.tenants.{index}.workload.{key}"),
        };
        return Err(
            tree.error_at(&place, format!("a coordinator's demand is \"exact\", which needs {message}"))
        );
    }
    Ok(())
}

/// What each tenant will read, of sources that are opened for that.
pub(crate) fn foresight(sources: &mut [Box<dyn Source>]) -> Result<Foresight, WorkloadError> {
    let mut hosts = Vec::new();
    for source in sources {
        let (mut reads, mut batch) = (Vec::new(), Vec::new());
        loop {
            source.fill(&mut batch, FORESEEN_AT_ONCE)?;
            if batch.is_empty() {
                break;
            }
            let read = batch.iter().filter(|arrival| arrival.operation == Operation::Read);
            let pages = |sectors: u32| u64::from(sectors).div_ceil(LOGICAL_PAGE_SECTORS) as u32;
            reads.extend(read.map(|arrival| (arrival.time, pages(arrival.sectors))));
        }
        hosts.push(reads);
    }
    Ok(Foresight::new(hosts))
}

/// The logical block that clients see.
pub(crate) fn block(config: &Experiment) -> Bytes {
    let smaller = config.stack.as_ref().and_then(|stack| stack.block);
    smaller.unwrap_or(Bytes(LOGICAL_PAGE_BYTES))
}

/// What the workload of a tenant draws its chance by.
pub(crate) fn seeds(config: &Experiment, tenant: usize) -> Seeds {
    Seeds { run: config.seed, own: seed_of(config.seed, "tenant", tenant) }
}

/// A workload with its volume, block and seed.
type Known = (WorkloadConfig, u64, Bytes, u64);

/// What is there, or the table at fault and what is wrong in it.
pub(crate) type Found = Result<Size, (&'static str, String)>;

/// What was found of the targets and workloads of other runs. Opening a trace may read all of
/// it, and a server may keep who asks waiting, so neither is asked again.
#[derive(Default)]
pub(crate) struct Checked {
    targets: Vec<(Target, Found)>,
    workloads: Vec<(Known, Result<(), WorkloadError>)>,
}

impl Checked {
    /// Checks what is driven; returns what a client sees of it.
    pub fn look(&mut self, target: Target, tree: &Node) -> Result<Size, Error> {
        let found = match self.targets.iter().find(|(known, _)| *known == target) {
            Some((_, found)) => found.clone(),
            None => {
                let found = target.check();
                self.targets.push((target, found.clone()));
                found
            }
        };
        document::accept(found, tree)
    }

    /// Checks each tenant's workload on its volume of so many sectors.
    pub fn check(
        &mut self,
        config: &Experiment,
        sectors: u64,
        tree: &Node,
        watch: &mut Watch<'_>,
    ) -> Result<(), Error> {
        for (index, workload) in workloads(config).into_iter().enumerate() {
            let known = (workload.clone(), sectors, block(config), config.seed);
            let found = match self.workloads.iter().find(|(other, _)| *other == known) {
                Some((_, found)) => found.clone(),
                None => {
                    let found = match workload.check(sectors, block(config), Seeds::alone(config.seed), watch)
                    {
                        Ok(()) => Ok(()),
                        Err(Stopped::Wrong(error)) => Err(error),
                        Err(_) => return Err(Error::Interrupted),
                    };
                    self.workloads.push((known, found.clone()));
                    found
                }
            };
            if let Err(error) = found {
                let is_key = error.place == Location::Key;
                let place = match tenants(config) {
                    [] => error.subject.clone(),
                    _ => format!("stack.tenants.{index}.{}", error.subject),
                };
                let placed = || tree.error_at(&place, error.message.clone()).into();
                return Err(if is_key { placed() } else { error.into() });
            }
        }
        Ok(())
    }
}
