//! `rated`: every cycle counts in full.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Law};

/// Settings of `rated`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rated {
    /// Cycles of programming and erasing that a block endures.
    pub rated_cycles: u32,
}

impl Default for Rated {
    /// READY, "Experimental Setting": 20 nm 2-bit MLC.
    fn default() -> Self {
        Rated { rated_cycles: 3_000 }
    }
}

impl Build for Rated {
    fn build(&self) -> Option<Box<dyn Law>> {
        Some(Box::new(InFull))
    }

    fn rated_cycles(&self) -> Option<u32> {
        Some(self.rated_cycles)
    }
}

#[derive(Clone)]
struct InFull;

impl Law for InFull {
    fn cost(&self, _idle: Span) -> f64 {
        1.0
    }
}
