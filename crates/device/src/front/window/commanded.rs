//! `commanded`: a window lasts until the next is commanded, as in NVMe's
//! predictable latency mode. A deterministic one also ends when garbage
//! collection can wait no longer.

use flashkeel_engine::{Time, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, WindowPolicy};

/// Settings of `commanded`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Commanded {}

impl Build for Commanded {
    fn build(&self) -> Option<Box<dyn WindowPolicy>> {
        Some(Box::new(Present(Window::NonDeterministic)))
    }
}

#[derive(Clone)]
struct Present(Window);

impl WindowPolicy for Present {
    fn background(&mut self, _now: Time) -> (bool, Option<Time>) {
        (self.0 == Window::NonDeterministic, None)
    }

    fn obeys(&self) -> bool {
        true
    }

    fn command(&mut self, window: Window) {
        self.0 = window;
    }
}
