//! `profile`: a generated series with the volume and regularity of a known trace.

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, Load};
use crate::noise::lognormal;
use crate::{Stopped, Watch, WorkloadError};

/// What is known of a trace's writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WriteProfile {
    /// Name of the trace.
    pub name: &'static str,
    /// Time after which it repeats, in hours.
    pub hours: u32,
    /// Gigabytes (10^9 bytes) written in an hour.
    pub gb_per_hour: f64,
    /// Write amplification that the paper's device had under it.
    pub write_amplification: f64,
    /// Capacity of the paper's device under it in gigabytes.
    pub capacity_gb: u32,
    /// Standard deviations of the logarithm of the noise by the half hour and
    /// by the minute, ours: they give `proxy` and `exchange` the similarity that
    /// the paper shows, and make `proj` and `map` hard to predict, as it says.
    #[serde(skip)]
    noise: [f64; 2],
}

/// The traces of READY, "Experimental Setting" (MSR-Cambridge and MS-Production).
pub const PROFILES: &[WriteProfile] = &[
    profile("proxy", 168, 4.94, 1.93, 32, [0.03, 0.2]),
    profile("proj", 168, 2.08, 1.62, 32, [1.0, 0.8]),
    profile("exchange", 24, 20.61, 2.24, 128, [0.105, 0.45]),
    profile("map", 24, 23.82, 1.68, 128, [1.0, 0.8]),
    profile("msnfs", 6, 18.19, 2.26, 128, [0.105, 0.45]),
];

/// How far the demand swings around its mean over a day; ours.
const DAILY_SWING: f64 = 0.3;

const fn profile(
    name: &'static str,
    hours: u32,
    gb_per_hour: f64,
    write_amplification: f64,
    capacity_gb: u32,
    noise: [f64; 2],
) -> WriteProfile {
    WriteProfile { name, hours, gb_per_hour, write_amplification, capacity_gb, noise }
}

/// A demand by the minute with the volume of a known trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the trace: `proxy`, `proj`, `exchange`, `map` or `msnfs`.
    pub name: String,
}

impl Profile {
    /// What is known of the trace.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn find(&self) -> Result<&'static WriteProfile, WorkloadError> {
        let names = || PROFILES.iter().map(|profile| profile.name);
        PROFILES.iter().find(|profile| profile.name == self.name).ok_or_else(|| {
            let known = names().collect::<Vec<_>>().join(", ");
            let hint = did_you_mean(&self.name, names());
            let message = format!("unknown write profile {:?}, expected one of {known}{hint}", self.name);
            WorkloadError::key("traffic.name", message)
        })
    }
}

impl Load for Profile {
    fn load_watched(&self, seed: u64, _watch: &mut Watch<'_>) -> Result<Demand, Stopped> {
        let profile = self.find()?;
        let mut stream = Stream::new(seed, &format!("demand/{}", profile.name));
        let minutes = profile.hours as usize * 60;
        let mut slow = 1.0;
        let mut written: Vec<f64> = (0..minutes)
            .map(|minute| {
                if minute % 30 == 0 {
                    slow = lognormal(&mut stream, profile.noise[0]);
                }
                let day = minute as f64 / 1_440.0 * std::f64::consts::TAU;
                (1.0 - DAILY_SWING * libm::cos(day)) * slow * lognormal(&mut stream, profile.noise[1])
            })
            .collect();
        let scale = profile.gb_per_hour * 1e9 * f64::from(profile.hours) / written.iter().sum::<f64>();
        written.iter_mut().for_each(|bytes| *bytes *= scale);
        Ok(Demand {
            interval: Span::from_secs(60),
            written,
            is_synthetic: true,
            recorded: None,
            notes: vec![format!(
                "the demand is synthetic: the volume of {} ({} GB/h), its course our own",
                profile.name, profile.gb_per_hour
            )],
        })
    }

    fn is_drawn(&self) -> bool {
        true
    }
}
