//! Capacities that are shares of what the workload touches.
//!
//! With memory and NVM as large as a paper's, a small trace never leaves the memory. So
//! that one need not know its footprint, `capacity = "5%"` of a tier's upper device is
//! taken of it.

use std::ops::ControlFlow;

use flashkeel_config::{ConfigError, Kind, Node, Origin};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Operation};
use flashkeel_workload::{Arrival, Seeds, Stopped, Watch, WorkloadConfig};
use serde_json::json;

use crate::{Error, Experiment, stack};

/// A capacity in place of one that is not known yet. Nothing else depends on it: a tier
/// has the size of its lower device.
const PLACEHOLDER: &str = "64KiB";

/// A share of the footprint, and the capacity that it stands for.
pub(crate) struct Share {
    /// The path of the capacity in the document.
    path: String,
    share: f64,
    origin: Origin,
}

/// Takes the shares out of a stack that nothing has been put under yet.
pub(crate) fn take_shares(tree: &mut Node) -> Result<Vec<Share>, Error> {
    let mut found = Vec::new();
    if let Some(stack) = tree.get_mut("stack") {
        take(stack, "stack", &mut found)?;
    }
    Ok(found)
}

fn take(node: &mut Node, path: &str, found: &mut Vec<Share>) -> Result<(), Error> {
    match &mut node.kind {
        Kind::Table(entries) => {
            let is_upper = [".upper.dram", ".upper.nvm"].iter().any(|end| path.ends_with(end));
            for (key, value) in entries {
                let below = format!("{path}.{key}");
                if key == "capacity" && (is_upper || path == "stack.nvm") {
                    take_share(value, below, found)?;
                } else {
                    take(value, &below, found)?;
                }
            }
        }
        Kind::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                take(item, &format!("{path}.{index}"), found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn take_share(node: &mut Node, path: String, found: &mut Vec<Share>) -> Result<(), Error> {
    let Some(written) = node.as_str().and_then(|text| text.trim().strip_suffix('%')) else { return Ok(()) };
    let percent = written.trim().parse::<f64>().ok().filter(|&percent| percent > 0.0 && percent.is_finite());
    let Some(percent) = percent else {
        let message = format!("\"{written}%\" is no share of the footprint; write one as \"5%\"");
        return Err(ConfigError::new(Some(node.origin.clone()), &path, message).into());
    };
    node.kind = Kind::String(PLACEHOLDER.to_owned());
    found.push(Share { path, share: percent / 100.0, origin: node.origin.clone() });
    Ok(())
}

/// Puts the capacities into the tree that was read as `config`, whose tenants have volumes of
/// so many sectors.
pub(crate) fn put_capacities(
    shares: &[Share],
    tree: &mut Node,
    config: &Experiment,
    volume: u64,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let refuse = |share: &Share, message: String| -> Error {
        ConfigError::new(Some(share.origin.clone()), &share.path, message).into()
    };
    let Some(first) = shares.first() else { return Ok(()) };
    let mut pages = 0;
    for (index, workload) in stack::workloads(config).into_iter().enumerate() {
        if let Some(reason) = endless(workload) {
            return Err(refuse(first, format!("it is a share of the workload's footprint, but {reason}")));
        }
        pages += touched(config, workload, stack::seeds(config, index), volume, watch)?;
    }
    if pages == 0 {
        return Err(refuse(first, "it is a share of the workload's footprint, which is empty".into()));
    }
    for share in shares {
        let blocks = ((pages as f64 * share.share) as u64).max(1);
        let capacity = json!(Bytes(blocks * LOGICAL_PAGE_BYTES));
        let devices = match tree.get("stack.devices").map(|devices| &devices.kind) {
            Some(Kind::Array(devices)) => devices.len(),
            _ => 0,
        };
        // The short way has become a tier over each SSD.
        let paths = match share.path.as_str() {
            "stack.nvm.capacity" => {
                (0..devices).map(|index| format!("stack.devices.{index}.tier.upper.nvm.capacity")).collect()
            }
            path => vec![path.to_owned()],
        };
        for path in paths {
            if let Some(node) = tree.get_mut(&path) {
                *node = Node::from_json(capacity.clone(), &share.origin);
            }
        }
    }
    Ok(())
}

/// Why a workload's footprint is not known before it has run, if it is not.
fn endless(workload: &WorkloadConfig) -> Option<&'static str> {
    if workload.is_read_once() {
        return Some("the trace comes through a pipe and can be read only once; save it to a file first");
    }
    let ends = workload.requests.is_some() || workload.source.policy().is_finite();
    (!ends && !workload.pacing.policy().is_open())
        .then_some("how far a generator in a closed loop comes is not known; set workload.requests")
}

/// Pages that a workload touches.
fn touched(
    config: &Experiment,
    workload: &WorkloadConfig,
    seeds: Seeds,
    volume: u64,
    watch: &mut Watch<'_>,
) -> Result<u64, Error> {
    let mut source = workload.open_watched(volume, stack::block(config), seeds, watch)?;
    let mut seen = vec![0u64; volume.div_ceil(LOGICAL_PAGE_SECTORS * 64) as usize];
    let (mut batch, mut pages) = (Vec::new(), 0);
    loop {
        source.fill(&mut batch, 4096).map_err(Stopped::Wrong)?;
        if batch.is_empty() {
            return Ok(pages);
        }
        // As where a trace is laid out: a trim of the whole device touches nothing of it.
        let is_data = |arrival: &&Arrival| matches!(arrival.operation, Operation::Read | Operation::Write);
        for arrival in batch.iter().filter(is_data) {
            let end = (arrival.lba.0 + u64::from(arrival.sectors)).div_ceil(LOGICAL_PAGE_SECTORS);
            for page in arrival.lba.0 / LOGICAL_PAGE_SECTORS..end {
                let (word, bit) = (&mut seen[(page / 64) as usize], 1 << (page % 64));
                pages += u64::from(*word & bit == 0);
                *word |= bit;
            }
        }
        if watch(source.progress().unwrap_or(0.0)) == ControlFlow::Break(()) {
            return Err(Error::Interrupted);
        }
    }
}
