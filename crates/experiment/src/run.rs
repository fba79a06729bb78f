//! From a plan to a result.

use std::{ops::ControlFlow, path::Path, time::Instant};

use flashkeel_device::{DeviceConfig, Doing, Interval, Pattern, Ssd};
use flashkeel_engine::Time;
use flashkeel_host::{DriveError, drive};
use flashkeel_stats::{Column, Measurement, Recorder, RequestLog};

use crate::{Error, RunOutcome, RunPlan, VERSION, cache::Cache, stack};

/// Told what is being done and the fraction of it that is done; may stop it.
pub type Progress<'a> = dyn FnMut(&'static str, f64) -> ControlFlow<()> + 'a;

/// What a run leaves behind.
pub struct Finished {
    /// The result.
    pub outcome: RunOutcome,
    /// The time series, column by column.
    pub series: Vec<(String, Column)>,
    /// The request log, column by column, if one was asked for.
    pub requests: Option<Vec<(String, Column)>>,
    /// What each chip did in the window asked for, column by column.
    pub chips: Option<Vec<(String, Column)>>,
}

/// Runs a plan with a seed. The steady state of the device is taken from
/// `cache_dir`, or made and kept there.
///
/// # Errors
/// [`Error::Input`] if the workload turns out to be wrong on the way,
/// [`Error::Interrupted`] if `progress` stops the run.
pub fn run(
    plan: &RunPlan,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Finished, Error> {
    if let Some(stack) = &plan.config.stack {
        return stack::run(plan, stack, seed, cache_dir, progress);
    }
    let mut config = plan.config.clone();
    config.seed = seed;
    let mut ssd = steady_state(&config.device, seed, cache_dir, progress)?;
    let mut source =
        config.workload.open_watched(ssd.sectors(), seed, &mut |fraction| progress("scan", fraction))?;
    let gauges = Ssd::gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&config.measure, config.workload.warm_up, &gauges);
    if let Some(window) = &config.measure.chip_log {
        let from = Time::ZERO + window.from;
        ssd.watch(from, from + window.length);
    }
    let start = Instant::now();
    let measurement = drive(&mut ssd, source.as_mut(), &config.workload, recorder, &mut |fraction| {
        progress("replay", fraction)
    })?;
    let wall_s = start.elapsed().as_secs_f64();
    let Measurement { summary, series, log } = measurement;
    let chips = config.measure.chip_log.as_ref().map(|_| chip_columns(ssd.watched()));
    let report = ssd.report();
    let outcome = RunOutcome {
        name: plan.name.clone(),
        seed,
        summary,
        wall_s,
        waf: report.waf,
        erases: report.erases,
        basis: source.basis(),
        notes: source.notes().to_vec(),
        version: VERSION.into(),
        preset: plan.preset.clone(),
        device: serde_json::to_value(&report).expect("a report is plain data"),
        workload: source.counts().clone(),
        tenants: Vec::new(),
        stack: None,
        config,
    };
    Ok(Finished { outcome, series: series.columns(), requests: log.map(RequestLog::into_columns), chips })
}

/// The chip log as a table.
fn chip_columns(intervals: &[Interval]) -> Vec<(String, Column)> {
    let column = |value: fn(&Interval) -> u64| Column::U64(intervals.iter().map(value).collect());
    let indices = intervals.iter().map(|interval| interval.doing.index()).collect();
    vec![
        ("chip".into(), column(|interval| u64::from(interval.chip))),
        ("doing".into(), Column::Word { indices, vocabulary: &Doing::LABELS }),
        ("start_ns".into(), column(|interval| interval.start.0)),
        ("end_ns".into(), column(|interval| interval.end.0)),
    ]
}

/// A device ready to be measured.
pub(crate) fn steady_state(
    config: &DeviceConfig,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Ssd, Error> {
    let layout = config.validate().map_err(Error::Input)?;
    let cache = cache_dir.filter(|_| config.precondition.pattern != Pattern::None).map(Cache::new);
    if let Some(ssd) = cache.as_ref().and_then(|cache| cache.load(config, &layout, seed)) {
        return Ok(ssd);
    }
    let mut ssd = Ssd::new(&layout, seed);
    if ssd.precondition(&mut |fraction| progress("precondition", fraction)).is_break() {
        return Err(Error::Interrupted);
    }
    if let Some(cache) = cache {
        cache.store(config, seed, &ssd);
    }
    Ok(ssd)
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Workload(error) => error.into(),
            DriveError::Interrupted => Error::Interrupted,
        }
    }
}
