//! What a diagnosis of a stranger is worth beside the truth.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use flashkeel_device::{BufferKind, DeviceConfig, MapCacheSize, PowerConfig, Trigger, stranger};
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span};
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
    let took = Span(report.evidence.duration_ns);
    assert!(took <= LIMIT, "stranger {number}: {took}");
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
pub fn sleeps_so(config: &DeviceConfig, model: &DeviceModel) -> bool {
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
pub fn is_threshold(config: &DeviceConfig, model: &DeviceModel) -> bool {
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
    let pages = buffer_of(config).0 / LOGICAL_PAGE_BYTES;
    all.push(match pages {
        ..32 => "buffer of less than 128 KiB a volume".into(),
        32..128 => "buffer of 128 to 512 KiB a volume".into(),
        _ => "buffer of 512 KiB and more a volume".to_string(),
    });
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

/// The questions that [`table`] tells of apart.
const TOLD: [&str; 4] = ["buffer size", "volume bits", "threshold", "sleep"];

/// Of some drives how many there are, the percentages of [`TOLD`] that were answered, and the
/// answers to any question that were wrong without a doubt.
fn counted<'a>(some: impl Iterator<Item = &'a Judged>) -> (usize, [f64; TOLD.len()], usize) {
    let (mut drives, mut answered, mut wrong) = (0, [0.0; TOLD.len()], 0);
    for of in some {
        drives += 1;
        wrong += of.answers.iter().filter(|&&answer| answer == Verdict::Wrong).count();
        for (question, &answer) in QUESTIONS.iter().zip(&of.answers) {
            if let Some(at) = TOLD.iter().position(|told| told == question) {
                answered[at] += f64::from(u8::from(answer != Verdict::Undetermined));
            }
        }
    }
    (drives, answered.map(|count| 100.0 * count / (drives as f64).max(1.0)), wrong)
}

/// A table by feature of the drives whose buffer fills: what part of them was answered with the
/// feature and without, and how many answers were wrong.
pub fn table(all: &[Judged]) -> String {
    let filling: Vec<(Vec<String>, &Judged)> =
        all.iter().filter(|of| fills(&of.config)).map(|of| (features(&of.config), of)).collect();
    let names: BTreeSet<&String> = filling.iter().flat_map(|(names, _)| names).collect();
    let heads = TOLD.map(|told| format!("{told}, % | without")).join(" | ");
    let mut text = format!("| drives with | | {heads} | wrong | without |\n|{}\n", "---|".repeat(12));
    let mut row = |name: &str, is_one: &dyn Fn(&[String]) -> bool| {
        let some = |wanted| {
            let those = filling.iter().filter(move |(names, _)| is_one(names) == wanted);
            counted(those.map(|&(_, of)| of))
        };
        let ((drives, with, wrong), (others, without, wrong_without)) = (some(true), some(false));
        let of = |part: f64| if others > 0 { format!("{part:.0}") } else { "–".into() };
        let cells: Vec<String> =
            with.iter().zip(without).map(|(with, without)| format!("{with:.0} | {}", of(without))).collect();
        let cells = cells.join(" | ");
        writeln!(text, "| {name} | {drives} | {cells} | {wrong} | {wrong_without} |").expect("a string");
    };
    row("a buffer that fills", &|_| true);
    names.iter().for_each(|&name| row(name, &|names| names.contains(name)));
    let (drives, _, wrong) = counted(all.iter().filter(|of| !fills(&of.config)));
    writeln!(text, "{drives} others, with {wrong} wrong answers").expect("a string");
    text
}

/// Of the drives whose buffer fills how many answers to each question were right, undetermined
/// and wrong.
pub fn totals(all: &[Judged]) -> String {
    let mut text = String::new();
    for (question, name) in QUESTIONS.iter().enumerate() {
        let count = |verdict: Verdict| {
            all.iter().filter(|of| fills(&of.config) && of.answers[question] == verdict).count()
        };
        let counts = [Verdict::Right, Verdict::Undetermined, Verdict::Wrong].map(count);
        writeln!(text, "{name}: {counts:?} right, undetermined, wrong").expect("a string");
    }
    text
}
