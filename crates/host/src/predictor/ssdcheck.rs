//! `ssdcheck`: a model of the device found by probing a copy of it, which corrects
//! itself by what it sees (SSDcheck, §III).

use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, diagnosis};
use crate::device::Device;

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
    fn build(&self, device: &(dyn Device + 'static), _depth: usize) -> Result<Box<dyn Predictor>, String> {
        Ok(Box::new(Engine::new(&diagnosis(device, self.probe_seed)?)))
    }
}
