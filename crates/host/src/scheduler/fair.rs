//! `fair`: each tenant's reads and writes are served in turns of a budget, and
//! in the long run by the tenants' weights. After Linux's bfq
//! (`block/bfq-iosched.c`), without its idling and its heuristics: the next
//! turn is of the queue that would end first in virtual time, among those that
//! are not ahead of it (B-WF2Q+). A higher class goes first and ends a turn.

use std::collections::VecDeque;

use flashkeel_engine::{Operation, Predictor, Request, SECTOR_BYTES, Time, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, IoScheduler};
use crate::claim::{Claim, TenantClass, index_of};

/// Settings of `fair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fair {
    /// What a queue may have served in one turn.
    pub budget: Bytes,
    /// What a written byte counts beside a read one, at least 1.
    pub write_charge: u32,
}

impl Default for Fair {
    /// The charge is bfq's (`bfq_async_charge_factor`); the budget is ours.
    fn default() -> Self {
        Fair { budget: Bytes(512 << 10), write_charge: 3 }
    }
}

impl Build for Fair {
    fn build(&self, claims: &[Claim], _predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        let queue = |claim: &Claim, charge| Queue {
            weight: u64::from(claim.weight),
            class: claim.class,
            charge,
            waiting: VecDeque::new(),
            start: 0,
            finish: 0,
        };
        let queues = claims
            .iter()
            .flat_map(|claim| [queue(claim, 1), queue(claim, u64::from(self.write_charge))])
            .collect();
        Box::new(Scheduler { budget: self.budget.0 / SECTOR_BYTES, queues, turn: None, virtual_time: 0 })
    }

    fn validate(&self) -> Result<(), String> {
        if self.budget.0 < SECTOR_BYTES {
            return Err(format!("budget is {}; at least 512B", self.budget));
        }
        if !(1..=100).contains(&self.write_charge) {
            return Err(format!("write_charge is {}; it must lie between 1 and 100", self.write_charge));
        }
        Ok(())
    }
}

/// Virtual time per sector at a weight of 1.
const SCALE: u64 = 1 << 16;

#[derive(Clone)]
struct Scheduler {
    /// In sectors.
    budget: u64,
    /// Each tenant's reads, then its writes and everything else.
    queues: Vec<Queue>,
    turn: Option<Turn>,
    virtual_time: u64,
}

/// The queue that is being served.
#[derive(Clone)]
struct Turn {
    queue: usize,
    /// Sectors served so far, with their charge.
    served: u64,
}

#[derive(Clone)]
struct Queue {
    weight: u64,
    class: TenantClass,
    charge: u64,
    waiting: VecDeque<Request>,
    /// Virtual times at which its next turn starts, and would finish with a
    /// whole budget used.
    start: u64,
    finish: u64,
}

impl Scheduler {
    fn end_turn(&mut self) {
        let Some(Turn { queue, served }) = self.turn.take() else { return };
        let queue = &mut self.queues[queue];
        queue.start += served * SCALE / queue.weight;
        queue.finish = queue.start + self.budget * SCALE / queue.weight;
    }

    /// The highest class of which anything waits.
    fn waiting_class(&self) -> Option<TenantClass> {
        self.queues.iter().filter(|queue| !queue.waiting.is_empty()).map(|queue| queue.class).min()
    }

    fn begin_turn(&mut self) -> Option<()> {
        let class = self.waiting_class()?;
        let waiting = || {
            let queues = self.queues.iter().enumerate();
            queues.filter(|(_, queue)| !queue.waiting.is_empty() && queue.class == class)
        };
        let earliest = waiting().map(|(_, queue)| queue.start).min()?;
        let virtual_time = self.virtual_time.max(earliest);
        let (queue, _) = waiting()
            .filter(|(_, queue)| queue.start <= virtual_time)
            .min_by_key(|(_, queue)| queue.finish)
            .expect("the earliest may start");
        self.virtual_time = virtual_time;
        self.turn = Some(Turn { queue, served: 0 });
        Some(())
    }
}

impl IoScheduler for Scheduler {
    fn add(&mut self, _now: Time, request: &Request) {
        let direction = usize::from(request.operation != Operation::Read);
        let index = 2 * index_of(request.tenant, self.queues.len() / 2) + direction;
        let is_served = self.turn.as_ref().is_some_and(|turn| turn.queue == index);
        let queue = &mut self.queues[index];
        if queue.waiting.is_empty() && !is_served {
            // Who was away has no claim on the time that passed.
            queue.start = queue.start.max(self.virtual_time);
            queue.finish = queue.start + self.budget * SCALE / queue.weight;
        }
        queue.waiting.push_back(*request);
    }

    fn cut_power(&mut self, _now: Time) {
        self.queues.iter_mut().for_each(|queue| queue.waiting.clear());
    }

    fn next(&mut self, _now: Time) -> Option<Request> {
        let class = self.waiting_class()?;
        let is_over = self.turn.as_ref().is_none_or(|turn| {
            let queue = &self.queues[turn.queue];
            turn.served >= self.budget || queue.waiting.is_empty() || queue.class > class
        });
        if is_over {
            self.end_turn();
            self.begin_turn()?;
        }
        let turn = self.turn.as_mut().expect("a turn has begun");
        let queue = &mut self.queues[turn.queue];
        let request = queue.waiting.pop_front().expect("a queue with a turn has requests");
        let charge = u64::from(request.sectors).max(1) * queue.charge;
        turn.served += charge;
        let all: u64 = self.queues.iter().filter(|queue| !queue.waiting.is_empty()).map(|q| q.weight).sum();
        self.virtual_time += charge * SCALE / all.max(self.queues[turn.queue].weight);
        Some(request)
    }
}
