//! `window`: a copy in a deterministic window, or for a read that is unhurried one that is
//! not; of several, and where there is none, the one with the fewest requests.

use flashkeel_engine::{Predictor, Request, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, MOST, Reader, least};

/// Settings of `window`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Window {}

impl Build for Window {
    fn build(&self, _predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Inside { last: MOST - 1 })
    }

    fn needs_windows(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Inside {
    last: usize,
}

impl Reader for Inside {
    fn choose(&mut self, _now: Time, read: &Request, copies: &Copies<'_>) -> usize {
        let is_wrong = |copy: usize| (copies.deterministic >> copy & 1 == 1) == read.is_unhurried;
        self.last = least(copies, self.last, |copy| (is_wrong(copy), copies.queued[copy]));
        self.last
    }
}
