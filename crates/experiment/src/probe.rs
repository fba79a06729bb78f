//! Diagnosing a simulated drive as if it were a black box.

use std::path::Path;

use flashkeel_device::DeviceConfig;
use flashkeel_ssdcheck::{ProbeError, Report};

use crate::Error;
use crate::run::{Progress, steady_state};

/// Probes a simulated drive in its configured initial state. The steady state
/// is taken from `cache_dir`, or made and kept there.
///
/// # Errors
/// [`Error::Input`] if the drive is too small, [`Error::Interrupted`] if
/// `progress` stops the probe.
pub fn probe(
    device: &DeviceConfig,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Report, Error> {
    let mut ssd = steady_state(device, seed, cache_dir, progress)?;
    let sectors = ssd.sectors();
    let found =
        flashkeel_ssdcheck::probe(&mut ssd, sectors, seed, &mut |fraction| progress("probe", fraction));
    found.map_err(|error| match error {
        ProbeError::Interrupted => Error::Interrupted,
        ProbeError::TooSmall => Error::Input(error.to_string()),
        ProbeError::Refused(_) | ProbeError::Stuck => Error::Failure(error.to_string()),
    })
}
