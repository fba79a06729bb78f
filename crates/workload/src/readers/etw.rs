//! Event Tracing for Windows, as text: the Microsoft production server traces
//! of SNIA IOTTA, and what `xperf -a dumper` writes.
//!
//! A header between `BeginHeader` and `EndHeader` names the columns of every
//! kind of event; then comes one event a line. Times are microseconds, offsets
//! and sizes are bytes in hexadecimal, a device is a disk number. `DiskRead`,
//! `DiskWrite` and `DiskFlush` are requests, every other event is counted and
//! passed over. They are logged when they complete, and their `ElapsedTime` is
//! the time they took, so that they were issued by that much earlier.

use std::array;

use flashkeel_config::did_you_mean;
use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record, Times};
use crate::text::{lines, number, quote};
use crate::{Counts, Location, WorkloadError};

const TICK_NS: u64 = 1000;
const BEGIN: &[u8] = b"BeginHeader";
const END: &[u8] = b"EndHeader";

const EVENTS: [&str; 3] = ["DiskRead", "DiskWrite", "DiskFlush"];
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Flush];
/// Begins of requests, which may be logged beside them.
const BEGINNINGS: [&str; 3] = ["DiskReadInit", "DiskWriteInit", "DiskFlushInit"];

const TIME: usize = 0;
const DISK: usize = 1;
const ELAPSED: usize = 2;
const OFFSET: usize = 3;
const SIZE: usize = 4;
/// Columns of a request.
const COLUMNS: [&str; 5] = ["TimeStamp", "DiskNum", "ElapsedTime", "ByteOffset", "IOSize"];

/// Where each of [`COLUMNS`] stands, from 0; none that is not needed.
type Positions = [Option<usize>; COLUMNS.len()];

/// What the production server traces have where no header says otherwise.
const ASSUMED: [[usize; COLUMNS.len()]; 3] = [[1, 8, 7, 5, 6], [1, 8, 7, 5, 6], [1, 6, 5, 0, 0]];
/// Where the time of issue begins to count: before the trace began, so that
/// what was on its way then has one.
const ISSUED_BEFORE_NS: u64 = 3600 * 1_000_000_000;

/// Whether a column of `operation` is read.
fn is_needed(column: usize, operation: Operation, times: Times) -> bool {
    match column {
        ELAPSED => times == Times::Issued,
        OFFSET | SIZE => operation != Operation::Flush,
        _ => true,
    }
}

pub(super) const FORMAT: Format = Format {
    name: "etw",
    shape: "a header from BeginHeader to EndHeader, then events such as DiskRead, their fields separated by commas",
    matches,
    open,
};

fn matches(_: &str, head: &[u8]) -> usize {
    if lines(head, 1).next().is_some_and(|line| line.trim_ascii() == BEGIN) {
        return DETECTION_LINES;
    }
    let is_request = |line: &&[u8]| {
        let event = name(line);
        EVENTS.iter().any(|known| known.as_bytes() == event) && line.contains(&b',')
    };
    lines(head, DETECTION_LINES).filter(is_request).count()
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let tick_ns = options.tick_ns(TICK_NS)?;
    let has_header = lines(input.head(), 1).next().is_some_and(|line| line.trim_ascii() == BEGIN);
    let times = options.times;
    let assumed = |kind: usize| {
        let operation = OPERATIONS[kind];
        array::from_fn(|column| is_needed(column, operation, times).then_some(ASSUMED[kind][column]))
    };
    let layout = if has_header { [None; 3] } else { array::from_fn(|kind| Some(assumed(kind))) };
    Ok(Box::new(Etw {
        file: input.file.clone(),
        input,
        tick_ns,
        times,
        layout,
        has_header,
        is_in_header: false,
        others: Vec::new(),
        devices: Devices::default(),
    }))
}

struct Etw {
    file: String,
    input: Input,
    tick_ns: u64,
    times: Times,
    /// Those of each of [`EVENTS`].
    layout: [Option<Positions>; 3],
    has_header: bool,
    is_in_header: bool,
    /// Other events of disks that the header names.
    others: Vec<Box<[u8]>>,
    devices: Devices,
}

impl Reader for Etw {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        while let Some((item, line)) = self.input.line()? {
            let refuse = |message| WorkloadError::at(&self.file, Location::Line(item), message);
            let event = name(line);
            if self.is_in_header || event == BEGIN {
                self.is_in_header = event != END;
                define(line, self.times, &mut self.layout, &mut self.others).map_err(refuse)?;
                counts.not_io += 1;
                continue;
            }
            let Some(kind) = EVENTS.iter().position(|known| known.as_bytes() == event) else {
                check_other(event, &self.others).map_err(refuse)?;
                counts.not_io += 1;
                continue;
            };
            let Some(positions) = self.layout[kind] else {
                return Err(refuse(format!(
                    "the header does not say what the columns of {} are",
                    EVENTS[kind]
                )));
            };
            let record = parse(line, OPERATIONS[kind], positions, self.tick_ns, &mut self.devices);
            *next = Record { item, ..record.map_err(refuse)? };
            return Ok(true);
        }
        if self.is_in_header {
            return Err(WorkloadError::file(&self.file, "its header has no EndHeader"));
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn has_responses(&self) -> bool {
        self.times == Times::Issued
    }

    fn tick_ns(&self) -> Option<u64> {
        Some(self.tick_ns)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.times == Times::Recorded {
            notes.push(
                "the times of an ETW trace are those at which its requests completed; times = \"issued\" has those of their issue"
                    .to_owned(),
            );
        }
        if !self.has_header {
            notes.push(
                "this ETW trace has no header; its columns are assumed to be those of Microsoft's production server traces"
                    .to_owned(),
            );
        }
        notes
    }
}

/// The first field of a line.
#[inline]
fn name(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(b',', line).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// Takes in a line of the header.
fn define(
    line: &[u8],
    times: Times,
    layout: &mut [Option<Positions>; 3],
    others: &mut Vec<Box<[u8]>>,
) -> Result<(), String> {
    let event = name(line);
    let Some(kind) = EVENTS.iter().position(|known| known.as_bytes() == event) else {
        if is_of_disk(event) && !others.iter().any(|known| **known == *event) {
            others.push(event.into());
        }
        return Ok(());
    };
    let mut positions = [None; COLUMNS.len()];
    for (column, position) in positions.iter_mut().enumerate() {
        if !is_needed(column, OPERATIONS[kind], times) {
            continue;
        }
        let mut names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        *position = names.position(|found| found.eq_ignore_ascii_case(COLUMNS[column].as_bytes()));
        if position.is_none() {
            return Err(format!(
                "the header's {} has no column {}; does EndHeader stand before the events?",
                EVENTS[kind], COLUMNS[column]
            ));
        }
    }
    layout[kind] = Some(positions);
    Ok(())
}

/// Whether an event has a name as those of disks have, so that a misspelt
/// request does not pass for an event of another kind.
#[inline]
fn is_of_disk(event: &[u8]) -> bool {
    event.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"Disk"))
}

#[inline]
fn check_other(event: &[u8], others: &[Box<[u8]>]) -> Result<(), String> {
    let is_known = !is_of_disk(event)
        || BEGINNINGS.iter().any(|known| known.as_bytes() == event)
        || others.iter().any(|known| **known == *event);
    if is_known {
        return Ok(());
    }
    let hint = did_you_mean(&String::from_utf8_lossy(event), EVENTS);
    Err(format!("field 1 (event): {} is not in the header{hint}", quote(event)))
}

fn parse(
    line: &[u8],
    operation: Operation,
    positions: Positions,
    tick_ns: u64,
    devices: &mut Devices,
) -> Result<Record, String> {
    let last = positions.iter().flatten().copied().max().unwrap_or(0);
    let mut found = [&[] as &[u8]; COLUMNS.len()];
    let mut fields = 0;
    for field in line.split(|&byte| byte == b',').take(last + 1) {
        if let Some(column) = positions.iter().position(|&position| position == Some(fields)) {
            found[column] = field.trim_ascii();
        }
        fields += 1;
    }
    if fields <= last {
        let need = last + 1;
        return Err(format!(
            "expected at least {need} fields separated by commas, found {fields}: {}",
            quote(line)
        ));
    }
    let refuse = |column: usize, why: String| {
        let field = positions[column].map_or(0, |position| position + 1);
        format!("field {field} ({}): {why}", COLUMNS[column])
    };
    let ns_of = |column: usize| {
        number(found[column])
            .ok_or_else(|| refuse(column, format!("{} is not a whole number", quote(found[column]))))?
            .checked_mul(tick_ns)
            .ok_or_else(|| refuse(column, "too large for a time in nanoseconds".into()))
    };
    let mut time_ns = ns_of(TIME)?;
    let mut response_ns = 0;
    if positions[ELAPSED].is_some() {
        response_ns = ns_of(ELAPSED)?;
        time_ns = time_ns
            .checked_add(ISSUED_BEFORE_NS)
            .ok_or_else(|| refuse(TIME, "too large for a time in nanoseconds".into()))?
            .checked_sub(response_ns)
            .ok_or_else(|| refuse(ELAPSED, "issued over an hour before the trace began".into()))?;
    }
    if number(found[DISK]).is_none() {
        return Err(refuse(DISK, format!("{} is not a whole number", quote(found[DISK]))));
    }
    let device = devices.index(found[DISK]).map_err(|why| refuse(DISK, why))?;
    let bytes_of = |column: usize| {
        let text = found[column];
        let wrong = || format!("{} is not a whole number, such as 0x1000, of 64 bits", quote(text));
        integer(text).ok_or_else(|| refuse(column, wrong()))
    };
    let (offset, bytes) =
        if operation == Operation::Flush { (0, 0) } else { (bytes_of(OFFSET)?, bytes_of(SIZE)?) };
    if offset.checked_add(bytes).is_none() {
        return Err(refuse(OFFSET, "offset and size lie beyond any 64-bit address".into()));
    }
    Ok(Record { time_ns, item: 0, device, operation, offset, bytes, response_ns })
}

/// A whole number, hexadecimal after `0x` and decimal otherwise.
#[inline]
fn integer(text: &[u8]) -> Option<u64> {
    let Some(digits) = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")) else {
        return number(text);
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = (byte as char).to_digit(16)?;
        value.checked_mul(16)?.checked_add(digit.into())
    })
}
