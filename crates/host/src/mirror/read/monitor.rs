//! `monitor`: a copy whose requests exceed a threshold is taken to be at background
//! work, and reads go to another (the latency monitor of the dissertation
//! on PLMlight, §6.0.1, which leaves threshold and duration open).

use std::collections::VecDeque;

use flashkeel_engine::{Completion, Operation, Predictor, Request, RequestId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, Ended, Reader, least};
use crate::limits;
use crate::mirror::MOST;
use crate::mirror::recent::Recent;

/// Settings of `monitor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Monitor {
    /// A read is slow that takes longer than so many times the median of late. One
    /// that has not come back counts by the time it has taken so far.
    pub factor: f64,
    /// How long a copy is taken to be at background work after a slow read.
    pub hold: Span,
}

impl Default for Monitor {
    /// Ours.
    fn default() -> Self {
        Monitor { factor: 4.0, hold: Span::from_ms(2) }
    }
}

impl Build for Monitor {
    fn build(&self, _predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Watcher::new(self))
    }

    fn validate(&self) -> Result<(), String> {
        if !(self.factor >= 1.0 && self.factor.is_finite()) {
            return Err(format!(
                "factor is {}; a slow read takes at least as long as the median, so 1 or more",
                self.factor
            ));
        }
        limits::wait("hold", self.hold)
    }
}

#[derive(Clone)]
pub(super) struct Watcher {
    factor: f64,
    hold: Span,
    /// Of reads of all copies.
    median: Recent,
    copies: [Watched; MOST],
    last: usize,
}

#[derive(Clone, Default)]
struct Watched {
    /// Reads with it, oldest first; those that have come back are taken off when
    /// they are the oldest.
    inside: VecDeque<(RequestId, Time, bool)>,
    /// Until when it is taken to be at background work.
    busy_until: Time,
}

impl Watcher {
    pub fn new(settings: &Monitor) -> Watcher {
        let &Monitor { factor, hold } = settings;
        Watcher { factor, hold, median: Recent::new(0.5), copies: Default::default(), last: MOST - 1 }
    }

    /// Whether the oldest read with a copy has been there for longer than the threshold.
    pub fn is_overdue(&self, now: Time, copy: usize) -> bool {
        let oldest = self.copies[copy].inside.front();
        oldest.is_some_and(|&(_, begun, _)| self.threshold().is_some_and(|most| now.since(begun) > most))
    }

    fn threshold(&self) -> Option<Span> {
        Some(Span((self.median.quantile()?.0 as f64 * self.factor) as u64))
    }
}

impl Reader for Watcher {
    fn choose(&mut self, now: Time, _read: &Request, copies: &Copies<'_>) -> usize {
        for copy in 0..MOST {
            if self.is_overdue(now, copy) {
                let busy_until = &mut self.copies[copy].busy_until;
                *busy_until = (*busy_until).max(now + self.hold);
            }
        }
        let watched = &self.copies;
        self.last = least(copies, self.last, |copy| {
            let busy_until = watched[copy].busy_until;
            (if busy_until > now { busy_until } else { Time::ZERO }, copies.queued[copy])
        });
        self.last
    }

    fn submitted(&mut self, now: Time, copy: usize, request: &Request) {
        if request.operation == Operation::Read {
            self.copies[copy].inside.push_back((request.id, now, false));
        }
    }

    fn completed(&mut self, now: Time, ended: &Ended, completion: &Completion) {
        if !ended.is_read {
            return;
        }
        let watched = &mut self.copies[ended.copy];
        if let Ok(index) = watched.inside.binary_search_by_key(&completion.id, |&(id, ..)| id) {
            watched.inside[index].2 = true;
        }
        while watched.inside.front().is_some_and(|&(.., is_back)| is_back) {
            watched.inside.pop_front();
        }
        self.median.note(ended.latency);
        if self.threshold().is_some_and(|threshold| ended.latency > threshold) {
            let watched = &mut self.copies[ended.copy];
            watched.busy_until = watched.busy_until.max(now + self.hold);
        }
    }

    fn cut_power(&mut self, _now: Time) {
        self.copies.iter_mut().for_each(|watched| watched.inside.clear());
    }
}
