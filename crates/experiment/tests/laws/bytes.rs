//! The laws of what reads return, also after a power cut.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{Durable, Limits, Operation, Request, RequestId, Status, Submit, TenantId};

use crate::host::{Seen, ZEROS, changes, stamp};
use crate::laws::Trial;

/// A block of a tenant's volume.
type Block = (TenantId, u64);

/// The blocks that a request is about.
pub fn blocks(limits: Limits, request: &Request) -> impl Iterator<Item = Block> + use<> {
    let (tenant, lba, block) = (request.tenant, request.lba.0, u64::from(limits.block_sectors));
    // What accepts requests beyond its end breaks another law.
    (0..u64::from(request.sectors) / block).map(move |index| (tenant, lba.wrapping_add(index * block)))
}

/// What a change leaves in a block.
fn content(request: &Request, (_, lba): Block) -> u64 {
    match request.operation {
        Operation::Write => stamp(request.id, lba),
        _ => ZEROS,
    }
}

/// A read finds what was acknowledged last when it was submitted, or what has
/// been on its way at the same time. A change that fails may have been made.
pub fn reads(trial: &Trial<'_>) -> Result<(), String> {
    let limits = trial.limits;
    let places = |request: &Request| blocks(limits, request);
    let mut held: BTreeMap<Block, Vec<u64>> = BTreeMap::new();
    let mut inside: BTreeMap<RequestId, Request> = BTreeMap::new();
    let mut reads: BTreeMap<RequestId, (Request, Vec<Vec<u64>>)> = BTreeMap::new();
    // What a power cut has left is another law's; here it is what the first read
    // finds.
    let mut is_open: BTreeSet<Block> = BTreeSet::new();
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. } => match request.operation {
                Operation::Flush | Operation::Demote => {}
                _ if !limits.admit(request.lba.0, request.sectors) => {}
                Operation::Read => {
                    let may_be = |place: Block| {
                        let coming =
                            inside.values().filter(|change| places(change).any(|other| other == place));
                        let coming = coming.map(|change| content(change, place));
                        coming.chain(held.get(&place).cloned().unwrap_or(vec![ZEROS])).collect()
                    };
                    reads.insert(request.id, (*request, places(request).map(may_be).collect()));
                }
                _ => {
                    inside.insert(request.id, *request);
                    for (read, may_be) in reads.values_mut() {
                        for (place, may_be) in places(read).zip(may_be) {
                            if places(request).any(|other| other == place) {
                                may_be.push(content(request, place));
                            }
                        }
                    }
                }
            },
            Seen::Completed { completion, blocks, .. } => {
                let is_ok = completion.status == Status::Ok;
                if let Some(change) = inside.remove(&completion.id) {
                    for place in places(&change) {
                        let held = held.entry(place).or_insert(vec![ZEROS]);
                        if is_ok {
                            held.clear();
                            is_open.remove(&place);
                        }
                        held.push(content(&change, place));
                    }
                }
                let Some((read, may_be)) = reads.remove(&completion.id).filter(|_| is_ok) else { continue };
                for ((place, may_be), found) in places(&read).zip(may_be).zip(blocks) {
                    if is_open.remove(&place) {
                        held.insert(place, vec![*found]);
                    } else if !may_be.contains(found) && held.get(&place).is_none_or(|held| held != &[*found])
                    {
                        return Err(format!(
                            "{:?} finds {found:#x} at sector {} of {:?}, not one of {may_be:#x?}",
                            read.id, place.1, place.0
                        ));
                    }
                }
            }
            Seen::Cut { .. } => {
                is_open.extend(held.keys().copied().chain(inside.values().flat_map(places)));
                inside.clear();
                reads.clear();
            }
            _ => {}
        }
    }
    Ok(())
}

/// A change that may be found after a power cut.
#[derive(Clone, Copy)]
struct Version {
    content: u64,
    /// Its place in the order of acknowledgements; none if it was not acknowledged.
    acknowledged: Option<u64>,
}

/// What is found after a power cut is nothing older than what was durable before,
/// block by block: what was acknowledged, or what a flush has covered, as the
/// device states.
pub fn survives(trial: &Trial<'_>) -> Result<(), String> {
    let limits = trial.limits;
    let fresh = || vec![Version { content: ZEROS, acknowledged: Some(0) }];
    let mut kept: BTreeMap<Block, Vec<Version>> = BTreeMap::new();
    // Requests inside, with the number of acknowledgements before.
    let mut inside: BTreeMap<RequestId, (Request, u64)> = BTreeMap::new();
    let (mut acknowledged, mut unread) = (0, BTreeSet::new());
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. }
                if request.operation == Operation::Flush || limits.admit(request.lba.0, request.sectors) =>
            {
                inside.insert(request.id, (*request, acknowledged));
            }
            Seen::Completed { completion, blocks: found, .. } => {
                let Some((request, before)) = inside.remove(&completion.id) else { continue };
                let is_ok = completion.status == Status::Ok;
                match request.operation {
                    Operation::Read if is_ok => {
                        for (place, &found) in blocks(limits, &request).zip(found) {
                            if !unread.remove(&place) {
                                continue;
                            }
                            let versions = kept.entry(place).or_insert_with(fresh);
                            if !versions.iter().any(|version| version.content == found) {
                                let may_be: Vec<u64> =
                                    versions.iter().map(|version| version.content).collect();
                                return Err(format!(
                                    "sector {} of {:?} holds {found:#x}, not one of {may_be:#x?}",
                                    place.1, place.0
                                ));
                            }
                            *versions = vec![Version { content: found, acknowledged: Some(0) }];
                        }
                    }
                    Operation::Flush if is_ok && limits.durable < Durable::Never => {
                        for versions in kept.values_mut() {
                            let covered =
                                |version: &Version| version.acknowledged.is_some_and(|at| at <= before);
                            let newest = versions.iter().rposition(covered).unwrap_or(0);
                            versions.drain(..newest);
                        }
                    }
                    Operation::Read | Operation::Flush | Operation::Demote => {}
                    _ => {
                        acknowledged += u64::from(is_ok);
                        let is_durable = limits.durable == Durable::Acknowledged
                            || limits.durable == Durable::Flushed && request.fua;
                        for place in blocks(limits, &request) {
                            unread.remove(&place);
                            let versions = kept.entry(place).or_insert_with(fresh);
                            if is_ok && is_durable {
                                versions.clear();
                            }
                            let content = content(&request, place);
                            versions.push(Version { content, acknowledged: is_ok.then_some(acknowledged) });
                        }
                    }
                }
            }
            Seen::Cut { .. } => {
                for (change, _) in
                    std::mem::take(&mut inside).values().filter(|(one, _)| changes(one.operation))
                {
                    for place in blocks(limits, change) {
                        let content = content(change, place);
                        kept.entry(place).or_insert_with(fresh).push(Version { content, acknowledged: None });
                    }
                }
                if limits.durable == Durable::Never {
                    kept.values_mut().for_each(|versions| versions.extend(fresh()));
                }
                unread = kept.keys().copied().collect();
            }
            _ => {}
        }
    }
    Ok(())
}
