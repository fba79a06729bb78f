//! `constant`: the same volume, day and night.

use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, Load};
use crate::{Stopped, Watch};

/// A constant demand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Written each day.
    pub per_day: Bytes,
}

impl Load for Constant {
    fn load_watched(&self, _seed: u64, _watch: &mut Watch<'_>) -> Result<Demand, Stopped> {
        Ok(Demand {
            interval: Span::from_secs(3_600),
            written: vec![self.per_day.0 as f64 / 24.0],
            is_synthetic: true,
            recorded: None,
            notes: vec![format!("the demand is {} a day, evenly spread (synthetic)", self.per_day)],
        })
    }
}
