//! Lines of columns: what most text formats are. A format says which column is
//! what, and in which unit; the reading is the same.

use std::borrow::Cow;

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Operation, Span};

use crate::calendar::calendar_ns;
use crate::input::Input;
use crate::names::letters;
use crate::readers::{DETECTION_LINES, Devices, Reader, Record};
use crate::text::{Separator, is_whole, lines, number, quote, scaled, wrong_number};
use crate::{Counts, Location, WorkloadError};

/// Most columns up to the last one that is read.
pub(super) const MOST_COLUMNS: usize = 24;
const NO_FIELDS: [&[u8]; MOST_COLUMNS] = [&[]; MOST_COLUMNS];

/// What each column of a line is, counted from 0.
#[derive(Clone)]
pub(crate) struct Table {
    pub separator: Separator,
    /// Names of all columns, for messages.
    pub names: Cow<'static, [&'static str]>,
    /// Whether further columns may follow.
    pub is_open: bool,
    pub time: usize,
    /// Nanoseconds of a whole one of its time; decimals are parts of it.
    pub tick_ns: u64,
    /// Columns that together name the device; none where there is one.
    pub device: &'static [usize],
    pub offset: usize,
    pub offset_bytes: u64,
    pub length: usize,
    pub length_bytes: u64,
    pub operation: Column,
    /// Further columns that are whole numbers.
    pub numbers: &'static [usize],
    /// Which column says what a request took; read by who asks for it only.
    pub latency: Option<Latency>,
}

/// What a column says of how long a request took.
#[derive(Clone, Copy)]
pub(crate) enum Latency {
    /// This many nanoseconds a whole one.
    Took(usize, u64),
    /// When it completed, so many nanoseconds a whole one; of a calendar without them.
    Completed(usize, Option<u64>),
}

/// Where the operation of a line is.
#[derive(Clone)]
pub(crate) enum Column {
    /// Nowhere: every line is of this one.
    Constant(Operation),
    /// In this column, written so.
    At(usize, Cow<'static, [Word]>),
    /// In this column, as the lowest bit of a hexadecimal number: 1 is a read.
    Bit(usize),
}

/// How an operation is written.
#[derive(Clone)]
pub(crate) struct Word {
    pub text: Cow<'static, str>,
    /// None of a line that is no request.
    pub operation: Option<Operation>,
}

/// One way to write an operation.
pub(super) const fn word(text: &'static str, operation: Operation) -> Word {
    Word { text: Cow::Borrowed(text), operation: Some(operation) }
}

/// A hexadecimal number without the `0x` that it may begin with.
pub(super) fn without_0x(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text)
}

/// `R` and `W`, in any case.
pub(super) const LETTERS: &[Word] = &[word("R", Operation::Read), word("W", Operation::Write)];

impl Table {
    /// How many of the first lines are of this table.
    pub(super) fn matches(&self, head: &[u8]) -> usize {
        self.matches_where(head, |_| true)
    }

    /// How many of the first lines are of this table and give such a request.
    pub(super) fn matches_where(&self, head: &[u8], is_likely: impl Fn(&Record) -> bool) -> usize {
        if self.is_named_otherwise(head) {
            return 0;
        }
        let (mut found, mut unused) = (Record::EMPTY, Devices::default());
        lines(head, DETECTION_LINES)
            .enumerate()
            .filter(|(item, line)| {
                // A header says nothing of the lines below it.
                !(*item == 0 && self.is_header(line))
                    && self.parse(line, 0, &mut found, &mut unused) == Ok(true)
                    && is_likely(&found)
            })
            .count()
    }

    /// Whether a first line names the columns.
    pub(crate) fn is_header(&self, line: &[u8]) -> bool {
        let begins_number =
            |text: &[u8]| text.first().is_none_or(|&byte| matches!(byte, b'0'..=b'9' | b'-' | b'.'));
        let mut fields = NO_FIELDS;
        self.split(line, &mut fields).is_ok()
            && ![self.time, self.offset, self.length].iter().any(|&column| begins_number(fields[column]))
    }

    /// Whether a first line gives the columns the names that they are published with, or those
    /// of this table: other case, blanks and underscores make no other name.
    pub(super) fn is_published(&self, line: &[u8]) -> bool {
        let mut fields = NO_FIELDS;
        let count = self.separator.fields(line, &mut fields);
        let is_its =
            |(name, field): (&&str, &&[u8])| letters(name).eq(letters(&String::from_utf8_lossy(field)));
        count >= self.names.len() && self.names.iter().zip(&fields).all(is_its)
    }

    /// Whether the first line names the columns, and not as those of this table: what they are
    /// is for their names to say then, as lines of the same shape may have other columns and units.
    pub(super) fn is_named_otherwise(&self, head: &[u8]) -> bool {
        lines(head, 1).any(|first| self.is_header(first) && !self.is_published(first))
    }

    /// Whether the times of the first lines are those of a calendar, which have no unit.
    pub(crate) fn is_calendar(&self, head: &[u8]) -> bool {
        let mut fields = NO_FIELDS;
        let is_time =
            |line| self.split(line, &mut fields).is_ok() && calendar_ns(fields[self.time]).is_some();
        // The first may name the columns.
        lines(head, 2).any(is_time)
    }

    /// Finds the columns up to the last that is read.
    #[inline]
    fn split<'a>(&self, line: &'a [u8], fields: &mut [&'a [u8]; MOST_COLUMNS]) -> Result<(), String> {
        let count = self.separator.fields(line, fields);
        let wanted = self.names.len();
        if count == wanted || self.is_open && count > wanted {
            return Ok(());
        }
        Err(wrong_number(line, self.separator, &self.names, count))
    }

    #[cold]
    fn refuse(&self, column: usize, why: impl std::fmt::Display) -> String {
        // Those behind what a request needs have no names here.
        let name = self.names.get(column).map_or(String::new(), |name| format!(" ({name})"));
        format!("field {}{name}: {why}", column + 1)
    }

    #[inline]
    fn number(&self, fields: &[&[u8]; MOST_COLUMNS], column: usize) -> Result<u64, String> {
        number(fields[column]).ok_or_else(|| self.refuse(column, explain(fields[column], "whole number")))
    }

    /// Puts the request of a line into `next`; whether it is one.
    #[inline]
    pub(crate) fn parse(
        &self,
        line: &[u8],
        item: u64,
        next: &mut Record,
        devices: &mut Devices,
    ) -> Result<bool, String> {
        let mut fields = NO_FIELDS;
        self.split(line, &mut fields)?;
        let time_ns = match scaled(fields[self.time], self.tick_ns) {
            Some(Some(time_ns)) => time_ns,
            Some(None) if is_whole(fields[self.time]) && number(fields[self.time]).is_none() => {
                return Err(self.refuse(self.time, explain(fields[self.time], "number")));
            }
            Some(None) => return Err(self.refuse(self.time, "too large for a time in nanoseconds")),
            None => calendar_ns(fields[self.time])
                .ok_or_else(|| self.refuse(self.time, explain(fields[self.time], "number")))?,
        };
        for &column in self.numbers {
            self.number(&fields, column)?;
        }
        let device = match *self.device {
            [] => devices.index(b"0"),
            [column] => devices.index(fields[column]),
            [first, second, ..] => devices.index_of_two(fields[first], fields[second]),
        };
        let device = device.map_err(|why| self.refuse(self.device[0], why))?;
        let operation = match &self.operation {
            Column::Constant(operation) => *operation,
            Column::Bit(column) => {
                let flags = fields[*column];
                match without_0x(flags) {
                    digits @ [.., last] if digits.iter().all(u8::is_ascii_hexdigit) => {
                        let is_odd = last & 1 == u8::from(last.is_ascii_digit());
                        if is_odd { Operation::Read } else { Operation::Write }
                    }
                    _ => {
                        let why = format!("{} is no hexadecimal number", quote(flags));
                        return Err(self.refuse(*column, why));
                    }
                }
            }
            Column::At(column, words) => match self.operation(*column, words, fields[*column])? {
                Some(operation) => operation,
                None => return Ok(false),
            },
        };
        if operation == Operation::Flush {
            self.no_length(fields[self.length])?;
            *next = Record { time_ns, item, device, operation, ..Record::EMPTY };
            return Ok(true);
        }
        let (offset, length) = (self.number(&fields, self.offset)?, self.number(&fields, self.length)?);
        let range = offset.checked_mul(self.offset_bytes).zip(length.checked_mul(self.length_bytes));
        match range {
            Some((start, bytes)) if start.checked_add(bytes).is_some() => {
                *next = Record { time_ns, item, device, operation, offset: start, bytes, response_ns: 0 };
                Ok(true)
            }
            _ => Err(self.refuse(self.offset, self.beyond(offset, length))),
        }
    }

    /// Refuses a flush with a length. It has no address either: what stands in that column is not
    /// looked at, since block layers write anything there.
    #[cold]
    fn no_length(&self, length: &[u8]) -> Result<(), String> {
        if length.is_empty() || number(length) == Some(0) {
            return Ok(());
        }
        Err(self.refuse(self.length, format!("{} is no length of a flush, which has none", quote(length))))
    }

    /// What the request of a line took that came at `time_ns`, in nanoseconds, where a
    /// column says that.
    pub(crate) fn latency_ns(&self, line: &[u8], time_ns: u64) -> Result<Option<u64>, String> {
        let Some(latency) = self.latency else { return Ok(None) };
        let mut fields = NO_FIELDS;
        self.split(line, &mut fields)?;
        let (Latency::Took(column, _) | Latency::Completed(column, _)) = latency;
        let text = fields[column];
        let value = match latency {
            Latency::Took(_, tick_ns) | Latency::Completed(_, Some(tick_ns)) => scaled(text, tick_ns),
            Latency::Completed(_, None) => calendar_ns(text).map(Some),
        };
        match (value, latency) {
            (Some(Some(latency_ns)), Latency::Took(..)) => Ok(Some(latency_ns)),
            (Some(Some(end_ns)), Latency::Completed(..)) => end_ns
                .checked_sub(time_ns)
                .map(Some)
                .ok_or_else(|| self.refuse(column, format!("{} is before the request came", quote(text)))),
            (Some(None), _) => Err(self.refuse(column, format!("{} is too large", quote(text)))),
            (None, _) => Err(self.refuse(column, explain(text, "number"))),
        }
    }

    /// The same with another unit of its times, and of what requests took.
    pub(crate) fn in_ticks(self, tick_ns: u64) -> Table {
        let latency = match self.latency {
            Some(Latency::Took(column, _)) => Some(Latency::Took(column, tick_ns)),
            other => other,
        };
        Table { tick_ns, latency, ..self }
    }

    #[cold]
    fn beyond(&self, offset: u64, length: u64) -> String {
        let names = (self.names[self.offset], self.names[self.length]);
        if self.offset_bytes == 512 {
            return format!("sector {offset} and a length of {length} lie beyond any 64-bit address");
        }
        format!("{} and {} lie beyond any 64-bit address", names.0, names.1)
    }

    #[inline]
    fn operation(&self, column: usize, words: &[Word], text: &[u8]) -> Result<Option<Operation>, String> {
        if let Some(word) = words.iter().find(|word| text.eq_ignore_ascii_case(word.text.as_bytes())) {
            return Ok(word.operation);
        }
        Err(self.refuse(column, unknown_operation(words, text)))
    }
}

/// The sentence that refuses the text of an operation.
#[cold]
pub(super) fn unknown_operation(words: &[Word], text: &[u8]) -> String {
    let known = words.iter().filter(|word| !word.text.is_empty());
    let is_number = words.iter().any(|word| number(word.text.as_bytes()).is_some());
    if is_number {
        let name = |operation| format!("{operation:?}").to_lowercase();
        let parts: Vec<String> = known
            .filter_map(|word| Some((&word.text, word.operation?)))
            .map(|(text, operation)| format!("{text} a {}", name(operation)))
            .collect();
        return format!(
            "unknown operation {}; {}",
            quote(text),
            parts.join(" and ").replacen(" a ", " is a ", 1)
        );
    }
    if is_whole(text) {
        return format!(
            "unknown operation {}; read=… and write=… among the columns say how they are written, as in read=0,write=1",
            quote(text)
        );
    }
    // Of a single letter any other is one change away.
    if text.len() == 1 {
        let known: Vec<&str> = known.map(|word| &*word.text).collect();
        return format!("unknown operation {}, expected one of {}", quote(text), known.join(", "));
    }
    let hint = did_you_mean(&String::from_utf8_lossy(text), known.map(|word| &*word.text));
    format!("unknown operation {}{hint}", quote(text))
}

/// Why a text is not a number of this kind.
#[cold]
pub(crate) fn explain(text: &[u8], kind: &str) -> String {
    match text {
        [b'-', rest @ ..] if is_whole(rest) => format!("{} is negative", quote(text)),
        [b'-', rest @ ..] if kind == "number" && scaled(rest, 1).is_some() => {
            format!("{} is negative", quote(text))
        }
        _ if is_whole(text) => format!("{} is too large", quote(text)),
        _ if kind == "number" => format!("{} is not a whole number or one with decimals", quote(text)),
        _ => format!("{} is not a {kind}", quote(text)),
    }
}

/// A reader of a table.
pub(super) struct TableReader {
    file: String,
    input: Input,
    table: Table,
    devices: Devices,
    notes: Vec<String>,
    /// Whether its times are numbers, of which somebody may set the unit.
    has_ticks: bool,
    /// Whether the unit of its times is part of a description of columns.
    is_unit_described: bool,
}

impl TableReader {
    pub(super) fn boxed(input: Input, table: Table, notes: Vec<String>) -> Box<Self> {
        let file = input.file.clone();
        let has_ticks = !table.is_calendar(input.head());
        Box::new(TableReader {
            file,
            input,
            table,
            has_ticks,
            devices: Devices::default(),
            notes,
            is_unit_described: false,
        })
    }

    /// A reader of a table that somebody described, its unit too.
    pub(super) fn described(input: Input, table: Table, notes: Vec<String>) -> Box<dyn Reader> {
        let mut reader = Self::boxed(input, table, notes);
        reader.is_unit_described = true;
        reader
    }
}

impl Reader for TableReader {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        while let Some((item, line)) = self.input.line()? {
            // What names the columns is passed over, as no line of the trace is.
            if item == 1 && !line.is_empty() && self.table.is_header(line) {
                continue;
            }
            if line.is_empty() {
                counts.not_io += 1;
                continue;
            }
            match self.table.parse(line, item, next, &mut self.devices) {
                Ok(true) => {
                    if self.table.latency.is_some() {
                        // A replay does without it: what is none is not there.
                        let latency_ns = self.table.latency_ns(line, next.time_ns).ok().flatten();
                        next.response_ns = latency_ns.unwrap_or(0);
                    }
                    return Ok(true);
                }
                Ok(false) => counts.not_io += 1,
                Err(message) => return Err(WorkloadError::at(&self.file, Location::Line(item), message)),
            }
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn has_responses(&self) -> bool {
        self.table.latency.is_some()
    }

    fn tick_ns(&self) -> Option<u64> {
        self.has_ticks.then_some(self.table.tick_ns)
    }

    fn tick_setting(&self, unit: Span) -> String {
        if self.is_unit_described {
            format!("unit={unit} among its columns")
        } else {
            format!("time_unit = \"{unit}\"")
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
