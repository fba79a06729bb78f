//! `none`: oldest first.

use std::collections::VecDeque;

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, IoScheduler};
use crate::claim::Claim;

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self, _claims: &[Claim], _predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        Box::new(Fifo::default())
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

#[derive(Clone, Default)]
struct Fifo {
    waiting: VecDeque<Request>,
}

impl IoScheduler for Fifo {
    fn add(&mut self, _now: Time, request: &Request) {
        self.waiting.push_back(*request);
    }

    fn cut_power(&mut self, _now: Time) {
        self.waiting.clear();
    }

    fn next(&mut self, _now: Time) -> Option<Request> {
        self.waiting.pop_front()
    }
}
