//! `shortest-queue`: the copy with the fewest requests; of several, each in turn.

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, Reader, least};
use crate::mirror::MOST;

/// Settings of `shortest-queue`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShortestQueue {}

impl Build for ShortestQueue {
    fn build(&self, _predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Shortest { last: MOST - 1 })
    }
}

#[derive(Clone)]
struct Shortest {
    last: usize,
}

impl Reader for Shortest {
    fn choose(&mut self, _now: Time, _read: &Request, copies: &Copies<'_>) -> usize {
        self.last = least(copies, self.last, |copy| copies.queued[copy]);
        self.last
    }
}
