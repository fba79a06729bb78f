//! `fold`: host pages are programmed fast while the cache has room. When the
//! host is silent, or the cache is nearly full, they are folded: each takes a
//! dense program on its chip, which waits for the channel as any program does
//! but transfers nothing.
//!
//! A model of the time that folding takes, not of the place: a page keeps its
//! address, and the cache takes no capacity away. Parity of host pages takes room in
//! it as they do, whichever way pages protect each other.

use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;
use crate::limits::LONGEST;

/// Settings of `fold`. The defaults are ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fold {
    /// Data that can wait to be folded; divided evenly among partitions, each of which needs
    /// a flash page of it at least. All that was programmed is folded, overwritten pages, too.
    pub size: Bytes,
    /// Program time of a flash page while there is room.
    pub program: Span,
    /// Time without a request after which folding begins. It ends with the
    /// operations on their way when a request comes.
    pub idle_after: Span,
    /// Fraction of `size` above which folding begins beside the host's work. It has garbage
    /// collection's share of `debit`, which is at its least while no blocks are collected.
    pub start_above: f64,
    /// Fraction of `size` below which it ends again.
    pub stop_below: f64,
}

impl Default for Fold {
    fn default() -> Self {
        Fold {
            size: Bytes(16 << 20),
            program: Span::from_us(200),
            idle_after: Span::from_ms(20),
            start_above: 0.9,
            stop_below: 0.7,
        }
    }
}

impl Policy for Fold {
    fn settings(&self) -> Option<&Fold> {
        Some(self)
    }

    fn validate(&self) -> Result<(), String> {
        for (key, span) in [("program", self.program), ("idle_after", self.idle_after)] {
            if span == Span::ZERO || span > LONGEST {
                return Err(format!("{key} is {span}; it must be above 0 and at most {LONGEST}"));
            }
        }
        if !(0.0 <= self.stop_below && self.stop_below <= self.start_above && self.start_above <= 1.0) {
            return Err(format!(
                "stop_below is {} and start_above {}; they must rise, from 0 to 1",
                self.stop_below, self.start_above
            ));
        }
        Ok(())
    }
}
