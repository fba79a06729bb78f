//! Any text of columns whose first line names them, such as
//! `submitted_us,operation,lba,sectors,latency_us`, separated by commas, semicolons or
//! tabs. Times are in ns, us, ms or s, as their names end; `offset` and `bytes` are bytes,
//! `lba` and `sectors` have 512. Columns of other names are passed over.

use flashkeel_config::did_you_mean;
use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, Served, of_chosen, served};
use crate::error::Pulse;
use crate::input::Input;
use crate::readers::{Devices, explain, named_operation};
use crate::text::{Separator, lines, quote, scaled, wrong_number};
use crate::{Location, Stopped, WorkloadError};

/// Most columns up to the last that is read.
const MOST: usize = 64;
const SECTOR: u64 = 512;

/// What a column may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Operation,
    Offset,
    Length,
    Submitted,
    Completed,
    Latency,
    Device,
}

/// Names without a unit, what they mean, and bytes of a whole one.
const NAMES: [(&str, Meaning, u64); 10] = [
    ("operation", Meaning::Operation, 1),
    ("op", Meaning::Operation, 1),
    ("rw", Meaning::Operation, 1),
    ("offset", Meaning::Offset, 1),
    ("lba", Meaning::Offset, SECTOR),
    ("sector", Meaning::Offset, SECTOR),
    ("bytes", Meaning::Length, 1),
    ("length", Meaning::Length, 1),
    ("sectors", Meaning::Length, SECTOR),
    ("device", Meaning::Device, 1),
];
/// Names before a unit of time.
const TIMES: [(&str, Meaning); 4] = [
    ("submitted", Meaning::Submitted),
    ("time", Meaning::Submitted),
    ("completed", Meaning::Completed),
    ("latency", Meaning::Latency),
];
const UNITS: [(&str, u64); 4] = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];

/// A column that is read.
#[derive(Clone, Copy)]
struct Column {
    at: usize,
    /// Nanoseconds or bytes of a whole one.
    scale: u64,
}

/// Which column is what.
struct Columns {
    separator: Separator,
    names: Vec<String>,
    operation: Column,
    offset: Column,
    length: Column,
    submitted: Column,
    completed: Option<Column>,
    latency: Option<Column>,
    device: Option<Column>,
}

/// Whether the first line names what is needed.
pub(super) fn matches(head: &[u8]) -> bool {
    header(head).is_some_and(|(separator, line)| Columns::of(separator, line).is_ok())
}

/// What is missing, where the first line names most of what is needed.
pub(super) fn nearly(head: &[u8]) -> Option<String> {
    let (separator, line) = header(head)?;
    let known = split(separator, line).iter().filter(|name| meaning(name).is_some()).count();
    Columns::of(separator, line).err().filter(|_| known > 2)
}

fn header(head: &[u8]) -> Option<(Separator, &[u8])> {
    let first = lines(head, 1).next()?;
    let separators = [(b',', Separator::Comma), (b';', Separator::Semicolon), (b'\t', Separator::Tab)];
    let found = separators.into_iter().find(|(byte, _)| first.contains(byte))?;
    Some((found.1, first))
}

fn split(separator: Separator, line: &[u8]) -> Vec<String> {
    let mut fields = [&[] as &[u8]; MOST];
    let count = separator.fields(line, &mut fields).min(MOST);
    let name = |field: &&[u8]| String::from_utf8_lossy(field.trim_ascii()).trim_matches('"').to_lowercase();
    fields[..count].iter().map(name).collect()
}

fn meaning(name: &str) -> Option<(Meaning, u64)> {
    if let Some((_, meaning, scale)) = NAMES.iter().find(|(known, ..)| *known == name) {
        return Some((*meaning, *scale));
    }
    UNITS.iter().find_map(|(unit, ns)| {
        let stem = name.strip_suffix(unit)?;
        TIMES.iter().find(|(known, _)| *known == stem).map(|(_, meaning)| (*meaning, *ns))
    })
}

impl Columns {
    fn of(separator: Separator, line: &[u8]) -> Result<Columns, String> {
        let names = split(separator, line);
        let find = |wanted: Meaning| {
            let mut found = names.iter().enumerate().filter_map(|(at, name)| match meaning(name) {
                Some((meaning, scale)) if meaning == wanted => Some(Column { at, scale }),
                _ => None,
            });
            match (found.next(), found.next()) {
                (Some(one), Some(other)) => {
                    Err(format!("the columns {} and {} say the same", names[one.at], names[other.at]))
                }
                (one, _) => Ok(one),
            }
        };
        let needed = |wanted: Meaning, known: &[&str]| {
            find(wanted)?.ok_or_else(|| {
                let hint = known.iter().find_map(|known| {
                    let near = names.iter().find(|name| !did_you_mean(name, [*known]).is_empty())?;
                    Some(format!("; is that {near:?}?"))
                });
                format!("no column {}{}", known.join(" or "), hint.unwrap_or_default())
            })
        };
        let operation = needed(Meaning::Operation, &["operation"])?;
        let offset = needed(Meaning::Offset, &["offset", "lba"])?;
        let length = needed(Meaning::Length, &["bytes", "sectors"])?;
        let submitted = needed(Meaning::Submitted, &["submitted_ns", "submitted_us", "submitted_ms"])?;
        let (completed, latency) = (find(Meaning::Completed)?, find(Meaning::Latency)?);
        if completed.is_none() && latency.is_none() {
            return Err("no column latency_ns or completed_ns (or in _us, _ms, _s): without latencies \
                        nothing can be scored"
                .into());
        }
        let device = find(Meaning::Device)?;
        Ok(Columns { separator, names, operation, offset, length, submitted, completed, latency, device })
    }

    fn refuse(&self, column: Column, why: impl std::fmt::Display) -> String {
        format!("field {} ({}): {why}", column.at + 1, self.names[column.at])
    }

    fn number(&self, fields: &[&[u8]; MOST], column: Column) -> Result<u64, String> {
        let text = fields[column.at];
        match scaled(text, column.scale) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(self.refuse(column, format!("{} is too large", quote(text)))),
            None => Err(self.refuse(column, explain(text, "number"))),
        }
    }

    /// The request of a line, none of what is neither a read nor a write; its device.
    fn parse(&self, line: &[u8], item: u64, devices: &mut Devices) -> Result<Option<(u32, Served)>, String> {
        let mut fields = [&[] as &[u8]; MOST];
        let count = self.separator.fields(line, &mut fields);
        if count != self.names.len() {
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            return Err(wrong_number(line, self.separator, &names, count));
        }
        let text = fields[self.operation.at];
        let operation = match text {
            text if text.eq_ignore_ascii_case(b"flush") || text.eq_ignore_ascii_case(b"F") => {
                return Ok(None);
            }
            text => named_operation(text).map_err(|why| self.refuse(self.operation, why))?,
        };
        if !matches!(operation, Operation::Read | Operation::Write) {
            return Ok(None);
        }
        let submitted_ns = self.number(&fields, self.submitted)?;
        let latency_ns = match (self.completed, self.latency) {
            (Some(column), _) => {
                let end_ns = self.number(&fields, column)?;
                end_ns.checked_sub(submitted_ns).ok_or_else(|| {
                    let early_ns = submitted_ns - end_ns;
                    self.refuse(column, format!("the completion is {early_ns} ns before its submission"))
                })?
            }
            (None, latency) => self.number(&fields, latency.expect("one of both is there"))?,
        };
        let device = match self.device {
            Some(column) => devices.index(fields[column.at]).map_err(|why| self.refuse(column, why))?,
            None => 0,
        };
        let range = (self.number(&fields, self.offset)?, self.number(&fields, self.length)?);
        Ok(Some((device, served(submitted_ns, latency_ns, operation, range, item)?)))
    }
}

/// Reads a log of named columns.
pub(super) fn read(
    mut input: Input,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let (file, progress) = (input.file.clone(), input.progress());
    let (separator, line) = header(input.head()).expect("it has been recognised");
    let columns = Columns::of(separator, line).expect("it has been recognised");
    let mut devices = if columns.device.is_some() { Devices::default() } else { Devices::single() };
    let (mut all, mut passed_over, mut is_header) = (Vec::new(), 0, true);
    while let Some((item, line)) = input.line()? {
        pulse.step(|| progress.fraction())?;
        if line.is_empty() || std::mem::take(&mut is_header) {
            continue;
        }
        let refuse = |message| WorkloadError::at(&file, Location::Line(item), message);
        match columns.parse(line, item, &mut devices).map_err(refuse)? {
            Some(found) => all.push(found),
            None => passed_over += 1,
        }
    }
    let (requests, others) = of_chosen(&file, &devices, options, all)?;
    let passed_over = passed_over + others;
    Ok(LatencyLog { file, format: "columns", requests, passed_over, notes: Vec::new() })
}
