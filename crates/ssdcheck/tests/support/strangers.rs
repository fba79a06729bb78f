//! What a diagnosis of a stranger is worth beside the truth.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use flashkeel_device::{BufferKind, DeviceConfig, MapCacheSize, PowerConfig, Trigger, stranger};
use flashkeel_engine::Span;
use flashkeel_ssdcheck::{BufferType, DeviceModel, FlushTrigger, Report, probe};

use super::ready;

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    /// The model says that it does not know.
    Undetermined,
    /// Wrong, and said without a doubt.
    Wrong,
}

/// The questions that a diagnosis answers, in the order of [`Judged::answers`].
pub const QUESTIONS: [&str; 7] =
    ["volume bits", "collection bits", "buffer size", "buffer type", "flush", "sleep", "threshold"];

/// A stranger that has been diagnosed.
pub struct Judged {
    pub number: u64,
    pub config: DeviceConfig,
    pub report: Report,
    pub answers: [Verdict; QUESTIONS.len()],
}

/// Time on the drive that a diagnosis may take.
const LIMIT: Span = Span::from_secs(120);

/// Diagnoses a stranger with its own number as the seed.
pub fn judge(number: u64) -> Option<Judged> {
    let config = stranger(number);
    let mut ssd = ready(&config, number);
    let report = probe(&mut ssd, None, number, Some(LIMIT), &mut |_| ControlFlow::Continue(()))
        .inspect_err(|error| println!("stranger {number}: {error}\n{config:?}"))
        .ok()?;
    let answers = answers(&config, &report.model);
    Some(Judged { number, config, report, answers })
}

/// Whether the whole buffer is flushed at once, so that it has a size that can be seen.
pub fn fills(config: &DeviceConfig) -> bool {
    config.buffer.flush.contains(&Trigger::Full)
}

fn answers(config: &DeviceConfig, model: &DeviceModel) -> [Verdict; QUESTIONS.len()] {
    let unsure = |key: &str| model.undetermined.iter().any(|reason| reason.starts_with(key));
    let verdict = |key: &str, is_known: bool, is_right: bool| match () {
        () if !is_known || unsure(key) => Verdict::Undetermined,
        () if is_right => Verdict::Right,
        () => Verdict::Wrong,
    };
    let buffer = &model.write_buffer;
    let (bytes, kind, flush) = buffer_of(config);
    [
        verdict("volume_bits", true, model.volume_bits == config.partition_bits),
        verdict(
            "gc_volume_bits",
            model.gc_volume_bits.is_some(),
            model.gc_volume_bits.as_ref() == Some(&config.partition_bits),
        ),
        verdict("write_buffer.bytes", buffer.bytes.is_some(), buffer.bytes == Some(bytes)),
        verdict("write_buffer.type", buffer.kind != BufferType::Unknown, buffer.kind == kind),
        verdict("write_buffer.flush", !buffer.flush.is_empty(), buffer.flush == flush),
        verdict("sleep", true, sleeps_so(config, model)),
        verdict("thresholds_ns", true, is_threshold(config, model)),
    ]
}

/// Data between two flushes of a volume, who waits for them, and what starts them.
pub fn buffer_of(config: &DeviceConfig) -> (u64, BufferType, Vec<FlushTrigger>) {
    let volumes = 1 << config.partition_bits.len();
    let size = config.buffer.size.0 / volumes / 4_096 * 4_096;
    let geometry = &config.geometry;
    let planes = if geometry.multi_plane { u64::from(geometry.planes_per_chip) } else { 1 };
    let page = geometry.page_size.0 * planes;
    let bytes = match &config.buffer.kind {
        _ if fills(config) => size,
        BufferKind::Stripe(stripe) => page * u64::from(stripe.pages),
        _ => page,
    };
    let waits = matches!(config.buffer.kind, BufferKind::Fore(_) | BufferKind::None(_));
    let mut flush = vec![FlushTrigger::Full];
    if config.buffer.flush.contains(&Trigger::Read) {
        flush.push(FlushTrigger::ReadTrigger);
    }
    (bytes, if waits { BufferType::Fore } else { BufferType::Back }, flush)
}

/// Whether the model says of sleep what is true, as far as it makes reads slow.
fn sleeps_so(config: &DeviceConfig, model: &DeviceModel) -> bool {
    let PowerConfig::IdleSleep(sleep) = &config.power else { return model.sleep.is_none() };
    let wakes_slowly = sleep.wake.min.0 + read_of(config) > model.thresholds_ns.read;
    match model.sleep {
        Some(found) => (found.after_ns as f64 / sleep.after.0 as f64 - 1.0).abs() < 0.1,
        None => !wakes_slowly,
    }
}

/// What a read of 4 KiB takes that nothing interferes with, its map page being in memory.
pub fn read_of(config: &DeviceConfig) -> u64 {
    let mut array = config.timing.read.clone();
    array.sort_unstable();
    let controller = &config.controller;
    let middle = |low: Span, high: Span| low.0.midpoint(high.0);
    let transfer = |rate: u64| 4_096 * 1_000_000_000 / rate;
    middle(controller.lookup.min, controller.lookup.max)
        + middle(controller.host_generation.min, controller.host_generation.max)
        + array[array.len() / 2].0
        + transfer(config.timing.channel_rate.0)
        + config.host_link.map_or(0, |link| transfer(link.0))
}

/// Whether the threshold of reads lies above a normal one, and no more than five times
/// as high.
fn is_threshold(config: &DeviceConfig, model: &DeviceModel) -> bool {
    let (read, threshold) = (read_of(config), model.thresholds_ns.read);
    // Where most reads have to load their page of the map, that is normal.
    let normal = read.max(model.latencies_ns.read.min(5 * read / 2));
    threshold > normal * 6 / 5 && threshold <= 5 * normal
}

/// The features of a drive, by which results are told.
pub fn features(config: &DeviceConfig) -> Vec<String> {
    let buffer = &config.buffer;
    let triggers = serde_json::to_value(&buffer.flush).expect("plain data");
    let triggers: Vec<&str> =
        triggers.as_array().expect("a list").iter().filter_map(|it| it.as_str()).collect();
    let mut all = vec![
        format!("buffer {} {}", buffer.kind.name(), triggers.join("+")),
        format!("volumes {}", 1 << config.partition_bits.len()),
        format!("collection {}", config.gc.invocation.name()),
        format!("movement {}", config.gc.movement.name()),
        format!("scheduler {}", config.scheduler.name()),
        format!("allocation {}", config.allocation.name()),
    ];
    let is_slow_nand = config.timing.erase.0 > 100_000;
    for (name, has) in [
        ("as an NVM", !is_slow_nand),
        ("SLC cache", config.slc_cache.name() != "none"),
        ("part of the map", config.map_cache != MapCacheSize::All),
        ("sleep", config.power.name() != "none"),
        ("scrub", config.scrub.enabled),
        ("wear levelling", config.wear_levelling.enabled),
        ("checkpoint", config.checkpoint.enabled),
        ("suspension", config.suspension.is_some()),
        ("coalesces", serde_json::to_value(buffer.rewrite).expect("plain data") == "coalesce"),
    ] {
        if has {
            all.push(name.into());
        }
    }
    all
}

/// A table by feature: of each question how many answers were right, undetermined and
/// wrong.
pub fn table(all: &[Judged]) -> String {
    let mut rows: BTreeMap<String, (usize, [[usize; 3]; QUESTIONS.len()])> = BTreeMap::new();
    for judged in all {
        let mut names = features(&judged.config);
        names.push(" all".into());
        names.push(
            if fills(&judged.config) { " a buffer that fills" } else { " no buffer that fills" }.into(),
        );
        for name in names {
            let (drives, counts) = rows.entry(name).or_default();
            *drives += 1;
            for (count, &verdict) in counts.iter_mut().zip(&judged.answers) {
                count[verdict as usize] += 1;
            }
        }
    }
    let mut text =
        format!("| feature | drives | {} |\n|---|---|{}\n", QUESTIONS.join(" | "), "---|".repeat(7));
    for (name, (drives, counts)) in rows {
        let cells = counts.map(|[right, unsure, wrong]| format!("{right} / {unsure} / {wrong}"));
        writeln!(text, "| {} | {drives} | {} |", name.trim(), cells.join(" | ")).expect("a string");
    }
    text
}
