//! `ssdcheck`: a model of the device found by probing a copy of it, which corrects
//! itself by what it sees (SSDcheck, §III).

use std::fs;
use std::path::{Path, PathBuf};

use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::{DeviceModel, Engine};
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
    /// A device model file, as `flashkeel probe --out` saves it, instead of a probe.
    pub model: Option<PathBuf>,
}

impl Default for Ssdcheck {
    fn default() -> Self {
        Ssdcheck { probe_seed: 1, model: None }
    }
}

impl Build for Ssdcheck {
    fn build(&self, device: &(dyn Device + 'static), _depth: usize) -> Result<Box<dyn Predictor>, String> {
        let Some(path) = &self.model else {
            return Ok(Box::new(Engine::new(&diagnosis(device, self.probe_seed)?)));
        };
        let model = read(path).map_err(|why| format!("predictor.model: {}: {why}", path.display()))?;
        let sectors = device.limits().sectors;
        if model.sectors != sectors {
            let own = model.sectors;
            return Err(format!(
                "predictor.model: it is of a device of {own} sectors, this one has {sectors}"
            ));
        }
        Ok(Box::new(Engine::new(&model)))
    }
}

fn read(path: &Path) -> Result<DeviceModel, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let model: DeviceModel =
        serde_json::from_str(&text).map_err(|error| format!("not a device model: {error}"))?;
    model.validate().map_err(|why| format!("not a device model: {why}"))?;
    Ok(model)
}
