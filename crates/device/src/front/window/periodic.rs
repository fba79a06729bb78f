//! `periodic`: a deterministic window without background work and a
//! non-deterministic one with it, in turn (the DTWin and NDWin of NVMe's
//! predictable latency mode, by the clock alone).

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, WindowPolicy};

/// Settings of `periodic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Periodic {
    /// Length of the window without background work.
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
    fn build(&self) -> Option<Box<dyn WindowPolicy>> {
        Some(Box::new(Schedule { lengths: [self.non_deterministic, self.deterministic], background: true }))
    }

    fn validate(&self) -> Result<(), String> {
        for (key, length) in
            [("deterministic", self.deterministic), ("non_deterministic", self.non_deterministic)]
        {
            if length == Span::ZERO {
                return Err(format!("{key} is zero; give the window a length"));
            }
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Schedule {
    /// Length of the window with background work, and of the one without.
    lengths: [Span; 2],
    /// Whether the present window is the one with background work.
    background: bool,
}

impl WindowPolicy for Schedule {
    fn background(&mut self, now: Time) -> (bool, Option<Time>) {
        self.background = !self.background;
        let length = self.lengths[usize::from(!self.background)];
        (self.background, Some(now + length))
    }
}
