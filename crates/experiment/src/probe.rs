//! Diagnosing what a document drives as if it were a black box.

use std::path::Path;

use flashkeel_ssdcheck::{ProbeError, Report};

use crate::run::Progress;
use crate::{Error, Target};

/// Probes a target in its configured initial state. The steady state is taken from
/// `cache_dir`, or made and kept there.
///
/// # Errors
/// [`Error::Input`] if it is too small, [`Error::Interrupted`] if `progress` stops the
/// probe.
pub fn probe(
    target: &Target,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Report, Error> {
    let mut device = target.build(seed, cache_dir, progress)?;
    let found =
        flashkeel_ssdcheck::probe(&mut *device, None, seed, &mut |fraction| progress("probe", fraction));
    found.map_err(|error| match error {
        ProbeError::Interrupted => Error::Interrupted,
        ProbeError::TooSmall => Error::Input(error.to_string()),
        ProbeError::Refused(_) | ProbeError::Stuck | ProbeError::Unheard => Error::Failure(error.to_string()),
    })
}
