//! The laws. Each is a function of what a host has seen; its sentence is in the
//! list. Those of bytes are in `bytes.rs`, those of commands in `words.rs`.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{
    Durable, Limits, Operation, Refusal, Request, RequestId, Status, Submit, TenantId, Time,
};

use crate::bytes::{blocks, reads, survives};
use crate::host::{Seen, changes};
use crate::words::{Ends, told};

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

/// The only one for which a copy has to be made.
pub const OF_COPIES: &str = "a clone behaves as the original";

/// All of them.
pub const LAWS: [Law; 12] = [
    ("accepted once, completed once", completed_once),
    ("busy and refused are answers, and nothing follows them", answered),
    ("what is admitted is done", done),
    ("nothing completes before it was submitted", after_submission),
    ("time never runs back", forward),
    ("the ledger sums", ledger),
    ("a flush keeps its place", flushes),
    ("reads return what was written", reads),
    ("what was durable survives a power cut", survives),
    ("what is told holds", told),
    ("it comes to rest, and a power cut gives back what it took", rests),
    (OF_COPIES, copies),
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
    let mut ends = Ends::default();
    for seen in trial.history {
        ends.see(seen);
        match seen {
            Seen::Offered { request, answer, .. } => {
                let is_admitted = request.operation == Operation::Flush
                    || trial.limits.admit(request.lba.0, request.sectors);
                match answer {
                    Submit::Busy if inside == 0 => return Err(format!("busy with nothing: {request:?}")),
                    Submit::Busy => {}
                    Submit::Accepted if ends.must_refuse(request.operation) => {
                        return Err(format!("it takes {request:?} although it may not"));
                    }
                    Submit::Refused(status) if ends.may_be(request.operation, *status) => {
                        refused.insert(request.id);
                    }
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
            Seen::Told { place, is_there: false, answer, .. } if *answer != Err(Refusal::NoSuchPlace) => {
                return Err(format!("at {place} there is nothing, but the answer is {answer:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Nothing fails here by itself: only writes end as read-only, while something is,
/// and for lack of space, where a block of theirs holds nothing; nothing is gone or
/// lost before something was taken out, and aborted but in a power cut.
fn done(trial: &Trial<'_>) -> Result<(), String> {
    let (mut ends, mut cut) = (Ends::default(), None);
    // What may end as read-only, as it was inside while something was.
    let mut inside: BTreeMap<RequestId, (Request, bool)> = BTreeMap::new();
    // Devices start full. What is written may be lost with the power.
    let mut emptied = BTreeSet::new();
    let keeps = trial.limits.durable == Durable::Acknowledged;
    for seen in trial.history {
        ends.see(seen);
        match seen {
            Seen::Offered { request, answer: Submit::Accepted, .. } => {
                inside.insert(request.id, (*request, false));
                if matches!(request.operation, Operation::Trim | Operation::WriteZeroes) {
                    emptied.extend(blocks(trial.limits, request));
                }
            }
            Seen::Cut { now } => cut = Some(*now),
            Seen::Completed { completion, .. } => {
                let status = completion.status;
                let end = inside.remove(&completion.id);
                let is_due = status == Status::Ok
                    || status == Status::Aborted && cut == Some(completion.time)
                    || end.is_some_and(|(request, may)| {
                        let mut places = blocks(trial.limits, &request);
                        ends.may_be(request.operation, status)
                            || may && status == Status::ReadOnly
                            || status == Status::NoSpace
                                && request.operation == Operation::Write
                                && places.any(|place| emptied.contains(&place))
                    });
                if !is_due {
                    return Err(format!("{:?} ends as {}", completion.id, status.label()));
                }
                if let Some((write, _)) = end
                    && write.operation == Operation::Write
                    && status == Status::Ok
                    && keeps
                {
                    blocks(trial.limits, &write).for_each(|place| _ = emptied.remove(&place));
                }
            }
            _ => {}
        }
        if !ends.read_only.is_empty() {
            inside.values_mut().for_each(|(request, may)| *may = changes(request.operation));
        }
    }
    Ok(())
}

/// What is due at one instant comes to an end; after a power cut all buffers are
/// back.
fn rests(trial: &Trial<'_>) -> Result<(), String> {
    for seen in trial.history {
        match seen {
            Seen::Stuck { now } => return Err(format!("at {} there is always something left to do", now.0)),
            Seen::Kept { buffers } if *buffers > 0 => return Err(format!("{buffers} buffers are kept")),
            _ => {}
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
            Seen::Cut { .. } => inside.clear(),
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

/// From the same state, given the same, follows the same.
fn copies(trial: &Trial<'_>) -> Result<(), String> {
    let mut both = trial.history.iter().zip(trial.of_copy);
    match both.find(|(one, other)| one != other) {
        Some((one, other)) => Err(format!("the original: {one:?}; its clone: {other:?}")),
        None if trial.history.len() == trial.of_copy.len() => Ok(()),
        None => Err("one of them completes more than the other".into()),
    }
}
