//! The laws. Each is a function of what a host has seen; its sentence is in the
//! list.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{Limits, Operation, Refusal, Request, RequestId, Status, Submit, TenantId, Time};

use crate::host::{Seen, ZEROS, stamp};

/// What a host has seen of a device, and what it knows of it.
pub struct Trial<'a> {
    /// What the device states of itself.
    pub limits: Limits,
    /// Whether it orders flushes among the requests of their tenant, as a stack
    /// does and a single device need not.
    pub orders_flushes: bool,
    /// From the first step to the last.
    pub history: &'a [Seen],
    /// What a host has seen of the copy, and the other part of whose history is
    /// that of the original.
    pub of_copy: &'a [Seen],
}

/// A law: the words for it, and what it finds wrong.
pub type Law = (&'static str, fn(&Trial<'_>) -> Result<(), String>);

/// All of them.
pub const LAWS: [Law; 9] = [
    ("accepted once, completed once", completed_once),
    ("busy and refused are answers, and nothing follows them", answered),
    ("what is admitted is done", done),
    ("nothing completes before it was submitted", after_submission),
    ("time never runs back", forward),
    ("the ledger sums", ledger),
    ("a flush keeps its place", flushes),
    ("reads return what was written", reads),
    ("a clone behaves as the original", copies),
];

/// Every accepted request has one completion, and no other has any.
fn completed_once(trial: &Trial<'_>) -> Result<(), String> {
    let mut inside = BTreeSet::new();
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. } => {
                inside.insert(request.id);
            }
            Seen::Completed { completion, .. } if !inside.remove(&completion.id) => {
                return Err(format!("{:?} completes, which is not inside", completion.id));
            }
            _ => {}
        }
    }
    match inside.first() {
        Some(id) => Err(format!("{id:?} never completes")),
        None => Ok(()),
    }
}

/// A device is busy only while it has something to do; it refuses what its
/// limits do not admit, and that only; it knows what is not there.
fn answered(trial: &Trial<'_>) -> Result<(), String> {
    let (mut inside, mut refused) = (0usize, BTreeSet::new());
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer, .. } => {
                let is_admitted = request.operation == Operation::Flush
                    || trial.limits.admit(request.lba.0, request.sectors);
                match answer {
                    Submit::Busy if inside == 0 => return Err(format!("busy with nothing: {request:?}")),
                    Submit::Busy => {}
                    Submit::Accepted if is_admitted => inside += 1,
                    Submit::Refused(Status::Invalid) if !is_admitted => {
                        refused.insert(request.id);
                    }
                    _ => return Err(format!("{answer:?} to {request:?} within {:?}", trial.limits)),
                }
            }
            Seen::Completed { completion, .. } => {
                if refused.contains(&completion.id) {
                    return Err(format!("{:?} completes after it was refused", completion.id));
                }
                inside = inside.saturating_sub(1);
            }
            Seen::Told { place, answer } => {
                let is_there = place.0.is_empty();
                if !is_there && *answer != Err(Refusal::NoSuchPlace) {
                    return Err(format!("at {place} there is nothing, but the answer is {answer:?}"));
                }
            }
            Seen::Advanced { .. } => {}
        }
    }
    Ok(())
}

/// Nothing fails here.
fn done(trial: &Trial<'_>) -> Result<(), String> {
    for seen in trial.history {
        if let Seen::Completed { completion, .. } = seen
            && completion.status != Status::Ok
        {
            return Err(format!("{:?} ends as {}", completion.id, completion.status.label()));
        }
    }
    Ok(())
}

/// When each request was accepted.
fn submissions(trial: &Trial<'_>) -> BTreeMap<RequestId, Time> {
    let accepted = trial.history.iter().filter_map(|seen| match seen {
        Seen::Offered { now, request, answer: Submit::Accepted } => Some((request.id, *now)),
        _ => None,
    });
    accepted.collect()
}

/// A request ends at its submission or later.
fn after_submission(trial: &Trial<'_>) -> Result<(), String> {
    let submitted = submissions(trial);
    for seen in trial.history {
        if let Seen::Completed { completion, .. } = seen
            && submitted.get(&completion.id).is_some_and(|&at| completion.time < at)
        {
            return Err(format!("{:?} was submitted at {}", completion, submitted[&completion.id].0));
        }
    }
    Ok(())
}

/// Completions come in the order of their times, not after the call that reports
/// them; whatever was due has been done.
fn forward(trial: &Trial<'_>) -> Result<(), String> {
    let mut last = Time::ZERO;
    for seen in trial.history {
        match seen {
            Seen::Completed { now, completion, .. } => {
                if completion.time < last || completion.time > *now {
                    return Err(format!("{completion:?} after {} and at {}", last.0, now.0));
                }
                last = completion.time;
            }
            Seen::Advanced { now, due: Some(due) } if due <= now => {
                return Err(format!("at {} there is something left to do at {}", now.0, due.0));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every nanosecond between submission and completion has an owner.
fn ledger(trial: &Trial<'_>) -> Result<(), String> {
    let submitted = submissions(trial);
    for seen in trial.history {
        let Seen::Completed { completion, .. } = seen else { continue };
        let Some(&at) = submitted.get(&completion.id) else { continue };
        if completion.time >= at && completion.ledger.total() != completion.time.since(at) {
            return Err(format!("{completion:?} was submitted at {}", at.0));
        }
    }
    Ok(())
}

/// A flush ends after all before it and before all after it, among the requests
/// of its tenant.
fn flushes(trial: &Trial<'_>) -> Result<(), String> {
    if !trial.orders_flushes {
        return Ok(());
    }
    let mut inside: Vec<(RequestId, TenantId, bool)> = Vec::new();
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. } => {
                inside.push((request.id, request.tenant, request.operation == Operation::Flush));
            }
            Seen::Completed { completion, .. } => {
                let Some(index) = inside.iter().position(|&(id, ..)| id == completion.id) else { continue };
                let (id, tenant, is_flush) = inside.remove(index);
                let before = inside[..index].iter().filter(|&&(_, other, _)| other == tenant);
                if let Some((other, ..)) = before.clone().find(|&&(_, _, flushes)| flushes || is_flush) {
                    return Err(format!("{id:?} completes before {other:?}; one of them is a flush"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A read finds what was acknowledged last when it was submitted, or what has
/// been on its way at the same time.
fn reads(trial: &Trial<'_>) -> Result<(), String> {
    let limits = trial.limits;
    let block = u64::from(limits.block_sectors);
    let places = |request: &Request| {
        let (tenant, lba) = (request.tenant, request.lba.0);
        (0..u64::from(request.sectors) / block).map(move |index| (tenant, lba + index * block))
    };
    let content = |request: &Request, lba| match request.operation {
        Operation::Write => stamp(request.id, lba),
        _ => ZEROS,
    };
    let mut held: BTreeMap<(TenantId, u64), u64> = BTreeMap::new();
    let mut changes: BTreeMap<RequestId, Request> = BTreeMap::new();
    let mut reads: BTreeMap<RequestId, (Request, Vec<Vec<u64>>)> = BTreeMap::new();
    for seen in trial.history {
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. } => match request.operation {
                Operation::Flush => {}
                _ if !limits.admit(request.lba.0, request.sectors) => {}
                Operation::Read => {
                    let may_be = |place: (TenantId, u64)| {
                        let coming =
                            changes.values().filter(|change| places(change).any(|other| other == place));
                        let coming = coming.map(|change| content(change, place.1));
                        coming.chain([held.get(&place).copied().unwrap_or(ZEROS)]).collect()
                    };
                    reads.insert(request.id, (*request, places(request).map(may_be).collect()));
                }
                _ => {
                    changes.insert(request.id, *request);
                    for (read, may_be) in reads.values_mut() {
                        for (place, may_be) in places(read).zip(may_be) {
                            if places(request).any(|other| other == place) {
                                may_be.push(content(request, place.1));
                            }
                        }
                    }
                }
            },
            Seen::Completed { completion, blocks, .. } => {
                if let Some(change) = changes.remove(&completion.id) {
                    held.extend(places(&change).map(|place| (place, content(&change, place.1))));
                }
                let Some((read, may_be)) = reads.remove(&completion.id) else { continue };
                for ((place, may_be), found) in places(&read).zip(may_be).zip(blocks) {
                    if !may_be.contains(found) {
                        return Err(format!(
                            "{:?} finds {found:#x} at sector {} of {:?}, not one of {may_be:#x?}",
                            read.id, place.1, place.0
                        ));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// From the same state, given the same, follows the same.
fn copies(trial: &Trial<'_>) -> Result<(), String> {
    let mut both = trial.history.iter().zip(trial.of_copy);
    match both.find(|(one, other)| one != other) {
        Some((one, other)) => Err(format!("the original: {one:?}; its clone: {other:?}")),
        None if trial.history.len() == trial.of_copy.len() => Ok(()),
        None => Err("one of them completes more than the other".into()),
    }
}
