//! What is known of a lifetime in the end.

use flashkeel_device::THROTTLE_UNIT_BYTES;
use flashkeel_workload::demand::Demand;
use serde::Serialize;

use super::{DAY_NS, LifetimePlan};

/// A lifetime and what it costs.
#[derive(Clone, Debug, Serialize)]
pub struct Lifetime {
    /// Seed of the noise and the simulation.
    pub seed: u64,
    /// Years until the mean block is worn out; none where it never is, or not
    /// within a hundred years.
    pub years: Option<f64>,
    /// Whether nothing is ever written, so that the drive lasts for ever.
    pub is_infinite: bool,
    /// What was demanded, and what was written.
    pub endured: Endured,
    /// How unevenly blocks wear.
    pub blocks: Option<Blocks>,
    /// Response time of page writes (8 KiB).
    pub response: Option<Response>,
    /// Wear and delay over the years.
    pub course: Vec<Moment>,
    /// Response times through one day and a bit, a year into the drive's life
    /// or earlier where it does not last that long: minutes from its beginning
    /// and mean and longest response in nanoseconds.
    pub day: Vec<(f64, f64, f64)>,
    /// Whether the demand is generated.
    pub is_synthetic: bool,
    /// How long was recorded of the trace that repeats all the time; none where
    /// the demand is not that of a trace.
    pub recorded_ns: Option<u64>,
    /// What whoever reads the result must know.
    pub notes: Vec<String>,
}

/// What a drive was asked to endure.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Endured {
    /// Cycles that a block endures without recovery.
    pub rated_cycles: f64,
    /// Mean number of cycles of a block in the end.
    pub cycles: f64,
    /// Bytes programmed per byte written, as counted with.
    pub write_amplification: f64,
    /// The same as the model had it.
    pub write_amplification_measured: Option<f64>,
    /// Bytes that the traffic asks to write in a day.
    pub demanded_per_day: f64,
    /// Times as long as recorded that the traffic takes without a throttle, as each write
    /// waits for the one before: little above 1 where the model is fast enough for it.
    pub slowdown: f64,
    /// Bytes that were written in a day.
    pub written_per_day: f64,
    /// Times the capacity that were written in a day.
    pub drive_writes_per_day: f64,
}

/// How unevenly blocks are worn in the end; where the life was not simulated,
/// as far as what was watched of it tells.
#[derive(Clone, Debug, Serialize)]
pub struct Blocks {
    /// Mean cycles of a block that were watched.
    pub cycles: f64,
    /// Wear of the most worn block over the mean.
    pub max_over_mean: f64,
    /// Wear at which 1, 10, 50, 90 and 99 % of the blocks are not above, over
    /// the mean.
    pub quantiles_over_mean: [f64; 5],
    /// Years until the first block is worn out; where the mean one is not within a
    /// hundred years, as its wear has gone on until then.
    pub first_worn_years: f64,
}

/// Wear of each block of a device that was watched for a while.
pub(super) struct Watched {
    /// In the first and in the second half of that while.
    pub halves: [Vec<f64>; 2],
    /// Mean cycles of a block in both.
    pub cycles: f64,
}

/// Response time of page writes.
#[derive(Clone, Debug, Serialize)]
pub struct Response {
    /// Mean, delays included.
    pub mean_ns: f64,
    /// Standard deviation over the mean, of all pages.
    pub variation: f64,
    /// Mean without the throttle's delays.
    pub service_mean_ns: f64,
    /// 99 % of the pages were served faster, without the throttle's delays.
    pub service_p99_ns: f64,
    /// Mean delay by the throttle.
    pub delay_mean_ns: f64,
    /// Delays that 50, 90, 99, 99.9 and 99.99 % of the pages did not exceed.
    pub delay_quantiles_ns: [f64; 5],
    /// Longest delay.
    pub delay_longest_ns: f64,
    /// Share of the pages that were held.
    pub held: f64,
}

/// One point of the course of a life.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// Years since the beginning.
    pub years: f64,
    /// Effective wear over the rated cycles.
    pub wear: f64,
    /// Mean delay since the moment before.
    pub delay_mean_ns: f64,
    /// Longest delay since the moment before.
    pub delay_longest_ns: f64,
}

/// Times as long as recorded that a demand takes where a page takes `service_ns`.
pub(super) fn slowdown(demand: &Demand, service_ns: f64) -> f64 {
    1.0 + demand.bytes_per_day() / THROTTLE_UNIT_BYTES as f64 * service_ns / DAY_NS as f64
}

impl Lifetime {
    /// A traffic that never wears the drive out.
    pub(super) fn without_writes(plan: &LifetimePlan, demand: &Demand, seed: u64) -> Self {
        let mut notes = demand.notes.clone();
        notes.push("the traffic has no writes: the drive lasts for ever".into());
        Lifetime {
            seed,
            years: None,
            is_infinite: true,
            endured: Endured {
                rated_cycles: plan.drive.rated_cycles.map_or(0.0, f64::from),
                write_amplification: plan.write_amplification.unwrap_or(1.0),
                slowdown: 1.0,
                ..Endured::default()
            },
            blocks: None,
            response: None,
            course: Vec::new(),
            day: Vec::new(),
            is_synthetic: demand.is_synthetic,
            recorded_ns: demand.recorded.as_ref().map(|recording| recording.span.0),
            notes,
        }
    }
}

impl Blocks {
    /// From the wear of each block after `cycles` of a life of so many `years`.
    pub(super) fn seen(worn: &[f64], cycles: f64, years: f64) -> Option<Self> {
        Some(Blocks::new(leads(worn)?, cycles, years))
    }

    /// After a life of `cycles` and so many `years`, from what was watched. What leads
    /// blocks have in both halves they will keep; the rest is chance, whose variance grows
    /// with the cycles, and over the mean shrinks with them.
    pub(super) fn foreseen(watched: &Watched, cycles: f64, years: f64) -> Option<Self> {
        let [first, second] = &watched.halves;
        let whole: Vec<f64> = first.iter().zip(second).map(|(first, second)| first + second).collect();
        let (first, second, whole) = (leads(first)?, leads(second)?, leads(&whole)?);
        let mean_product =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len() as f64;
        let variance = mean_product(&whole, &whole).max(1e-300);
        let kept = mean_product(&first, &second).clamp(0.0, variance);
        let later = kept + (variance - kept) * watched.cycles / cycles;
        let factor = (later / variance).sqrt();
        let leads = whole.iter().map(|lead| (lead * factor).max(-1.0)).collect();
        Some(Blocks::new(leads, watched.cycles, years))
    }

    /// From each block's lead over the mean, as a share of it.
    fn new(mut leads: Vec<f64>, cycles: f64, years: f64) -> Self {
        leads.sort_by(f64::total_cmp);
        let quantile = |share: f64| 1.0 + leads[((leads.len() - 1) as f64 * share).round() as usize];
        let max_over_mean = quantile(1.0);
        Blocks {
            cycles,
            max_over_mean,
            quantiles_over_mean: [0.01, 0.1, 0.5, 0.9, 0.99].map(quantile),
            first_worn_years: years / max_over_mean,
        }
    }
}

/// By which share of the mean each block is ahead of it; none without wear.
fn leads(worn: &[f64]) -> Option<Vec<f64>> {
    let mean = worn.iter().sum::<f64>() / worn.len() as f64;
    (mean > 0.0).then(|| worn.iter().map(|worn| worn / mean - 1.0).collect())
}
