//! The predictor axis: who tells a stage what a request would take.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::{DeviceModel, ProbeError, probe};

use crate::device::{Device, Probing, Unmade};

flashkeel_config::axis! {
    /// Who tells the host what a request to a device would take.
    pub enum PredictorConfig as "predictor": Build {
        /// A copy of the device, which cannot err: the bound for every other.
        Oracle(Oracle) in oracle = "oracle",
        /// A model found by probing the device, which corrects itself.
        Ssdcheck(Ssdcheck) in ssdcheck = "ssdcheck",
    }
}

impl Default for PredictorConfig {
    fn default() -> Self {
        PredictorConfig::Ssdcheck(ssdcheck::Ssdcheck::default())
    }
}

/// Makes a predictor from its settings.
pub trait Build {
    /// A predictor for `device` that goes by a model in a file; `None` where it takes a probe.
    ///
    /// # Errors
    /// A sentence that begins with the key, if it is of another device.
    fn read(&self, _device: &(dyn Device + 'static)) -> Result<Option<Box<dyn Predictor>>, String> {
        Ok(None)
    }

    /// What a probe of a copy of `device` finds; `told` is told how far it is, and may stop it.
    ///
    /// # Errors
    /// A sentence that begins with the key, if the device cannot be predicted; that it was stopped.
    fn probe(&self, device: &(dyn Device + 'static), told: &mut Probing<'_>) -> Result<DeviceModel, Unmade>;

    /// A predictor for `device`, of which a probe has found this, and which has not served
    /// anything yet and gets at most `depth` requests at a time.
    fn build(&self, model: &DeviceModel, device: &(dyn Device + 'static), depth: usize)
    -> Box<dyn Predictor>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What a probe of a copy of `device` finds.
fn diagnosis(
    device: &(dyn Device + 'static),
    seed: u64,
    told: &mut Probing<'_>,
) -> Result<DeviceModel, Unmade> {
    if device.next_event().hears_outside() {
        return Err(Unmade::Refused(
            "predictor: a real drive cannot be copied to try it; predictor = { policy = \"ssdcheck\", \
                    model = FILE } takes what flashkeel probe --out found of it"
                .into(),
        ));
    }
    let mut copy = dyn_clone::clone_box(device);
    match probe(&mut copy, None, seed, None, told) {
        Ok(report) => Ok(report.model),
        Err(ProbeError::Interrupted) => Err(Unmade::Interrupted),
        Err(error) => Err(Unmade::Refused(format!("predictor cannot probe the device: {error}"))),
    }
}
