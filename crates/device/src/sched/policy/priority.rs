//! `priority`: fixed priority, the host before background work (the
//! arbitration of AutoSSD's "rain"). Map pages come first of all: requests of
//! the host wait for them, and behind other requests they would wait longest.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending};
use crate::address::ChipId;
use crate::sched::Task;

/// Settings of `priority`: none; map pages rank before the host, and garbage collection
/// behind it before all other tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {}

impl Build for Priority {
    fn build(&self, _chips: u32, _depth: u32, _partitions: u32, _random: Stream) -> Box<dyn Arbiter> {
        Box::new(PriorityArbiter)
    }
}

/// The tasks in order of falling priority: map, host, and the others in their
/// order.
const RANKS: [Task; Task::COUNT] = {
    let mut ranks = [Task::Host; Task::COUNT];
    ranks[0] = Task::Map;
    let mut at = 2;
    while at < Task::COUNT {
        ranks[at] = Task::ALL[at];
        at += 1;
    }
    ranks
};

/// The pending task of the highest rank.
#[inline]
pub(super) fn first(pending: &Pending<'_>) -> Task {
    let is_pending = |task: &Task| pending.mask >> *task as u32 & 1 == 1;
    RANKS.into_iter().find(is_pending).expect("something is pending")
}

#[derive(Clone)]
struct PriorityArbiter;

impl Arbiter for PriorityArbiter {
    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        first(pending)
    }
}
