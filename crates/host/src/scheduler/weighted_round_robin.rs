//! `weighted-round-robin`: urgent queues before all others, then those of high, medium
//! and low priority by weights (NVMe's weighted round robin with urgent priority class,
//! NVMe 1.4). Queues of one priority take turns. What does not hurry is of low priority.

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ring::Ring;
use super::round_robin::valid_burst;
use super::{Build, IoScheduler};
use crate::claim::{Claim, Priority, index_of};

/// Settings of `weighted-round-robin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WeightedRoundRobin {
    /// Requests taken from a queue at a time (arbitration burst).
    pub burst: u32,
    /// Requests of high priority in a round, 1 to 256.
    pub high: u32,
    /// Requests of medium priority in a round, 1 to 256.
    pub medium: u32,
    /// Requests of low priority in a round, 1 to 256.
    pub low: u32,
}

impl Default for WeightedRoundRobin {
    /// The weights are the dissertation's fixed ratio (on PLMC, chapter 4), 4 : 2 : 1.
    fn default() -> Self {
        WeightedRoundRobin { burst: 1, high: 4, medium: 2, low: 1 }
    }
}

impl Build for WeightedRoundRobin {
    fn build(&self, claims: &[Claim], _predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        Box::new(Rounds {
            priorities: claims.iter().map(|claim| claim.priority).collect(),
            rings: std::array::from_fn(|_| Ring::new(claims.len(), self.burst)),
            weights: [self.high, self.medium, self.low],
            turn: 0,
            left: self.high,
        })
    }

    fn validate(&self) -> Result<(), String> {
        for (key, weight) in [("high", self.high), ("medium", self.medium), ("low", self.low)] {
            if !(1..=256).contains(&weight) {
                return Err(format!("{key} is {weight}; it must lie between 1 and 256"));
            }
        }
        valid_burst(self.burst)
    }
}

#[derive(Clone)]
struct Rounds {
    /// Of each tenant.
    priorities: Vec<Priority>,
    /// The queues of each priority; those of tenants of a higher one are empty.
    rings: [Ring; 4],
    /// Of high, medium and low priority.
    weights: [u32; 3],
    /// Whose turn it is of those, and what is left of it.
    turn: usize,
    left: u32,
}

impl IoScheduler for Rounds {
    fn add(&mut self, _now: Time, request: &Request) {
        let tenant = index_of(request.tenant, self.priorities.len());
        let priority = if request.is_unhurried { Priority::Low } else { self.priorities[tenant] };
        self.rings[priority as usize].add(tenant, request);
    }

    fn next(&mut self, _now: Time) -> Option<Request> {
        let [urgent, rings @ ..] = &mut self.rings;
        if let Some(request) = urgent.next() {
            return Some(request);
        }
        if rings.iter().all(|ring| ring.is_empty()) {
            return None;
        }
        while self.left == 0 || rings[self.turn].is_empty() {
            self.turn = (self.turn + 1) % rings.len();
            self.left = self.weights[self.turn];
        }
        self.left -= 1;
        rings[self.turn].next()
    }

    fn cut_power(&mut self, _now: Time) {
        self.rings.iter_mut().for_each(Ring::clear);
    }
}
