//! `ssdcheck`: a model of the SSD found by probing a copy of it, which corrects
//! itself by what it sees (SSDcheck, §III).

use flashkeel_device::Ssd;
use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, diagnosis};

/// Settings of `ssdcheck`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ssdcheck {
    /// Decides the addresses that the probe uses.
    pub probe_seed: u64,
}

impl Default for Ssdcheck {
    fn default() -> Self {
        Ssdcheck { probe_seed: 1 }
    }
}

impl Build for Ssdcheck {
    fn build(&self, ssd: &Ssd, _depth: usize) -> Result<Box<dyn Predictor>, String> {
        Ok(Box::new(Engine::new(&diagnosis(ssd, self.probe_seed)?)))
    }
}
