//! `idle-sleep`: the device sleeps after a time without requests, as drives
//! with autonomous power state transitions do (NVM Express base specification,
//! "Autonomous Power State Transition"). Work in the background goes on.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Power};
use crate::limits::LONGEST;
use crate::machine::Delay;

/// Settings of `idle-sleep`. The defaults are ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IdleSleep {
    /// Time without a request after which the device sleeps.
    pub after: Span,
    /// Time that waking takes; every request waits until it is over.
    pub wake: Delay,
}

impl Default for IdleSleep {
    fn default() -> Self {
        IdleSleep { after: Span::from_ms(100), wake: Delay::between_ns(1_000_000, 1_500_000) }
    }
}

impl Build for IdleSleep {
    fn build(&self, random: Stream) -> Option<Box<dyn Power>> {
        Some(Box::new(Sleeper { settings: self.clone(), random }))
    }

    fn validate(&self) -> Result<(), String> {
        let Delay { min, max } = self.wake;
        if min > max || max > LONGEST {
            return Err(format!("wake: {min} to {max}; min may not be above max, nor max above {LONGEST}"));
        }
        if self.after == Span::ZERO || self.after > LONGEST {
            return Err(format!("after is {}; it must be above 0 and at most {LONGEST}", self.after));
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Sleeper {
    settings: IdleSleep,
    random: Stream,
}

impl Power for Sleeper {
    fn wake(&mut self, idle: Span) -> Span {
        if idle < self.settings.after { Span::ZERO } else { self.settings.wake.draw(&mut self.random) }
    }
}
