//! `feedback`: the share that follows the task's error (AutoSSD, §3.3), and nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Control;
use crate::sched::Signals;

/// Settings of `feedback`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Feedback {}

impl Control for Feedback {
    fn share(&self, share: f64, _least: f64, _most: f64, _signals: &Signals) -> f64 {
        share
    }
}
