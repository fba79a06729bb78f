//! What a window that software imposes lasts for, and what passes in it.

use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// Each window costs a few events, however short it is: shorter ones would be all that a run does.
pub(crate) const SHORTEST_WINDOW: Span = Span::from_us(1);

/// Settings of windows that software imposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowSettings {
    /// Writes that are larger go to the device at once in a deterministic window, too.
    pub direct_above: Bytes,
    /// Pages of 4 KiB of such writes that a deterministic window takes, first come first
    /// served (its write deterministic count); one more ends it. Any number if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
    /// Most that is held back; more ends the window. A trim counts as a page.
    pub held: Bytes,
    /// Longest time that a deterministic window lasts, at least 1 us and at most 1 h. Changes are
    /// held back so long, and before it while it is prepared: until all that is under way has
    /// ended and `settle` is over.
    pub time_maximum: Span,
    /// How long the last change must be over before a deterministic window begins: time for
    /// what the device does about it by itself; at most 1 h.
    pub settle: Span,
    /// An event is raised when no more than so many pages of `writes` are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_warning: Option<u64>,
    /// An event is raised when no more than so much time is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_warning: Option<Span>,
}

impl Default for WindowSettings {
    /// 64 KiB is the dissertation's (section 5.3.5), the rest ours.
    fn default() -> Self {
        WindowSettings {
            direct_above: Bytes(64 << 10),
            writes: None,
            held: Bytes(16 << 20),
            time_maximum: Span::from_ms(100),
            settle: Span::ZERO,
            writes_warning: None,
            time_warning: None,
        }
    }
}

impl WindowSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<(), String> {
        if self.held == Bytes(0) {
            return Err("held is 0B; a window in which nothing is held back is none".into());
        }
        if self.time_maximum < SHORTEST_WINDOW {
            return Err(format!("time_maximum is {}; at least {SHORTEST_WINDOW}", self.time_maximum));
        }
        limits::wait("time_maximum", self.time_maximum)?;
        limits::wait("settle", self.settle)?;
        if self.writes_warning.is_some() && self.writes.is_none() {
            return Err("writes_warning is of what is left of writes, which is not given".into());
        }
        if let Some(warning) = self.time_warning
            && warning >= self.time_maximum
        {
            return Err(format!(
                "time_warning is {warning}, but time_maximum is {}; it must be shorter",
                self.time_maximum
            ));
        }
        Ok(())
    }
}
