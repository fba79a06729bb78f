//! `ssdcheck`: a model of the device found by probing a copy of it, which corrects
//! itself by what it sees (SSDcheck, §III).

use std::fs;
use std::path::{Path, PathBuf};

use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::{DeviceModel, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, diagnosis};
use crate::device::{Device, Probing, Unmade};

/// Settings of `ssdcheck`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ssdcheck {
    /// Decides the addresses that the probe uses.
    pub probe_seed: u64,
    /// A device model file, as `flashkeel probe --out` saves it, instead of a probe.
    pub model: Option<PathBuf>,
    /// Part of the normal requests that may be called slow, 0 to 1: who pays much for a false call
    /// affords few. Without it, as many as give the greatest harmonic mean of recall and
    /// precision, or the paper's 0.85 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_calls: Option<f64>,
}

impl Default for Ssdcheck {
    fn default() -> Self {
        Ssdcheck { probe_seed: 1, model: None, false_calls: None }
    }
}

impl Build for Ssdcheck {
    fn read(&self, device: &(dyn Device + 'static)) -> Result<Option<Box<dyn Predictor>>, String> {
        let Some(path) = &self.model else { return Ok(None) };
        let model = read(path).map_err(|why| format!("predictor.model: {}: {why}", path.display()))?;
        let model =
            model.of_drive(device.limits().sectors).map_err(|why| format!("predictor.model: it is {why}"))?;
        Ok(Some(Box::new(Engine::new(&model, self.false_calls))))
    }

    fn probe(&self, device: &(dyn Device + 'static), told: &mut Probing<'_>) -> Result<DeviceModel, Unmade> {
        diagnosis(device, self.probe_seed, told)
    }

    fn build(
        &self,
        model: &DeviceModel,
        _device: &(dyn Device + 'static),
        _depth: usize,
    ) -> Box<dyn Predictor> {
        Box::new(Engine::new(model, self.false_calls))
    }

    fn validate(&self) -> Result<(), String> {
        match self.false_calls {
            Some(part) if !(0.0..=1.0).contains(&part) => {
                Err(format!("false_calls is {part}; a part of the normal requests, 0 to 1"))
            }
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<DeviceModel, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let model: DeviceModel =
        serde_json::from_str(&text).map_err(|error| format!("not a device model: {error}"))?;
    model.validate().map_err(|why| format!("not a device model: {why}"))?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_calls_are_a_part() {
        let with = |part| Ssdcheck { false_calls: Some(part), ..Ssdcheck::default() }.validate();
        assert!([0.0, 0.01, 1.0].into_iter().all(|part| with(part).is_ok()));
        for part in [2.0, -0.1, f64::NAN] {
            assert!(with(part).expect_err("refused").starts_with("false_calls is "));
        }
    }
}
