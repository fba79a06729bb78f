//! `periodic`: a deterministic window without background work and a
//! non-deterministic one with it, in turn (the DTWin and NDWin of NVMe's
//! predictable latency mode, by the clock alone).

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, WindowPolicy};
use crate::limits::LONGEST_PERIOD;

/// Settings of `periodic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Periodic {
    /// Length of the window without background work: what a chip has begun with ends in it,
    /// and nothing else begins, unless the host has no free block, with `striped` on one chip,
    /// which opens it for all chips. Map pages on their way come through, for some ms.
    pub deterministic: Span,
    /// Length of the window with it.
    pub non_deterministic: Span,
}

impl Default for Periodic {
    fn default() -> Self {
        Periodic { deterministic: Span::from_ms(100), non_deterministic: Span::from_ms(100) }
    }
}

impl Build for Periodic {
    /// The first set begins with a deterministic window. The others are behind it by an
    /// equal part of the period each.
    fn build(&self, set: u32, sets: u32) -> Option<Box<dyn WindowPolicy>> {
        let lengths = [self.non_deterministic, self.deterministic];
        let period = u128::from(lengths[0].0) + u128::from(lengths[1].0);
        let behind = (period * u128::from(set) / u128::from(sets)) as u64;
        // What is left, at the start, of the window that it is in.
        let (background, first) = match behind.checked_sub(lengths[0].0) {
            _ if behind == 0 => (true, None),
            None | Some(0) => (false, Some(Span(behind))),
            Some(left) => (true, Some(Span(left))),
        };
        Some(Box::new(Schedule { lengths, background, first }))
    }

    fn validate(&self) -> Result<(), String> {
        for (key, length) in
            [("deterministic", self.deterministic), ("non_deterministic", self.non_deterministic)]
        {
            if length == Span::ZERO {
                return Err(format!("{key} is zero; give the window a length"));
            }
            if length > LONGEST_PERIOD {
                return Err(format!("{key} is {length}; at most {LONGEST_PERIOD}"));
            }
        }
        Ok(())
    }

    fn shortest_background(&self) -> Option<(&'static str, Span)> {
        Some(("non_deterministic", self.non_deterministic))
    }
}

#[derive(Clone)]
struct Schedule {
    /// Length of the window with background work, and of the one without.
    lengths: [Span; 2],
    /// Whether the present window is the one with background work; before the first, what
    /// it is not.
    background: bool,
    /// Length of the first window, where that is another.
    first: Option<Span>,
}

impl WindowPolicy for Schedule {
    fn background(&mut self, now: Time) -> (bool, Option<Time>) {
        self.background = !self.background;
        let length = self.lengths[usize::from(!self.background)];
        let length = self.first.take().unwrap_or(length);
        (self.background, Some(now + length))
    }
}
