//! The result of a run: written, read back, pooled and questioned.

use flashkeel_engine::{Durable, Limits, SECTOR_BYTES, Span};
use flashkeel_stats::{Class, Explanation, Summary, parse_percentile};
use flashkeel_workload::{Basis, Counts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pooling::{pool, sum_of_counts};
use crate::{Error, Experiment};

/// What one tenant of a stack got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TenantOutcome {
    /// The tenant's name.
    pub name: String,
    /// Latency, blame and digest of its requests alone.
    #[serde(flatten)]
    pub summary: Summary,
    /// Where its workload comes from.
    pub basis: Basis,
    /// What became of its workload's input.
    pub workload: Counts,
}

/// What a device states of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// Its capacity.
    pub capacity_bytes: u64,
    /// Its logical block: requests begin and end at multiples.
    pub block_bytes: u64,
    /// What it likes requests to begin and end at multiples of.
    pub preferred_bytes: u64,
    /// From when on a power cut takes nothing of a write: once it is `acknowledged`,
    /// once it is `flushed`, or `never`.
    pub durable: String,
}

impl From<Limits> for Stated {
    fn from(limits: Limits) -> Stated {
        let bytes = |sectors: u32| u64::from(sectors) * SECTOR_BYTES;
        let durable = match limits.durable {
            Durable::Acknowledged => "acknowledged",
            Durable::Flushed => "flushed",
            Durable::Never => "never",
        };
        Stated {
            capacity_bytes: limits.sectors * SECTOR_BYTES,
            block_bytes: bytes(limits.block_sectors),
            preferred_bytes: bytes(limits.preferred_sectors),
            durable: durable.into(),
        }
    }
}

/// The result of a run, or of the pooled runs of several seeds, as it is
/// written to `result.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOutcome {
    /// The run's name within its experiment.
    pub name: String,
    /// The seed; of a pool, the first.
    pub seed: u64,
    /// Latency, blame and digest.
    #[serde(flatten)]
    pub summary: Summary,
    /// Wall-clock time of the replay, without preconditioning. Nothing else in
    /// a result depends on the machine.
    pub wall_s: f64,
    /// All bytes programmed per byte the host wrote; none if it wrote none.
    pub waf: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Whether the workload was recorded or synthesised.
    pub basis: Basis,
    /// Assumptions and omissions that whoever reads the result must know.
    pub notes: Vec<String>,
    /// Version of the simulator.
    pub version: String,
    /// The preset the device was based on.
    pub preset: Option<String>,
    /// What the device that was driven, or the whole stack, states of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Stated>,
    /// What the device did, in whole operations and bytes.
    pub device: Value,
    /// What became of the workload's input; of several tenants, of all.
    pub workload: Counts,
    /// Each tenant's part, where a stack has tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantOutcome>,
    /// What each device and tier of a stack did, by kind and number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Value>,
    /// How many chips each channel has, as the chip log counts them on; empty
    /// without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<u32>,
    /// The resolved configuration.
    pub config: Experiment,
}

impl RunOutcome {
    /// Pools another seed's run into this one.
    fn merge(&mut self, other: RunOutcome) {
        self.summary.merge(&other.summary);
        self.wall_s += other.wall_s;
        self.erases += other.erases;
        if other.basis == Basis::Synthetic {
            self.basis = Basis::Synthetic;
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.device = pool(&[self.device.take(), other.device]);
        self.waf = self.device["waf"].as_f64();
        self.workload = sum_of_counts(&self.workload, &other.workload);
        for (mine, theirs) in self.tenants.iter_mut().zip(other.tenants) {
            mine.summary.merge(&theirs.summary);
            mine.workload = sum_of_counts(&mine.workload, &theirs.workload);
        }
    }
}

/// Pools the runs of one plan with different seeds, each given as JSON:
/// percentiles and blame are those of all samples together.
///
/// # Errors
/// If there are none, one is no run, or they are runs of different plans.
pub fn merge(runs: &[String]) -> Result<RunOutcome, Error> {
    let mut pooled: Option<RunOutcome> = None;
    let mut stacks = Vec::new();
    for text in runs {
        let mut outcome: RunOutcome = serde_json::from_str(text)
            .map_err(|error| Error::Input(format!("not a run with its detail: {error}")))?;
        stacks.extend(outcome.stack.take());
        match &mut pooled {
            None => pooled = Some(outcome),
            Some(first) => {
                // Only the seed may differ.
                outcome.config.seed = first.config.seed;
                if outcome.name != first.name || outcome.config != first.config {
                    let message = format!(
                        "runs {:?} and {:?} differ in more than their seed",
                        first.name, outcome.name
                    );
                    return Err(Error::Input(message));
                }
                first.merge(outcome);
            }
        }
    }
    let mut pooled = pooled.ok_or_else(|| Error::Input("there are no runs to pool".into()))?;
    pooled.stack = (!stacks.is_empty()).then(|| pool(&stacks));
    Ok(pooled)
}

/// Who owns the latency of a run's slowest requests.
///
/// `result` is the JSON of a result (an object with `runs`), `class` one of
/// `read`, `write`, `small_read`, `trim`, `flush`, `above` a percentile such
/// as `p99.9`.
///
/// # Errors
/// If the result has no such run or lacks its detail, or `class` or `above` is
/// none.
pub fn explain(result: &str, run: &str, class: &str, above: &str) -> Result<Explanation, Error> {
    let class: Class = class.parse().map_err(Error::Input)?;
    let above = parse_percentile(above).map_err(Error::Input)?;
    let wrong = |why: String| Error::Input(format!("not a result: {why}"));
    let result: Value = serde_json::from_str(result).map_err(|error| wrong(error.to_string()))?;
    let Value::Array(runs) = &result["runs"] else { return Err(wrong("it has no runs".into())) };
    let Some(found) = runs.iter().find(|candidate| candidate["name"] == run) else {
        let names: Vec<_> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
        return Err(Error::Input(format!("the result has no run {run:?}; it has {}", names.join(", "))));
    };
    let summary: Summary =
        serde::Deserialize::deserialize(found).map_err(|error| wrong(error.to_string()))?;
    summary.explain(class, above).map_err(Error::Input)
}

/// Nanoseconds of a time as documents write it.
///
/// # Errors
/// If it is none.
pub fn span_ns(text: &str) -> Result<u64, Error> {
    Span::parse(text).map(Span::as_ns).map_err(Error::Input)
}
