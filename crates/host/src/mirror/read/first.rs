//! `first`: the first copy that has the data; the others are for when it fails.

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, Reader};

/// Settings of `first`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct First {}

impl Build for First {
    fn build(&self, _predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Lowest)
    }
}

#[derive(Clone)]
struct Lowest;

impl Reader for Lowest {
    fn choose(&mut self, _now: Time, _read: &Request, copies: &Copies<'_>) -> usize {
        copies.candidates.trailing_zeros() as usize
    }
}
