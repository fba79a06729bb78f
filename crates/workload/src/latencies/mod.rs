//! Logs of what a drive was asked and how long it took: submissions and measured
//! latencies, as fio, blktrace or anybody's CSV has them.

use std::path::{Path, PathBuf};

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Lba, Operation, Span, Time};

use crate::error::Pulse;
use crate::input::Input;
use crate::readers::{Devices, detect, timed_table};
use crate::{Location, Stopped, Watch, WorkloadError};

mod block_events;
mod coarse;
mod fio;
mod moments;
mod named_columns;
mod rows;
mod timed_events;
mod timed_rows;

/// Most bytes of one request.
const MOST_BYTES: u64 = 1 << 30;

/// No request takes a day: what says so is wrong, or not in the unit that it should be in.
const MOST_LATENCY_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Times end before this, in the year 2116 if they begin in 1970.
const MOST_TIME_NS: u64 = 1 << 62;

/// One read or write that a drive has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When it was submitted, since the log's own origin.
    pub submitted: Time,
    /// What it took.
    pub latency: Span,
    /// [`Operation::Read`] or [`Operation::Write`].
    pub operation: Operation,
    /// First sector of 512 bytes.
    pub lba: Lba,
    /// Sectors of 512 bytes.
    pub sectors: u32,
    /// The line or record that it stands in.
    pub item: u64,
}

/// A log that has been read.
#[derive(Clone, Debug)]
pub struct LatencyLog {
    /// What messages call it.
    pub file: String,
    /// Its format.
    pub format: &'static str,
    /// Reads and writes, in order of submission.
    pub requests: Vec<Served>,
    /// What else stood there: other operations, other devices, what never ended.
    pub passed_over: u64,
    /// Assumptions that a result must show.
    pub notes: Vec<String>,
}

/// What a reader must be told.
#[derive(Clone, Debug, Default)]
pub struct LatencyLogOptions {
    /// fio's I/O log of the same job (`write_iolog`), which says when each request of a
    /// latency log was submitted.
    pub iolog: Option<PathBuf>,
    /// The device that counts, of a log with several.
    pub device: Option<String>,
    /// What a tick of a trace's clock is, and of its response times; its format's own if not
    /// given.
    pub time_unit: Option<Span>,
}

impl LatencyLogOptions {
    /// Refuses a unit for what has its own.
    fn refuse_time_unit(&self, file: &str) -> Result<(), WorkloadError> {
        match self.time_unit {
            Some(_) => {
                let message =
                    format!("{file} says itself what its times are; msr, systor and etw have a tick to set");
                Err(WorkloadError::key("--time-unit", message))
            }
            None => Ok(()),
        }
    }
}

/// Reads a log of latencies.
///
/// # Errors
/// What is wrong with it and where: no latencies, a latency below zero, a completion
/// before its submission, a line that is cut. Or that `watch` breaks off.
pub fn read_latencies(
    path: &Path,
    options: &LatencyLogOptions,
    watch: &mut Watch<'_>,
) -> Result<LatencyLog, Stopped> {
    let input = Input::open(path)?;
    let file = input.file.clone();
    let is_fio = fio::matches(input.head());
    if options.iolog.is_some() && !is_fio {
        return Err(WorkloadError::key("--iolog", format!("{file} is no latency log of fio")).into());
    }
    if options.time_unit == Some(Span::ZERO) {
        let message = "a tick of 0ns would put every request at the same time";
        return Err(WorkloadError::key("--time-unit", message).into());
    }
    let mut pulse = Pulse::new(watch);
    let mut log = if is_fio {
        options.refuse_time_unit(&file)?;
        fio::read(input, options, &mut pulse)?
    } else if named_columns::matches(input.head()) {
        options.refuse_time_unit(&file)?;
        named_columns::read(input, options, &mut pulse)?
    } else {
        if let Some(message) = named_columns::nearly(input.head()) {
            return Err(WorkloadError::at(&file, Location::Line(1), message).into());
        }
        let Ok(format) = detect(&file, input.head()) else {
            let message = format!("no known log of latencies; {KNOWN}");
            return Err(WorkloadError::at(&file, Location::Line(1), message).into());
        };
        match format.name {
            "blkparse" | "blktrace" => {
                options.refuse_time_unit(&file)?;
                refuse_pipe(&input)?;
                drop(input);
                block_events::read(path, format.name, options, &mut pulse)?
            }
            "fio" => {
                let message = "an I/O log of fio has no latencies; give the log of write_lat_log \
                               (with log_offset=1) as --log, and this one as --iolog";
                return Err(WorkloadError::at(&file, Location::Line(1), message).into());
            }
            "parquet" => {
                options.refuse_time_unit(&file)?;
                rows::read(&input, options, &mut pulse)?
            }
            "etw" => {
                refuse_pipe(&input)?;
                drop(input);
                timed_events::read(path, options, &mut pulse)?
            }
            other => {
                let Some(table) = timed_table(other) else {
                    let message = format!("a trace of the format {other}, which has no latencies; {KNOWN}");
                    return Err(WorkloadError::at(&file, Location::Line(1), message).into());
                };
                let table = options.time_unit.map_or(table.clone(), |unit| table.in_ticks(unit.0));
                timed_rows::read(input, other, &table, options, &mut pulse)?
            }
        }
    };
    if log.requests.is_empty() {
        return Err(WorkloadError::file(&file, "it has no read and no write that ended").into());
    }
    if log.requests.iter().all(|served| served.latency == Span(0)) {
        return Err(WorkloadError::file(&file, "all of its latencies are 0: nothing was measured").into());
    }
    log.requests.sort_by_key(|served| served.submitted);
    log.notes.extend(coarse::notes(&log.requests));
    Ok(log)
}

/// Refuses what cannot be read twice.
fn refuse_pipe(input: &Input) -> Result<(), WorkloadError> {
    if input.is_read_once() {
        let message = "it is read twice, which a pipe cannot be; give a file";
        return Err(WorkloadError::file(&input.file, message));
    }
    Ok(())
}

const KNOWN: &str = "known are fio's write_lat_log with log_offset=1, blkparse and blktrace with D and C \
                     events, traces with response times (msr, systor, etw), and columns named in the first line, or of a \
                     Parquet file: operation, offset or lba, bytes or \
                     sectors, submitted_ns, and latency_ns or completed_ns (or in _us, _ms, _s)";

/// A read or write of bytes, as one of sectors.
fn served(
    submitted_ns: u64,
    latency_ns: u64,
    operation: Operation,
    (offset, bytes): (u64, u64),
    item: u64,
) -> Result<Served, String> {
    if bytes == 0 {
        return Err("a read or write of 0 bytes".into());
    }
    if bytes > MOST_BYTES || offset.checked_add(bytes).is_none() {
        return Err(format!("{bytes} bytes from byte {offset} on, more than a request has"));
    }
    plausible(submitted_ns, latency_ns)?;
    Ok(Served {
        submitted: Time(submitted_ns),
        latency: Span(latency_ns),
        operation,
        lba: Lba(offset / 512),
        sectors: (offset % 512 + bytes).div_ceil(512) as u32,
        item,
    })
}

/// Refuses times with which nothing can be reckoned.
fn plausible(time_ns: u64, latency_ns: u64) -> Result<(), String> {
    if latency_ns > MOST_LATENCY_NS {
        return Err(format!("a latency of {latency_ns} ns, more than a day"));
    }
    if time_ns > MOST_TIME_NS {
        return Err(format!("a time of {time_ns} ns, more than {MOST_TIME_NS}"));
    }
    Ok(())
}

/// Of what was read of each device, that of the one that counts, and how much of others there is.
fn of_chosen<T>(
    file: &str,
    devices: &Devices,
    options: &LatencyLogOptions,
    all: Vec<(u32, T)>,
) -> Result<(Vec<T>, u64), WorkloadError> {
    let device = chosen(file, &devices.names(), options.device.as_deref())?;
    let count = all.len();
    let kept: Vec<T> = all.into_iter().filter(|(of, _)| *of == device).map(|(_, each)| each).collect();
    let others = (count - kept.len()) as u64;
    Ok((kept, others))
}

/// Which of a log's devices counts: the one that is wanted, or the only one there is.
fn chosen(file: &str, names: &[String], wanted: Option<&str>) -> Result<u32, WorkloadError> {
    let listed = || crate::text::listed(names.iter().map(String::as_str));
    match wanted {
        Some(wanted) => {
            names.iter().position(|name| name == wanted).map(|index| index as u32).ok_or_else(|| {
                let hint = did_you_mean(wanted, names.iter().map(String::as_str));
                WorkloadError::key(
                    "--device",
                    format!("{file} has no device {wanted:?}; it has {}{hint}", listed()),
                )
            })
        }
        None if names.len() > 1 => {
            let message =
                format!("requests to several devices: {}; --device NAME says which counts", listed());
            Err(WorkloadError::file(file, message))
        }
        None => Ok(0),
    }
}
