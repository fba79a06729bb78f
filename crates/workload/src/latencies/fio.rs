//! fio's latency logs (`write_lat_log`), as its manual describes them under "Log file
//! formats": time in ms at which the request ended, latency in ns, direction (0 a read,
//! 1 a write, 2 a trim), bytes, and what options add: the offset (`log_offset`), the
//! priority, the time of issue in ns (`log_issue_time`, of newer versions).
//!
//! Times in ms say too little of when a request was submitted. It is known from the time
//! of issue, or from the I/O log of the same job (`write_iolog`, version 3, in us); where
//! neither is there, `moments.rs` says what is assumed.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, chosen, moments, plausible, served};
use crate::error::Pulse;
use crate::input::Input;
use crate::readers::{self, ReaderOptions, Record, Times};
use crate::text::{Field, Separator, lines, quote};
use crate::{Counts, Location, Stopped, WorkloadError};

const NAMES: [&str; 7] =
    ["time_ms", "latency_ns", "direction", "bytes", "offset", "priority", "issue time_ns"];
const NS_PER_MS: u64 = 1_000_000;

/// Whether these are lines of numbers separated by commas.
pub(super) fn matches(head: &[u8]) -> bool {
    let is_log = |line: &[u8]| {
        let mut fields = [&[] as &[u8]; NAMES.len()];
        let count = Separator::Comma.fields(line, &mut fields);
        let is_number = |field: &[u8]| {
            let digits = field.strip_prefix(b"-").or(field.strip_prefix(b"0x")).unwrap_or(field);
            !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)
        };
        (4..=NAMES.len()).contains(&count) && fields[..count].iter().all(|field| is_number(field))
    };
    // The second line may be the one that is wrong.
    lines(head, 2).any(is_log)
}

/// A line.
struct Entry {
    item: u64,
    time_ns: u64,
    latency_ns: u64,
    operation: Operation,
    bytes: u64,
    offset: u64,
    issued_ns: u64,
}

/// Reads a latency log, with the I/O log of the same job if there is one.
pub(super) fn read(
    mut input: Input,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let file = input.file.clone();
    let progress = input.progress();
    let (mut entries, mut passed_over, mut fields, mut has_offset) = (Vec::new(), 0, 0, false);
    while let Some((item, line)) = input.line()? {
        pulse.step(|| progress.fraction())?;
        if line.is_empty() {
            continue;
        }
        let refuse = |message| WorkloadError::at(&file, Location::Line(item), message);
        let (count, entry) = parse(line, item).map_err(refuse)?;
        if fields > 0 && fields != count {
            let message = format!("{count} fields, where the lines before it have {fields}; is it cut off?");
            return Err(refuse(message).into());
        }
        fields = count;
        has_offset |= count > 5 || count == 5 && entry.as_ref().is_some_and(|entry| entry.offset > 1);
        match entry {
            Some(entry) => entries.push(entry),
            None => passed_over += 1,
        }
    }
    if !has_offset && !entries.is_empty() {
        let message = "it says of no request where it lies; fio writes that with log_offset=1";
        return Err(WorkloadError::file(&file, message).into());
    }
    let mut notes = Vec::new();
    let mut requests = Vec::with_capacity(entries.len());
    let is_issue_known = fields == NAMES.len() && entries.iter().any(|entry| entry.issued_ns > 0);
    let submitted_ns: Vec<u64> = match &options.iolog {
        Some(iolog) => {
            let found = submissions(iolog, &entries, &file, options, pulse)?;
            passed_over += found.unended;
            if found.unended > 0 {
                notes.push(format!("{} submissions of the I/O log never ended", found.unended));
            }
            found.submitted_ns
        }
        None if is_issue_known => entries.iter().map(|entry| entry.issued_ns).collect(),
        None => {
            let times = entries.iter().map(|entry| (entry.time_ns, entry.latency_ns));
            let assumed = moments::assume(&times.collect::<Vec<_>>());
            notes.push(assumed.note());
            assumed.submitted_ns
        }
    };
    for (entry, submitted_ns) in entries.iter().zip(submitted_ns) {
        let range = (entry.offset, entry.bytes);
        let request = served(submitted_ns, entry.latency_ns, entry.operation, range, entry.item);
        let refuse = |message| WorkloadError::at(&file, Location::Line(entry.item), message);
        requests.push(request.map_err(refuse)?);
    }
    Ok(LatencyLog { file, format: "fio", requests, passed_over, notes })
}

/// A line: how many fields it has, and what it says of a read or write.
fn parse(line: &[u8], item: u64) -> Result<(usize, Option<Entry>), String> {
    let mut fields = [&[] as &[u8]; NAMES.len()];
    let count = Separator::Comma.fields(line, &mut fields);
    if !(4..=NAMES.len()).contains(&count) {
        return Err(format!(
            "{count} fields separated by commas; a latency log of fio has 4 to 7 ({})",
            NAMES.join(", ")
        ));
    }
    let number = |at: usize| Field::new(at + 1, NAMES[at]).number(fields[at]);
    let time_ns = number(0)?
        .checked_mul(NS_PER_MS)
        .ok_or_else(|| Field::new(1, NAMES[0]).refuse("too large for a time in nanoseconds"))?;
    let latency_ns = number(1)?;
    plausible(time_ns, latency_ns)?;
    let operation = match fields[2] {
        b"0" => Operation::Read,
        b"1" => Operation::Write,
        b"2" => return Ok((count, None)),
        other => {
            let why = format!("{} is none of 0 (read), 1 (write) and 2 (trim)", quote(other));
            return Err(Field::new(3, NAMES[2]).refuse(why));
        }
    };
    let bytes = number(3)?;
    if bytes == 0 {
        let why = "0, as in logs of means; fio writes each request without log_avg_msec";
        return Err(Field::new(4, NAMES[3]).refuse(why));
    }
    // The fifth of five may be the priority, also in hexadecimal digits.
    let is_priority = count == 5 && fields[4].starts_with(b"0x");
    let offset = if count > 4 && !is_priority { number(4)? } else { 0 };
    let issued_ns = if count == NAMES.len() { number(6)? } else { 0 };
    Ok((count, Some(Entry { item, time_ns, latency_ns, operation, bytes, offset, issued_ns })))
}

/// When each request of a latency log was submitted.
struct Submissions {
    submitted_ns: Vec<u64>,
    /// Of requests that are not in the latency log.
    unended: u64,
}

/// Finds each request of a latency log in the I/O log of the same job.
fn submissions(
    iolog: &Path,
    entries: &[Entry],
    file: &str,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<Submissions, Stopped> {
    let reader_options = ReaderOptions {
        time_unit: None,
        action: None,
        columns: None,
        is_forced: false,
        times: Times::Recorded,
        responses: false,
    };
    let input = Input::open(iolog)?;
    if input.head().starts_with(b"fio version 2") {
        let message = "version 2 has no times of submission; leave it away, the latency log suffices";
        return Err(WorkloadError::at(&input.file, Location::Line(1), message).into());
    }
    drop(input);
    let name = readers::FormatName::parse("fio").expect("it is one of ours");
    let mut opened = readers::open(iolog, Some(name), &reader_options)?;
    let (mut all, mut record, mut counts) = (Vec::new(), Record::EMPTY, Counts::default());
    while opened.reader.next(&mut record, &mut counts)? {
        pulse.step(|| opened.progress.fraction())?;
        all.push(record);
    }
    let device = chosen(&opened.file, &opened.reader.devices().names(), options.device.as_deref())?;
    let mut open: BTreeMap<(Operation, u64, u64), VecDeque<u64>> = BTreeMap::new();
    let is_asked = |operation| matches!(operation, Operation::Read | Operation::Write);
    for record in all.iter().filter(|record| record.device == device && is_asked(record.operation)) {
        let key = (record.operation, record.offset, record.bytes);
        open.entry(key).or_default().push_back(record.time_ns);
    }
    let mut submitted_ns = Vec::with_capacity(entries.len());
    for entry in entries {
        let found = open.get_mut(&(entry.operation, entry.offset, entry.bytes)).and_then(VecDeque::pop_front);
        let at = |message: String| WorkloadError::at(file, Location::Line(entry.item), message);
        let found = found.ok_or_else(|| {
            at(format!("{} has no such request (left); are both logs of the same job?", opened.file))
        })?;
        // It ended before the next millisecond began.
        let end_ns = entry.time_ns + NS_PER_MS;
        if found.saturating_add(entry.latency_ns) > end_ns + TOLERANCE_NS {
            return Err(at(format!(
                "the request ended {} us before what its submission in {} and its latency come to",
                (found.saturating_add(entry.latency_ns) - end_ns) / 1000,
                opened.file
            ))
            .into());
        }
        submitted_ns.push(found);
    }
    Ok(Submissions { submitted_ns, unended: open.values().map(|queue| queue.len() as u64).sum() })
}

/// By how much times of two logs may contradict each other: each is noted a little after
/// what it is about.
const TOLERANCE_NS: u64 = 2 * NS_PER_MS;
