//! Diagnosing what a document drives as if it were a black box.

use std::path::Path;
use std::time::Duration;

use flashkeel_engine::Span;
use flashkeel_ssdcheck::{ProbeError, Report};

use crate::run::Progress;
use crate::{Error, Opened, Target, real};

/// Probes a target in its configured initial state. The steady state is taken from
/// `cache_dir`, or made and kept there. What is not found within `limit` of the drive's
/// time is not determined.
///
/// # Errors
/// [`Error::Input`] if it is too small, or simulated and worn out; [`Error::Failure`] if it is real, and
/// fails or goes away; [`Error::Interrupted`] if `progress` stops the probe.
pub fn probe(
    target: &Target,
    seed: u64,
    cache_dir: Option<&Path>,
    limit: Option<Duration>,
    progress: &mut Progress<'_>,
) -> Result<Report, Error> {
    let Opened { mut device, mut world, .. } = target.open_for_pages(seed, cache_dir, progress)?;
    if world.is_some() && !target.destroys {
        return Err(Error::Input(
            "a probe overwrites the drive; --destroy lets its data be destroyed".into(),
        ));
    }
    let limit = limit.map(|limit| Span(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
    let listener = world.clone();
    let found =
        flashkeel_ssdcheck::probe(&mut *device, real::outside(&mut world), seed, limit, &mut |fraction| {
            real::watch(listener.as_ref())?;
            progress("probe", fraction)
        });
    let found = found.map_err(|error| match error {
        ProbeError::Interrupted => Error::Interrupted,
        ProbeError::TooSmall | ProbeError::OutOfTime | ProbeError::Refused(_) => {
            Error::Input(error.to_string())
        }
        ProbeError::Stuck | ProbeError::Unheard => Error::Failure(error.to_string()),
    });
    real::end(world.as_ref(), found)
}
