//! `round-robin`: each copy in turn.

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, Reader, least};
use crate::mirror::MOST;

/// Settings of `round-robin`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {}

impl Build for RoundRobin {
    fn build(&self, _predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Turn { last: MOST - 1 })
    }
}

#[derive(Clone)]
struct Turn {
    last: usize,
}

impl Reader for Turn {
    fn choose(&mut self, _now: Time, _read: &Request, copies: &Copies<'_>) -> usize {
        self.last = least(copies, self.last, |_| ());
        self.last
    }
}
