//! Would prediction have worked on a drive of which there is a log?

use std::path::{Path, PathBuf};

use flashkeel_engine::{Operation, SECTOR_BYTES, Span, Time};
use flashkeel_ssdcheck::{DeviceModel, Engine, LEAST, Measured, Scored, assume, contradiction, score_log};
use flashkeel_stats::Distribution;
use flashkeel_workload::{LatencyLog, LatencyLogOptions, read_latencies};
use serde::Serialize;

use crate::Error;
use crate::run::Progress;

/// What became of predictions for a log, and what they rest on.
#[derive(Clone, Debug, Serialize)]
pub struct Logged {
    /// The log.
    pub log: String,
    /// Its format.
    pub format: &'static str,
    /// What stood there besides reads and writes that count.
    pub passed_over: u64,
    /// What had to be assumed.
    pub notes: Vec<String>,
    /// What the drive did that the model's cannot do: then the model is of another one.
    pub contradiction: Option<String>,
    /// Whether there was no model, and `model` is what the log's first half tells.
    pub is_model_assumed: bool,
    /// What is known of the drive, with what was learnt.
    pub model: DeviceModel,
    /// Fewest slow requests and predictions of which a part is told.
    pub least: u64,
    /// What its reads took, the first half of them too.
    pub read: Took,
    /// What its writes took.
    pub write: Took,
    /// How good predictions were.
    #[serde(flatten)]
    pub scored: Scored,
}

/// What is to be told of how a log is read; `time_unit` is a time such as `1us`.
///
/// # Errors
/// If that is none.
pub fn log_options(
    iolog: Option<PathBuf>,
    device: Option<String>,
    time_unit: Option<&str>,
) -> Result<LatencyLogOptions, Error> {
    let time_unit = time_unit.map(Span::parse).transpose();
    let time_unit = time_unit.map_err(|why| Error::Input(format!("--time-unit: {why}")))?;
    Ok(LatencyLogOptions { iolog, device, time_unit })
}

/// What the requests of one kind took.
#[derive(Clone, Debug, Serialize)]
pub struct Took {
    /// Their latencies.
    #[serde(flatten)]
    pub latency: Distribution,
    /// How many of them were slow.
    pub slow: u64,
}

/// Reads a log of submissions and latencies, and scores the predictions of its requests.
/// Without a model, what is slow is taken from the log's first half. Of the normal requests
/// no greater part is called slow than `false_calls`, if that is given.
///
/// # Errors
/// [`Error::Input`] naming what is wrong in the log, or that the model is of a smaller
/// drive; [`Error::Interrupted`] if `progress` stops it.
pub fn predict_log(
    path: &Path,
    options: &LatencyLogOptions,
    mut model: Option<DeviceModel>,
    false_calls: Option<f64>,
    progress: &mut Progress<'_>,
) -> Result<Logged, Error> {
    let log = read_latencies(path, options, &mut |fraction| progress("read", fraction))?;
    let LatencyLog { file, format, requests, passed_over, notes } = log;
    if let Some(model) = &mut model
        && let Some(beyond) =
            requests.iter().find(|served| !model.reaches(served.lba.0 + u64::from(served.sectors)))
    {
        return Err(Error::Input(format!(
            "{file}:{}: a request to LBA {} of {} sectors, where the model is of a drive of {} sectors",
            beyond.item, beyond.lba.0, beyond.sectors, model.sectors
        )));
    }
    // Times of a calendar, which a float does not hold exactly, count from the first request.
    let first = requests.first().map_or(Time::ZERO, |first| first.submitted);
    let origin = if first.0 < 1 << f64::MANTISSA_DIGITS { Time::ZERO } else { first };
    let measured: Vec<Measured> = requests
        .into_iter()
        .map(|served| Measured {
            submitted: Time(served.submitted.0 - origin.0),
            latency: served.latency,
            operation: served.operation,
            lba: served.lba,
            sectors: served.sectors,
        })
        .collect();
    let is_model_assumed = model.is_none();
    let model = model.unwrap_or_else(|| assume(&measured));
    model.validate().map_err(|why| Error::Input(format!("{file}: no drive is like that: {why}")))?;
    let contradiction = contradiction(&model, &measured);
    let mut engine = Engine::new(&model, false_calls);
    let scored = score_log(&mut engine, &measured, &mut |fraction| progress("replay", fraction))
        .ok_or(Error::Interrupted)?;
    let took = |operation| {
        let of_it = || measured.iter().filter(|request| request.operation == operation);
        let latencies = of_it().map(|it| (it.latency, u64::from(it.sectors) * SECTOR_BYTES));
        let is_slow = |it: &&Measured| engine.is_slow(operation, it.sectors, it.latency);
        Took {
            latency: Distribution::of(latencies, span(&measured)),
            slow: of_it().filter(is_slow).count() as u64,
        }
    };
    let (read, write) = (took(Operation::Read), took(Operation::Write));
    let model = engine.model();
    Ok(Logged {
        log: file,
        format,
        passed_over,
        notes,
        contradiction,
        is_model_assumed,
        model,
        least: LEAST,
        read,
        write,
        scored,
    })
}

/// From the first submission to the last completion.
fn span(requests: &[Measured]) -> Span {
    let first = requests.first().map_or(Time::ZERO, |first| first.submitted);
    requests.iter().map(|it| it.submitted + it.latency).max().map_or(Span::ZERO, |last| last.since(first))
}
