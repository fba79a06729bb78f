//! Workloads made from what papers publish about traces that are not at hand:
//! counts, sizes, gaps and randomness. One file per paper holds its figures;
//! one synthesiser makes requests of them.

use std::borrow::Cow;

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Stream, units::Bytes};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Context, Open, Source, Stopped, Watch, WorkloadError};

mod autossd;
mod gaps;
mod measured;
mod sizes;
mod ssdcheck;
mod synthesis;
mod systor;
mod ttflash;

pub use measured::{Measured, measure};
use synthesis::{Recipe, Synthesis};

/// The profiles of every paper, in the order in which they are listed.
static PAPERS: &[&[Characteristics]] =
    &[autossd::PROFILES, ssdcheck::PROFILES, ttflash::PROFILES, systor::PROFILES];

/// Addresses of a profile lie in the first 200 GB of a device, or all over a
/// smaller one. AutoSSD changed the addresses of its traces to fit 200 GB
/// (section 5.1); no other paper says what its traces cover.
pub const RANGE_BYTES: u64 = 200_000_000_000;

/// Inter-arrival times beside a known mean: the middle one of the ratios of
/// mean to median in AutoSSD's table 2 (RAD-BE 4.5, DTRS 3.1, MSN-BEFS 2.7,
/// MSN-CFS 2.5, …).
const MEAN_TO_MEDIAN: f64 = 2.9;

/// What is known of a trace, and what had to be assumed. Figures are as
/// published: rounded, so that they may not agree with each other.
#[derive(Debug)]
pub struct Characteristics {
    /// Name of the profile.
    pub name: &'static str,
    /// What was traced.
    pub what: &'static str,
    /// Where the figures are from.
    pub source: &'static str,
    /// Which of the figures are not from there, and why they are what they are.
    pub assumed: &'static str,
    /// Length in hours, where it is published.
    pub hours: Option<f64>,
    /// Millions of writes.
    pub writes_millions: f64,
    /// Millions of reads.
    pub reads_millions: f64,
    /// Mean size of a write in KB of 1024 bytes.
    pub write_kb: f64,
    /// Mean size of a read in KB of 1024 bytes.
    pub read_kb: f64,
    /// Mean time between requests in ms.
    pub inter_arrival_mean_ms: f64,
    /// Median time between requests in ms.
    pub inter_arrival_median_ms: f64,
    /// Percentage of requests that do not begin where the one before ended.
    pub random_percent: f64,
    /// Sizes that occur, in KiB of whole sectors; each is served by whole pages of 4 KiB, of
    /// which the means are.
    pub sizes_kib: &'static [f64],
    /// Exponent of the Zipf distribution over extents of 1 MiB that random
    /// requests go to; 0 for everywhere alike.
    pub zipf_theta: f64,
}

impl Characteristics {
    /// Share of writes among the requests.
    pub fn write_fraction(&self) -> f64 {
        self.writes_millions / (self.writes_millions + self.reads_millions)
    }

    /// Requests of a synthesised trace of full length.
    pub fn requests(&self) -> u64 {
        let published = (self.writes_millions + self.reads_millions) * 1e6;
        let (_, length) = self.corrections();
        let time_ms =
            self.hours.map_or(published * self.inter_arrival_mean_ms, |hours| hours * 3.6e6 * length);
        (time_ms / self.synthesised_mean_ms()).round() as u64
    }

    /// Mean gap of a synthesised trace.
    fn synthesised_mean_ms(&self) -> f64 {
        self.inter_arrival_mean_ms * self.corrections().0
    }

    /// Factors for mean gap and length with which they agree with the number
    /// of requests.
    ///
    /// A length is requests × mean gap, but published figures are rounded. What
    /// is missing is shared out evenly over the three; the mean and the length,
    /// which are published with more digits, take at most 1.9 % of it each.
    fn corrections(&self) -> (f64, f64) {
        let Some(hours) = self.hours else { return (1.0, 1.0) };
        let requests = (self.writes_millions + self.reads_millions) * 1e6;
        let missing = hours * 3.6e6 / (requests * self.inter_arrival_mean_ms);
        let mean = libm::cbrt(missing).clamp(0.981, 1.019);
        (mean, 1.0 / mean)
    }

    /// What every result made from it must say.
    pub fn statement(&self) -> String {
        format!(
            "profile {} is synthetic, no recorded trace: after {}; assumed: {}; and the shapes of its distributions and its skew",
            self.name, self.source, self.assumed
        )
    }

    /// An experiment that uses it, as TOML.
    pub fn document(&self) -> String {
        let Characteristics { name, what, write_kb, read_kb, random_percent, .. } = self;
        let hours = self.hours.map_or(String::new(), |hours| format!("{hours} h, "));
        // Products of published figures have no more digits than these.
        let [writes, reads, mean, median] = [
            self.writes_millions,
            self.reads_millions,
            self.inter_arrival_mean_ms,
            self.inter_arrival_median_ms,
        ]
        .map(|figure| (figure * 1000.0).round() / 1000.0);
        format!(
            "# {name}: {what}.
# Synthetic, after {}:
#   {hours}{writes} M writes of {write_kb} KB and {reads} M reads of {read_kb} KB on average,
#   inter-arrival time {mean} ms mean and {median} ms median, {random_percent} % random.
# Assumed: {}.

[workload.source]
policy = \"profile\"
name = \"{name}\"
",
            self.source, self.assumed,
        )
    }
}

/// Every profile.
pub fn all() -> impl Iterator<Item = &'static Characteristics> + Clone {
    PAPERS.iter().copied().flatten()
}

/// The name of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileName(&'static Characteristics);

impl ProfileName {
    /// Finds a profile by its name.
    ///
    /// # Errors
    /// A sentence with the nearest name if there is no such profile.
    pub fn parse(name: &str) -> Result<Self, String> {
        let names = all().map(|profile| profile.name);
        all().find(|known| known.name == name).map(ProfileName).ok_or_else(|| {
            format!(
                "unknown profile {name:?}, expected one of {}{}",
                names.clone().collect::<Vec<_>>().join(", "),
                did_you_mean(name, names)
            )
        })
    }

    /// What the profile is.
    pub fn characteristics(self) -> &'static Characteristics {
        self.0
    }
}

impl PartialEq for ProfileName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Serialize for ProfileName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for ProfileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ProfileName::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for ProfileName {
    fn schema_name() -> Cow<'static, str> {
        "ProfileName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": all().map(|profile| profile.name).collect::<Vec<_>>() })
    }
}

/// Settings of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name. It ends after as many requests as the trace had.
    pub name: ProfileName,
    /// How many times as fast as the trace: 2.0 halves every time.
    #[serde(default = "once_as_fast")]
    pub intensity: f64,
    /// Skew instead of the one that is assumed: exponent of the Zipf distribution over
    /// extents, 0 for all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf_theta: Option<f64>,
    /// Size of the part of the device in which it lies, from its beginning, instead of
    /// 200 GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Bytes>,
    /// How many times as long each write is.
    #[serde(default = "once_as_long", skip_serializing_if = "is_once_as_long")]
    pub write_magnification: u32,
}

impl Profile {
    /// As it is published.
    pub fn new(name: ProfileName) -> Profile {
        Profile { name, intensity: 1.0, zipf_theta: None, range: None, write_magnification: 1 }
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let refuse =
            |key: &str, message: String| Err(WorkloadError::key(&format!("workload.source.{key}"), message));
        if !(1e-6..=1e6).contains(&self.intensity) {
            return refuse("intensity", format!("{} is not between 0.000001 and 1000000", self.intensity));
        }
        if let Some(theta) = self.zipf_theta.filter(|theta| !(0.0..=10.0).contains(theta)) {
            return refuse("zipf_theta", format!("{theta} is not between 0 and 10"));
        }
        if !(1..=MOST_MAGNIFIED).contains(&self.write_magnification) {
            let message = format!("{} is not between 1 and {MOST_MAGNIFIED}", self.write_magnification);
            return refuse("write_magnification", message);
        }
        Ok(())
    }
}

/// Makes 16 MiB of the longest write of a profile.
pub(crate) const MOST_MAGNIFIED: u32 = 64;

fn once_as_long() -> u32 {
    1
}

fn is_once_as_long(times: &u32) -> bool {
    *times == 1
}

fn once_as_fast() -> f64 {
    1.0
}

impl Open for Profile {
    fn open(&self, context: &Context, _: &mut Watch<'_>) -> Result<Box<dyn Source>, Stopped> {
        self.check()?;
        let stream = |name: &str| Stream::new(context.seeds.own, &format!("workload/profile/{name}"));
        let recipe = Recipe::of(self, context, &stream)?;
        Ok(Box::new(Synthesis::new(recipe, &stream, context)))
    }

    fn is_finite(&self) -> bool {
        true
    }
}
