//! Any text of columns whose first line names them, as `crate::names` knows them. Columns of
//! other names are passed over.

use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, Served, of_chosen, served};
use crate::calendar::{calendar_ns, no_calendar_time};
use crate::error::Pulse;
use crate::input::Input;
use crate::names::{self, Column, MOST, Meaning, find, header, meaning, missing};
use crate::readers::{Devices, NamedColumns, explain, is_published, named_operation};
use crate::text::{Separator, quote, scaled, wrong_number};
use crate::{Location, Stopped, WorkloadError};

/// Which column is what.
pub(super) struct Columns {
    /// None of a table that is no text.
    separator: Option<Separator>,
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
    header(head).is_some_and(|(separator, names)| Columns::of_text(separator, names).is_ok())
}

/// What is missing, where the first line names most of what is needed.
pub(super) fn nearly(head: &[u8]) -> Option<String> {
    let (separator, names) = header(head)?;
    // Other formats, too, name the device.
    let is_known = |name: &&String| meaning(name).is_some_and(|(meaning, _)| meaning != Meaning::Device);
    let known = names.iter().filter(is_known).count();
    Columns::of_text(separator, names).err().filter(|_| known > 3 && !is_published(head))
}

impl Columns {
    /// Those of a table that is no text.
    pub(super) fn of_rows(named: &NamedColumns) -> Result<Columns, String> {
        let columns = Columns::of(None, &named.lower, |wanted| named.time(wanted))?;
        Ok(Columns { names: named.names.clone(), ..columns })
    }

    fn of_text(separator: Separator, names: Vec<String>) -> Result<Columns, String> {
        Columns::of(Some(separator), &names, |wanted| find(&names, wanted))
    }

    /// The devices of a log with these columns, none of which has been met.
    pub(super) fn devices(&self) -> Devices {
        if self.device.is_some() { Devices::default() } else { Devices::single() }
    }

    fn of(
        separator: Option<Separator>,
        names: &[String],
        time: impl Fn(Meaning) -> Result<Option<Column>, String>,
    ) -> Result<Columns, String> {
        let needed = |found: Result<Option<Column>, String>, known: &[&str]| {
            found?.ok_or_else(|| missing(names, known))
        };
        let operation = needed(find(names, Meaning::Operation), &["operation"])?;
        let offset = needed(find(names, Meaning::Offset), &["offset", "lba"])?;
        let length = needed(find(names, Meaning::Length), &["bytes", "sectors"])?;
        let known = ["submitted_ns", "submitted_us", "submitted_ms"];
        let submitted = needed(time(Meaning::Submitted), &known)?;
        let (completed, latency) = (time(Meaning::Completed)?, time(Meaning::Latency)?);
        if completed.is_none() && latency.is_none() {
            return Err("no column latency_ns or completed_ns (or in _us, _ms, _s): without latencies \
                        nothing can be scored"
                .into());
        }
        let (names, device) = (names.to_vec(), names::device(names));
        Ok(Columns { separator, names, operation, offset, length, submitted, completed, latency, device })
    }

    fn refuse(&self, column: Column, why: impl std::fmt::Display) -> String {
        let name = &self.names[column.at];
        match self.separator {
            Some(_) => format!("field {} ({name}): {why}", column.at + 1),
            None => format!("column {name}: {why}"),
        }
    }

    fn number(&self, fields: &[&[u8]; MOST], column: Column) -> Result<u64, String> {
        let text = fields[column.at];
        let Some(scale) = column.scale else {
            return calendar_ns(text)
                .ok_or_else(|| self.refuse(column, no_calendar_time(text, &self.names[column.at])));
        };
        match scaled(text, scale) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(self.refuse(column, format!("{} is too large", quote(text)))),
            None => Err(self.refuse(column, explain(text, "number"))),
        }
    }

    /// The request of a line, none of what is neither a read nor a write; its device.
    fn parse(&self, line: &[u8], item: u64, devices: &mut Devices) -> Result<Option<(u32, Served)>, String> {
        let mut fields = [&[] as &[u8]; MOST];
        let separator = self.separator.expect("lines have one");
        let count = separator.fields(line, &mut fields);
        if count != self.names.len() {
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            return Err(wrong_number(line, separator, &names, count));
        }
        self.request(&fields, item, devices)
    }

    /// The same of fields, one a column.
    pub(super) fn request(
        &self,
        fields: &[&[u8]; MOST],
        item: u64,
        devices: &mut Devices,
    ) -> Result<Option<(u32, Served)>, String> {
        let operation = named_operation(&self.names[self.operation.at], fields[self.operation.at])
            .map_err(|why| self.refuse(self.operation, why))?;
        if !matches!(operation, Operation::Read | Operation::Write) {
            return Ok(None);
        }
        let submitted_ns = self.number(fields, self.submitted)?;
        let latency_ns = match (self.completed, self.latency) {
            (Some(column), _) => {
                let end_ns = self.number(fields, column)?;
                end_ns.checked_sub(submitted_ns).ok_or_else(|| {
                    let early_ns = submitted_ns - end_ns;
                    self.refuse(column, format!("the completion is {early_ns} ns before its submission"))
                })?
            }
            (None, latency) => self.number(fields, latency.expect("one of both is there"))?,
        };
        let device = match self.device {
            Some(column) => devices.index(fields[column.at]).map_err(|why| self.refuse(column, why))?,
            None => 0,
        };
        let range = (self.number(fields, self.offset)?, self.number(fields, self.length)?);
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
    let (separator, names) = header(input.head()).expect("it has been recognised");
    let columns = Columns::of_text(separator, names).expect("it has been recognised");
    let mut devices = columns.devices();
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
