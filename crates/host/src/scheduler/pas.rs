//! `pas`: the prediction-aware scheduler of SSDcheck (§IV), SSD only. Where
//! reads and writes wait, the oldest read goes first if it is predicted to be
//! slow in its turn; otherwise whatever is oldest goes. Nothing bounds how long writes
//! wait while each read in turn would be slow.

use std::collections::VecDeque;

use flashkeel_engine::{Completion, Operation, Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, IoScheduler};
use crate::claim::Claim;

/// Settings of `pas`: none; what is slow, the predictor knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pas {}

impl Build for Pas {
    fn build(&self, _claims: &[Claim], predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        Box::new(Scheduler {
            predictor: predictor.expect("the stack has been validated"),
            reads: VecDeque::new(),
            others: VecDeque::new(),
        })
    }

    fn needs_predictor(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Scheduler {
    predictor: Box<dyn Predictor>,
    reads: VecDeque<Request>,
    others: VecDeque<Request>,
}

impl Scheduler {
    /// Whether the oldest read goes next.
    fn is_read_next(&mut self, now: Time) -> bool {
        let (Some(read), Some(other)) = (self.reads.front(), self.others.front()) else {
            return self.others.is_empty();
        };
        if read.id < other.id {
            return true;
        }
        let others = self.others.make_contiguous();
        let older = others.partition_point(|other| other.id < read.id);
        self.predictor.predict(now, &others[..older], read).is_slow
    }
}

impl IoScheduler for Scheduler {
    fn add(&mut self, _now: Time, request: &Request) {
        let queue = if request.operation == Operation::Read { &mut self.reads } else { &mut self.others };
        queue.push_back(*request);
    }

    fn cut_power(&mut self, now: Time) {
        self.predictor.cut_power(now);
        self.reads.clear();
        self.others.clear();
    }

    fn next(&mut self, now: Time) -> Option<Request> {
        let queue = if self.is_read_next(now) { &mut self.reads } else { &mut self.others };
        let request = queue.pop_front()?;
        self.predictor.submitted(now, &request);
        Some(request)
    }

    fn completed(&mut self, now: Time, completion: &Completion) {
        self.predictor.observe(now, completion);
    }
}
