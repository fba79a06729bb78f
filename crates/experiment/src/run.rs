//! From a plan to a result.

use std::{ops::ControlFlow, path::Path, time::Instant};

use flashkeel_device::{DeviceConfig, Doing, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{SECTOR_BYTES, Span, Time};
use flashkeel_host::device::{Device, Size, Unmade};
use flashkeel_host::stack::TenantConfig;
use flashkeel_host::{DriveError, Measured, Tenant, drive, parts, reports};
use flashkeel_stats::{Column, Recorder};
use flashkeel_workload::{Basis, Source};
use serde_json::{Map, Value, json};

use crate::{
    Error, Experiment, Opened, RunOutcome, RunPlan, Target, VERSION,
    cache::Cache,
    log_file::LogFile,
    outcome::TenantOutcome,
    pooling::{pool, sum_of_counts},
    real, stack,
};

/// Told what is being done and the fraction of it that is done; may stop it.
pub type Progress<'a> = dyn FnMut(&'static str, f64) -> ControlFlow<()> + 'a;

/// What a run leaves behind.
pub struct Finished {
    /// The result.
    pub outcome: RunOutcome,
    /// The time series, column by column.
    pub series: Vec<(String, Column)>,
    /// The request log as a Parquet file, if one was asked for.
    pub requests: Option<Vec<u8>>,
    /// What each chip did in the window asked for, column by column; chips of
    /// several SSDs are counted on from one to the next.
    pub chips: Option<Vec<(String, Column)>>,
}

/// Runs a plan with a seed. The steady state of its SSDs is taken from
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
    let config = Experiment { seed, ..plan.config.clone() };
    let target = Target { destroys: plan.destroys, ..Target::of(&config) };
    let Opened { mut device, mut world, size } = target.open_for_pages(seed, cache_dir, progress)?;
    let mut sources = open(&config, &mut *device, size.foresees, progress)?;
    let gauges = device.gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let workloads = stack::workloads(&config);
    let warm_up = workloads.iter().map(|workload| workload.warm_up).max().unwrap_or_default();
    let mut recorder = Recorder::new(&config.measure, warm_up, &gauges);
    let names = stack::tenants(&config);
    let is_logged = config.measure.log_requests;
    let log = is_logged.then(|| LogFile::of(&mut recorder, config.measure.log_rows, names.len() > 1));
    let tenants = sources.iter_mut().zip(&workloads).map(|(source, workload)| Tenant {
        source: source.as_mut(),
        workload,
        recorder: (!names.is_empty()).then(|| Recorder::new(&config.measure, warm_up, &[])),
    });
    let tenants = tenants.collect();
    if let Some(window) = &config.measure.chip_log {
        let from = Time::ZERO + window.from;
        device.watch(from, from + window.length);
    }
    let start = Instant::now();
    let listener = world.clone();
    let driven = drive(&mut *device, real::outside(&mut world), tenants, recorder, &mut |fraction| {
        real::watch(listener.as_ref())?;
        progress("replay", fraction)
    });
    let (all, each) = real::end(world.as_ref(), driven.map_err(Error::from))?;
    let wall_s = start.elapsed().as_secs_f64();

    let report = reports(&*device);
    let ssds: Vec<Value> =
        report["ssds"].as_object().into_iter().flat_map(|ssds| ssds.values().cloned()).collect();
    let pooled = if ssds.is_empty() { json!({}) } else { pool(&ssds) };
    let mut notes = plan.notes.clone();
    notes.extend(notes_of(&sources, names));
    notes.extend(world.map(|_| real::NOTE.to_owned()));
    notes.extend(left_out(&size, names.len().max(1)));
    notes.extend(notes_of_parts(&report));
    let tenants = names.iter().zip(each).zip(&sources).map(|((tenant, measured), source)| TenantOutcome {
        name: tenant.name.clone(),
        summary: measured.summary,
        basis: source.basis(),
        workload: source.counts().clone(),
    });
    let tenants = tenants.collect();
    // Where any part is generated, the whole is no recorded trace.
    let is_synthetic = sources.iter().any(|source| source.basis() == Basis::Synthetic);
    let basis = if is_synthetic { Basis::Synthetic } else { Basis::Trace };
    let counts = sources.iter().map(|source| source.counts().clone());
    let outcome = RunOutcome {
        name: plan.name.clone(),
        seed,
        summary: all.summary,
        wall_s,
        waf: pooled["waf"].as_f64(),
        erases: pooled["erases"].as_u64().unwrap_or(0),
        basis,
        notes,
        version: VERSION.into(),
        preset: plan.preset.clone(),
        limits: Some(device.limits().into()),
        device: pooled,
        workload: counts.reduce(|sum, other| sum_of_counts(&sum, &other)).unwrap_or_default(),
        tenants,
        stack: config.stack.is_some().then(|| report.into()),
        channels: match config.measure.chip_log {
            Some(_) => parts(&*device).iter().flat_map(|part| part.channels()).collect(),
            None => Vec::new(),
        },
        config: config.clone(),
    };
    Ok(Finished {
        outcome,
        series: all.series.columns(),
        requests: log.map(|log| log.end(basis)),
        chips: config.measure.chip_log.as_ref().map(|_| chip_columns(&*device)),
    })
}

/// What whoever reads a run's figures has to know of its devices, from their reports. None of it
/// holds figures of one seed: those of a pool are the same, and are said once.
fn notes_of_parts(report: &Map<String, Value>) -> Vec<String> {
    let mut notes = Vec::new();
    let ssds = || report["ssds"].as_object().into_iter().flatten();
    notes.extend(ssds().filter(|(_, ssd)| count(ssd, "broken_windows") > 0).map(|(number, _)| {
        format!(
            "deterministic windows of SSD {number} were broken: the host had no free block and garbage \
             collection went on, or the buffer had to be flushed, see broken_windows of \
             deterministic_windows; more time between windows or more over-provisioning helps"
        )
    }));
    notes.extend(ssds().filter(|(_, ssd)| is_worn_out(ssd)).map(|(number, _)| {
        format!("blocks of SSD {number} have worn by more cycles than are rated, see wear")
    }));
    notes.extend(ssds().filter(|(_, ssd)| is_greedy(ssd)).map(|(number, _)| {
        format!(
            "garbage collection of SSD {number}: greedy chose more than 1% of the victims in place of the \
             policy asked for, see victims_by_greedy"
        )
    }));
    let tiers = report["tiers"].as_object().into_iter().flatten();
    notes.extend(tiers.filter(|(_, tier)| tier["has_filled"] == false).map(|(number, _)| {
        format!(
            "the upper device of tier {number} never filled: nothing had to leave it, so that a larger one \
             changes nothing, and policies for what is below hardly differ; give it less, as a share of \
             the footprint: capacity = \"5%\""
        )
    }));
    let windoweds = report.get("windoweds").and_then(Value::as_object).into_iter().flatten();
    notes.extend(windoweds.filter(|(_, it)| count(it, "windows_begun") == 0).map(|(number, _)| {
        format!(
            "no deterministic window of the windowed device {number} began: a mirror with windows, or a \
             coordinator, has to command them, and changes have to end for them"
        )
    }));
    let coordinators = report.get("coordinators").and_then(Value::as_object).into_iter().flatten();
    notes.extend(coordinators.filter(|(_, it)| is_ended_mostly_by_device(it)).map(|(number, _)| {
        format!(
            "the device ended most deterministic windows of coordinator {number}: what it promises was used \
             up, or collection could not wait, see forced of windows"
        )
    }));
    notes
}

/// What of the devices belongs to nobody's volume, unless it is next to nothing.
fn left_out(size: &Size, volumes: usize) -> Option<String> {
    let used = size.sectors * volumes as u64;
    let all = used + size.left_sectors;
    (size.left_sectors > all / 100).then(|| {
        let [left, all] = [size.left_sectors, all].map(|sectors| Bytes(sectors * SECTOR_BYTES));
        format!(
            "{left} of the devices' {all} belong to no volume, as stack.volumes lays them out: whoever \
             compares with another layout gives them less, or the workloads the same footprint"
        )
    })
}

/// Tenants of a note that are named.
const MOST_NAMED: usize = 3;

/// What sources have noted, each once, and of which tenants where it is not of all of them.
pub(crate) fn notes_of(sources: &[Box<dyn Source>], tenants: &[TenantConfig]) -> Vec<String> {
    let mut found: Vec<(&String, Vec<&str>)> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let name = tenants.get(index).map_or("", |tenant| tenant.name.as_str());
        for note in source.notes() {
            match found.iter_mut().find(|(known, _)| *known == note) {
                // Of one that notes it twice the name is not twice.
                Some((_, names)) if names.last() == Some(&name) => {}
                Some((_, names)) => names.push(name),
                None => found.push((note, vec![name])),
            }
        }
    }
    let told = |(note, names): (&String, Vec<&str>)| match &names[..] {
        names if names.len() == sources.len() => note.clone(),
        [name] => format!("tenant {name}: {note}"),
        names if names.len() <= MOST_NAMED => format!("tenants {}: {note}", names.join(", ")),
        names => {
            let (named, others) = names.split_at(MOST_NAMED);
            format!("tenants {} and {} others: {note}", named.join(", "), others.len())
        }
    };
    found.into_iter().map(told).collect()
}

/// Whether more than one victim in a hundred was not chosen by the policy asked
/// for, which whoever compares policies must know.
fn is_greedy(ssd: &Value) -> bool {
    count(ssd, "victims_by_greedy") * 100 > count(ssd, "victims")
}

/// Whether a block has worn by more than it endures: by over a cycle more, as a block that
/// retires does so at the end of one.
fn is_worn_out(ssd: &Value) -> bool {
    let cycles = |key: &str| ssd["wear"][key].as_f64().unwrap_or(0.0);
    cycles("most_cycles") > cycles("rated_cycles") + 1.0
}

/// Whether more than half of a coordinator's windows were not as long as it had meant.
fn is_ended_mostly_by_device(coordinator: &Value) -> bool {
    2 * count(coordinator, "forced") > count(coordinator, "windows")
}

fn count(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or(0)
}

/// Each tenant's requests, of which a device that `foresees` is told beforehand.
pub(crate) fn open(
    config: &Experiment,
    device: &mut dyn Device,
    foresees: bool,
    progress: &mut Progress<'_>,
) -> Result<Vec<Box<dyn Source>>, Error> {
    if foresees {
        let mut foreseen = open_each(config, device.limits().sectors, progress)?;
        device.foresee(&stack::foresight(&mut foreseen)?);
    }
    open_each(config, device.limits().sectors, progress)
}

fn open_each(
    config: &Experiment,
    sectors: u64,
    progress: &mut Progress<'_>,
) -> Result<Vec<Box<dyn Source>>, Error> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    let block = stack::block(config);
    for (index, workload) in stack::workloads(config).iter().enumerate() {
        let watch = &mut |fraction| progress("scan", fraction);
        sources.push(workload.open_watched(sectors, block, stack::seeds(config, index), watch)?);
    }
    Ok(sources)
}

/// The chip log as a table.
fn chip_columns(device: &dyn Device) -> Vec<(String, Column)> {
    let mut intervals = Vec::new();
    let mut first = 0;
    for part in parts(device) {
        intervals.extend(part.watched().iter().map(|interval| (first + interval.chip, interval)));
        first += part.channels().iter().sum::<u32>();
    }
    let indices = intervals.iter().map(|(_, interval)| interval.doing.index()).collect();
    let of_each = |value: fn(&(u32, &flashkeel_device::Interval)) -> u64| {
        Column::U64(intervals.iter().map(value).collect())
    };
    let requests = intervals.iter().map(|(_, interval)| interval.requests.iter().map(|id| id.0).collect());
    vec![
        ("chip".into(), of_each(|(chip, _)| u64::from(*chip))),
        ("doing".into(), Column::Word { indices, vocabulary: &Doing::LABELS }),
        ("start_ns".into(), of_each(|(_, interval)| interval.start.0)),
        ("end_ns".into(), of_each(|(_, interval)| interval.end.0)),
        ("requests".into(), Column::Lists(requests.collect())),
    ]
}

/// An SSD ready to be measured.
pub(crate) fn steady_state(
    config: &DeviceConfig,
    seed: u64,
    cache_dir: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Ssd, Unmade> {
    let layout = config.validate()?;
    let cache = cache_dir.filter(|_| config.precondition.pattern != FillPattern::None).map(Cache::new);
    if let Some(ssd) = cache.as_ref().and_then(|cache| cache.load(config, &layout, seed)) {
        return Ok(ssd);
    }
    let mut ssd = Ssd::new(&layout, seed);
    if ssd.precondition(&mut |fraction| progress("precondition", fraction)).is_break() {
        return Err(Unmade::Interrupted);
    }
    if let Some(cache) = cache {
        cache.store(config, seed, &ssd);
    }
    Ok(ssd)
}

impl From<Unmade> for Error {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Refused(reason) => Error::Input(reason),
            Unmade::Interrupted => Error::Interrupted,
        }
    }
}

impl From<DriveError> for Error {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Workload(error) => error.into(),
            DriveError::Interrupted => Error::Interrupted,
            DriveError::Stuck(waited) => Error::Broken(format!(
                "interrupted, when no request had ended for {:.1} s of simulated time: the device held them back, \
                 or was busy with itself, perhaps with collection that gains little, which a lower \
                 device.logical_capacity or a larger device.map_cache would mend",
                waited.as_ns() as f64 / 1e9
            )),
            DriveError::Unheard => Error::Failure(
                "the device waits for something outside the simulation, to which nobody listens".into(),
            ),
            DriveError::Standstill(at) => Error::Input(format!(
                "workload.duration: never passes: {} after the start the device serves requests in no time, \
                 and others follow at once; set workload.requests, or pace them",
                Span(at.0)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_greedy_where_another_policy_chose_more_than_one_victim_in_a_hundred() {
        let is = |victims: u64, by_greedy: u64| {
            is_greedy(&json!({ "victims": victims, "victims_by_greedy": by_greedy }))
        };
        assert_eq!([is(0, 0), is(100, 1), is(100, 2), is(199, 2)], [false, false, true, true]);
        assert!(!is_greedy(&json!({})));
    }
}
