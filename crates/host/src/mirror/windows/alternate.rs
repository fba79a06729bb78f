//! `alternate`: one copy after the other, first the one that may take the least, then
//! the one whose window lasts longest (two NVM sets with the same data, never both in a
//! non-deterministic window: the dissertation on PLMC, chapter 4).

use std::cmp::Reverse;

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Standing, Turns};
use crate::limits;

/// Settings of `alternate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Alternate {
    /// Shortest time that a copy has for background work in its turn; longer where it
    /// has not made room by then for what its next window promises. At most 1 h.
    pub rest: Span,
}

impl Default for Alternate {
    /// Ours.
    fn default() -> Self {
        Alternate { rest: Span::from_ms(20) }
    }
}

impl Build for Alternate {
    fn build(&self) -> Option<Box<dyn Turns>> {
        Some(Box::new(self.clone()))
    }

    fn validate(&self) -> Result<(), String> {
        if self.rest == Span::ZERO {
            return Err("rest is zero; a copy needs some time for background work".into());
        }
        limits::wait("rest", self.rest)
    }
}

impl Turns for Alternate {
    fn rest(&self) -> Span {
        self.rest
    }

    fn next(&self, copies: &[Standing]) -> usize {
        let exhausted = |copy: &Standing| copy.writes_left == Some(0);
        let next = copies.iter().min_by_key(|copy| (Reverse(exhausted(copy)), copy.since, copy.copy));
        next.expect("there is a copy").copy
    }
}
