//! A small configuration with everything a real one has.

use flashkeel_config::axis;
use flashkeel_engine::{Span, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the policies have in common.
pub trait Policy {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Serves in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Debit {
    /// Time between two adjustments.
    pub period: Span,
    /// Fixed shares.
    pub shares: Vec<f64>,
}

impl Default for Debit {
    fn default() -> Self {
        Debit { period: Span::from_ms(5), shares: vec![] }
    }
}

impl Policy for Fifo {}

impl Policy for Debit {
    fn validate(&self) -> Result<(), String> {
        if self.period == Span::ZERO {
            return Err("period is 0ns; it must be longer".into());
        }
        match self.shares.iter().sum::<f64>() {
            sum if sum > 1.0 => Err(format!("shares: {sum} in all; at most 1")),
            _ => Ok(()),
        }
    }
}

axis! {
    /// Who gets the flash next.
    pub enum Scheduler as "scheduler": Policy {
        /// First come, first served.
        Fifo(Fifo) = "fifo",
        /// Limits what each task has outstanding.
        Debit(Debit) = "debit",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Open,
    Closed,
}

/// Times of the flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Time of a page read.
    pub read: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { read: Span::from_us(50) }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Device {
    /// Number of channels.
    pub channels: u32,
    pub geometry: Option<u8>,
    pub capacity: Bytes,
    pub ratio: f64,
    pub on: bool,
    pub mode: Mode,
    pub scheduler: Scheduler,
    pub timing: Timing,
    pub parts: Vec<Timing>,
    #[schemars(schema_with = "count_or_all")]
    pub spare: Option<String>,
}

fn count_or_all(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "anyOf": [{ "const": "all" }, { "type": "integer" }, { "type": "null" }] })
}

impl Default for Device {
    fn default() -> Self {
        Device {
            channels: 4,
            geometry: None,
            capacity: Bytes(1 << 30),
            ratio: 0.5,
            on: true,
            mode: Mode::Open,
            scheduler: Scheduler::Debit(Debit::default()),
            timing: Timing::default(),
            parts: vec![],
            spare: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Experiment {
    pub title: String,
    pub device: Device,
}
