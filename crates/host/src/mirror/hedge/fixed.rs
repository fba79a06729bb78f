//! `fixed`: the second copy is asked after a time that is set, which who sets it has tuned
//! to the load.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Hedge};
use crate::limits;

/// Settings of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fixed {
    /// How long the first copy has to answer; 0 asks two copies at once; at most 1 h.
    pub after: Span,
}

impl Default for Fixed {
    /// Ours.
    fn default() -> Self {
        Fixed { after: Span::from_ms(1) }
    }
}

impl Build for Fixed {
    fn build(&self) -> Option<Box<dyn Hedge>> {
        Some(Box::new(Delay { after: self.after }))
    }

    fn validate(&self) -> Result<(), String> {
        limits::wait("after", self.after)
    }
}

#[derive(Clone)]
struct Delay {
    after: Span,
}

impl Hedge for Delay {
    fn delay(&mut self) -> Option<Span> {
        Some(self.after)
    }

    fn answered(&mut self, _latency: Span) {}
}
