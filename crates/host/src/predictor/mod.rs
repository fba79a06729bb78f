//! The predictor axis: who tells a stage what a request would take.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use std::ops::ControlFlow;

use flashkeel_device::Ssd;
use flashkeel_engine::Predictor;
use flashkeel_ssdcheck::{DeviceModel, probe};

flashkeel_config::axis! {
    /// Who tells the host what a request to an SSD would take.
    pub enum PredictorConfig as "predictor": Build {
        /// A copy of the SSD, which cannot err: the bound for every other.
        Oracle(Oracle) in oracle = "oracle",
        /// A model found by probing the SSD, which corrects itself.
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
    /// A predictor for `ssd`, which has not served anything yet and gets at most
    /// `depth` requests at a time.
    ///
    /// # Errors
    /// A sentence that begins with the key, if the SSD cannot be predicted.
    fn build(&self, ssd: &Ssd, depth: usize) -> Result<Box<dyn Predictor>, String>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What a probe of a copy of `ssd` finds.
fn diagnosis(ssd: &Ssd, seed: u64) -> Result<DeviceModel, String> {
    let report = probe(&mut ssd.clone(), ssd.sectors(), seed, &mut |_| ControlFlow::Continue(()));
    Ok(report.map_err(|error| format!("predictor cannot probe the SSD: {error}"))?.model)
}
