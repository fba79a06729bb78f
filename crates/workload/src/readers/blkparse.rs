//! blkparse text in its default output format:
//! `259,2 0 1 0.000000000 4020 Q R 282624 + 8 [java]`, that is device, CPU,
//! sequence, seconds, process, action, RWBS, first sector, `+`, sectors, name.
//!
//! Events of one action are the requests: `Q` (queued) unless `action` says
//! otherwise. Every other event is counted and passed over, and so is the
//! summary that blkparse writes at the end.

use flashkeel_config::did_you_mean;
use flashkeel_engine::Operation;

use super::actions::Actions;
use super::asked_beside::AskedBeside;
use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record, sector_range};
use crate::text::{Field, lines, number, quote, words};
use crate::{Counts, Location, WorkloadError};

/// The actions of blkparse(1).
const ACTIONS: [&str; 18] =
    ["Q", "D", "C", "A", "B", "F", "G", "I", "M", "P", "R", "S", "T", "U", "UT", "W", "X", "m"];

const DEVICE: Field = Field::new(1, "device");
const CPU: Field = Field::new(2, "cpu");
const SEQUENCE: Field = Field::new(3, "sequence");
const TIME: Field = Field::new(4, "seconds");
const PROCESS: Field = Field::new(5, "process");
const ACTION: Field = Field::new(6, "action");
const RWBS: Field = Field::new(7, "rwbs");
const SECTOR: Field = Field::new(8, "sector");
const SECTORS: Field = Field::new(10, "sectors");

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    shape: "device, cpu, sequence, seconds, process, action, rwbs, sector + sectors",
    matches: |_, head| lines(head, DETECTION_LINES).filter(|line| event(line).is_ok()).count(),
    open,
};

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_time_unit(FORMAT.name)?;
    let action = options.action.clone().unwrap_or_else(|| "Q".into());
    if !ACTIONS.contains(&action.as_str()) {
        return Err(WorkloadError::key(
            "workload.source.action",
            format!("blkparse has no action {action:?}; it has {}", ACTIONS.join(", ")),
        ));
    }
    Ok(Box::new(Blkparse {
        file: input.file.clone(),
        input,
        actions: Actions::new(&action),
        action,
        devices: Devices::default(),
        beside: AskedBeside::default(),
        is_summary: false,
    }))
}

struct Blkparse {
    file: String,
    input: Input,
    action: String,
    actions: Actions,
    devices: Devices,
    beside: AskedBeside,
    is_summary: bool,
}

impl Reader for Blkparse {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        if let Some(request) = self.beside.next() {
            *next = request;
            return Ok(true);
        }
        while let Some((item, line)) = self.input.line()? {
            self.is_summary |= begins_summary(line);
            let refuse = |message| WorkloadError::at(&self.file, Location::Line(item), message);
            if self.is_summary && event(line).is_ok() {
                return Err(refuse("an event after the summary; were two outputs joined?".into()));
            }
            if self.is_summary || line.is_empty() {
                counts.not_io += 1;
                continue;
            }
            match parse(line, item, &self.action, &mut self.actions, &mut self.devices).map_err(refuse)? {
                Some((record, rwbs)) => {
                    // A flush is asked for before the operation, FUA behind it.
                    let (is_flushed, flags) = match rwbs {
                        [b'F', _, flags @ ..] => (true, flags),
                        [_, flags @ ..] => (false, flags),
                        [] => (false, rwbs),
                    };
                    *next = self.beside.first(record, is_flushed, flags.contains(&b'F'));
                    return Ok(true);
                }
                None => counts.not_io += 1,
            }
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn notes(&self) -> Vec<String> {
        self.beside.note().into_iter().collect()
    }

    fn remedy(&self) -> Option<String> {
        self.actions.remedy()
    }
}

/// Whether the line is the first of blkparse's summary: `CPU0 (8,0):` or
/// `Total (8,0):`.
fn begins_summary(line: &[u8]) -> bool {
    let cpu = line.strip_prefix(b"CPU").filter(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    cpu.is_some_and(|rest| rest.contains(&b'(')) || line.starts_with(b"Total (")
}

/// What every event has.
struct Event<'a> {
    device: &'a [u8],
    time_ns: u64,
    action: &'a [u8],
}

fn event(line: &[u8]) -> Result<Event<'_>, String> {
    let mut words = words(line);
    let mut take = |field: Field| {
        words.next().ok_or_else(|| field.refuse("missing; a line has at least device, cpu, sequence, seconds, process and action, separated by spaces"))
    };
    let device = take(DEVICE)?;
    let is_device = device
        .iter()
        .position(|&byte| byte == b',')
        .is_some_and(|comma| number(&device[..comma]).is_some() && number(&device[comma + 1..]).is_some());
    if !is_device {
        return Err(DEVICE.refuse(format!("{} is not major,minor", quote(device))));
    }
    CPU.number(take(CPU)?)?;
    SEQUENCE.number(take(SEQUENCE)?)?;
    let time_ns = seconds(take(TIME)?)?;
    PROCESS.number(take(PROCESS)?)?;
    let action = take(ACTION)?;
    if !ACTIONS.iter().any(|known| known.as_bytes() == action) {
        let hint = did_you_mean(&String::from_utf8_lossy(action), ACTIONS);
        return Err(ACTION.refuse(format!("unknown action {}{hint}", quote(action))));
    }
    Ok(Event { device, time_ns, action })
}

/// Seconds with up to nine decimals, in nanoseconds.
fn seconds(text: &[u8]) -> Result<u64, String> {
    let parse = || {
        let dot = text.iter().position(|&byte| byte == b'.')?;
        let (whole, decimals) = (number(&text[..dot])?, &text[dot + 1..]);
        let scale = 10u64.pow(9u32.checked_sub(decimals.len() as u32)?);
        whole.checked_mul(1_000_000_000)?.checked_add(number(decimals)? * scale)
    };
    parse().ok_or_else(|| TIME.refuse(format!("{} is not seconds with decimals", quote(text))))
}

/// The request of a line, and its RWBS field.
fn parse<'a>(
    line: &'a [u8],
    item: u64,
    action: &str,
    actions: &mut Actions,
    devices: &mut Devices,
) -> Result<Option<(Record, &'a [u8])>, String> {
    let event = event(line)?;
    if event.action != action.as_bytes() {
        actions.pass(std::str::from_utf8(event.action).unwrap_or_default());
        return Ok(None);
    }
    let mut rest = words(line).skip(6);
    let rwbs = rest.next().ok_or_else(|| RWBS.refuse("missing"))?;
    if rwbs.is_empty() || !rwbs.iter().all(|byte| b"RWDFNESAMBV".contains(byte)) {
        return Err(RWBS.refuse(format!("unknown operation {}", quote(rwbs))));
    }
    let Some(operation) = operation(rwbs) else { return Ok(None) };
    let device = devices.index(event.device).map_err(|why| DEVICE.refuse(why))?;
    let record = |operation, offset, bytes| {
        Ok(Some((
            Record { time_ns: event.time_ns, item, device, operation, offset, bytes, response_ns: 0 },
            rwbs,
        )))
    };
    // What has no sectors has no `+` either (`blkparse_fmt.c`): a flush, the end of one that a
    // write has asked for, or a command passed through, with its bytes in parentheses.
    let is_behind_range = |word: &[u8]| word.starts_with(b"[") || word.starts_with(b"(");
    let without_data = || {
        if rwbs.starts_with(b"F") { record(Operation::Flush, 0, 0) } else { Ok(None) }
    };
    let first = rest.next().unwrap_or_default();
    if is_behind_range(first) || first.is_empty() && rwbs.starts_with(b"F") {
        return without_data();
    }
    let lba = SECTOR.number(first)?;
    match rest.next() {
        Some(b"+") => {}
        Some(word) if is_behind_range(word) => return without_data(),
        _ => return Err(Field::new(9, "+").refuse("expected + between first sector and number of sectors")),
    }
    let sectors = SECTORS.number(rest.next().unwrap_or_default())?;
    let (offset, bytes) = sector_range(lba, sectors).map_err(|why| SECTOR.refuse(why))?;
    if rwbs.starts_with(b"F") && bytes == 0 {
        return record(Operation::Flush, 0, 0);
    }
    record(operation, offset, bytes)
}

/// The operation of an RWBS field; `None` for an event that moves no data.
fn operation(rwbs: &[u8]) -> Option<Operation> {
    // A leading F asks for a flush before the operation that follows it.
    let (is_flush, rest) = match rwbs {
        [b'F', rest @ ..] => (true, rest),
        _ => (false, rwbs),
    };
    match rest.first() {
        Some(b'R') => Some(Operation::Read),
        Some(b'W') => Some(Operation::Write),
        Some(b'D') => Some(Operation::Trim),
        _ if is_flush => Some(Operation::Flush),
        _ => None,
    }
}
