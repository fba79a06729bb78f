//! Any other text of columns, described in one line, as in
//! `columns = "time=1,unit=us,offset=3,length=4,op=2"`.
//!
//! | key | value |
//! |---|---|
//! | `time`, `offset`, `length` | the number of the column, from 1 |
//! | `unit` | what a whole one of the time is: `s`, `ms`, `us`, `ns` or a span such as `100ns`; none of times of a calendar |
//! | `op` | the number of its column, or `read` or `write` for all lines |
//! | `read`, `write` | how an operation is written, such as `read=0,write=1`; letters and words go without |
//! | `device` | the number of its column |
//! | `offset_unit`, `length_unit` | bytes of a whole one, such as 512; 1 if not given |
//! | `separator` | `comma`, `semicolon`, `tab` or `space`; found from the first line if not given |

use std::borrow::Cow;

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Operation, Span};

use super::detection::shaped;
use super::table::{Column, Latency, MOST_COLUMNS, Table, TableReader, Word, unknown_operation, word};
use crate::input::Input;
use crate::names::{self, Meaning};
use crate::readers::{Format, Reader, ReaderOptions};
use crate::text::{Separator, lines};
use crate::{Location, WorkloadError};

/// The first line of the files that we write in this format.
pub(crate) const COLUMN_NAMES: &str = "time_ns,operation,offset,bytes";

/// A description of them, for messages.
pub(super) const EXAMPLE: &str = "time=1,unit=us,offset=3,length=4,op=2";

/// What is wrong where nobody says what a whole one of the times is, and what to do.
pub(super) const NO_UNIT: &str = "unit is missing: s, ms, us, ns or a span such as 100ns";
pub(super) const UNIT_REMEDY: &str = "time_unit = \"1us\" says it, as does a name such as time_us";

const KEY: &str = "workload.source.columns";
const KEYS: [&str; 11] = [
    "time",
    "unit",
    "offset",
    "length",
    "op",
    "read",
    "write",
    "device",
    "offset_unit",
    "length_unit",
    "separator",
];
const LETTERS: &[Word] = &[
    word("R", Operation::Read),
    word("W", Operation::Write),
    word("read", Operation::Read),
    word("write", Operation::Write),
    word("D", Operation::Trim),
    word("T", Operation::Trim),
    word("trim", Operation::Trim),
    word("discard", Operation::Trim),
    word("Z", Operation::WriteZeroes),
    word("write_zeroes", Operation::WriteZeroes),
    word("F", Operation::Flush),
    word("flush", Operation::Flush),
];
/// How a column that says whether something is a write says it.
const FLAGS: &[Word] = &[
    word("0", Operation::Read),
    word("1", Operation::Write),
    word("false", Operation::Read),
    word("true", Operation::Write),
];

/// How operations are written in a column of this name.
fn words_of(name: &str) -> &'static [Word] {
    if names::is_flag_of_writes(name) { FLAGS } else { LETTERS }
}

/// The operation that a text stands for in a column of this name.
pub(crate) fn operation(name: &str, text: &[u8]) -> Result<Operation, String> {
    let words = words_of(name);
    match words.iter().find(|word| text.eq_ignore_ascii_case(word.text.as_bytes())) {
        Some(Word { operation: Some(operation), .. }) => Ok(*operation),
        _ => Err(unknown_operation(words, text)),
    }
}

/// What messages call a column whose meaning nobody has said.
const UNUSED: &str = "unused";
/// The device's column, for the table: one of these by its number.
static SINGLE: [[usize; 1]; MOST_COLUMNS] = {
    let mut columns = [[0]; MOST_COLUMNS];
    let mut at = 0;
    while at < MOST_COLUMNS {
        columns[at] = [at];
        at += 1;
    }
    columns
};

pub(super) const FORMAT: Format = Format {
    name: "columns",
    shape: "columns as the setting `columns` describes them",
    matches: |_, head| {
        let is_named = by_names(head).is_some_and(|found| found.is_ok()) && !super::is_published(head);
        usize::from(is_named) * super::DETECTION_LINES
    },
    open,
};

/// A description by the first line, as far as that names columns, as that of the files that we
/// write does.
///
/// # Errors
/// A sentence that says what it does not name.
pub(super) fn by_names(head: &[u8]) -> Option<Result<String, String>> {
    let (separator, names) = names::header(head)?;
    Some(described_by(separator, &names))
}

fn described_by(separator: Separator, names: &[String]) -> Result<String, String> {
    let needed =
        |wanted, known: &[&str]| names::find(names, wanted)?.ok_or_else(|| names::missing(names, known));
    let operation = needed(Meaning::Operation, &["operation"])?;
    let offset = needed(Meaning::Offset, &["offset", "lba"])?;
    let length = needed(Meaning::Length, &["bytes", "sectors"])?;
    let time = needed(Meaning::Submitted, &["time_ns", "time_us", "time_ms", "time_s"])?;
    let device = names::device(names);
    let mut used = [time, operation, offset, length].into_iter().chain(device);
    if let Some(column) = used.find(|column| column.at >= MOST_COLUMNS) {
        let (name, at) = (&names[column.at], column.at + 1);
        return Err(format!("{name} is column {at}; the first {MOST_COLUMNS} are read"));
    }
    let mut text = format!("separator={}", separator.word());
    for (key, column) in [("time", time), ("op", operation), ("offset", offset), ("length", length)] {
        text += &format!(",{key}={}", column.at + 1);
    }
    if let Some(ns) = time.scale {
        text += &format!(",unit={ns}ns");
    }
    for (key, bytes) in [("offset_unit", offset.scale), ("length_unit", length.scale)] {
        text += &format!(",{key}={}", bytes.unwrap_or(1));
    }
    if let Some(device) = device {
        text += &format!(",device={}", device.at + 1);
    }
    Ok(text)
}

/// What says how long requests took, where a column is named so.
fn latency_by_names(names: &[String]) -> Option<Latency> {
    let find = |wanted| names::find(names, wanted).ok().flatten().filter(|column| column.at < MOST_COLUMNS);
    // As in a log of latencies, which times say more than what was made of them.
    match (find(Meaning::Completed), find(Meaning::Latency)) {
        (Some(column), _) => Some(Latency::Completed(column.at, column.scale)),
        (None, Some(column)) => column.scale.map(|ns| Latency::Took(column.at, ns)),
        (None, None) => None,
    }
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    options.tick_ns(1)?;
    let refuse = |why: String| WorkloadError::key(KEY, why);
    let text = match (options.columns.clone(), by_names(input.head())) {
        (Some(text), _) | (None, Some(Ok(text))) => text,
        (None, why) => {
            let why = why.and_then(Result::err).map(|why| format!("; by its first line {why}"));
            return Err(refuse(format!(
                "the format `columns` needs a description of them, such as \"{EXAMPLE}\"{}",
                why.unwrap_or_default()
            )));
        }
    };
    let table = describe(&text, options.time_unit, input.head()).map_err(|why| match options.columns {
        Some(_) => refuse(why),
        None if options.time_unit.is_some() => {
            let message = "the column of times says by its name what its unit is; give no other";
            WorkloadError::key("workload.source.time_unit", message)
        }
        None => {
            let but = shaped(&input.file, input.head()).unwrap_or_default();
            WorkloadError::at(&input.file, Location::Line(1), format!("{why}; {UNIT_REMEDY}{but}"))
        }
    })?;
    // What somebody has described is read as they say.
    let names = names::header(input.head()).filter(|_| options.columns.is_none()).map(|(_, names)| names);
    let table = match (&names, table.operation) {
        (Some(names), Column::At(at, _)) => {
            let operation = Column::At(at, Cow::Borrowed(words_of(&names[at])));
            options.asked(Table { latency: latency_by_names(names), operation, ..table })
        }
        (_, operation) => Table { operation, ..table },
    };
    let notes = names.and_then(|names| names::unread(&names)).into_iter().collect();
    if options.time_unit.is_some() {
        return Ok(TableReader::boxed(input, table, notes));
    }
    Ok(TableReader::described(input, table, notes))
}

/// The values of a description, each at most once.
struct Description<'a> {
    values: [Option<&'a str>; KEYS.len()],
}

impl<'a> Description<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut values = [None; KEYS.len()];
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{part:?} is not KEY=VALUE; the keys are {}", KEYS.join(", ")))?;
            let (key, value) = (key.trim(), value.trim());
            let index = KEYS.iter().position(|known| *known == key).ok_or_else(|| {
                format!("unknown key {key:?}; the keys are {}{}", KEYS.join(", "), did_you_mean(key, KEYS))
            })?;
            if values[index].replace(value).is_some() {
                return Err(format!("{key} is given twice"));
            }
        }
        Ok(Description { values })
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        KEYS.iter().position(|known| *known == key).and_then(|index| self.values[index])
    }

    /// A column, from 0.
    fn column(&self, key: &str) -> Result<Option<usize>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.parse::<usize>() {
            Ok(number @ 1..=MOST_COLUMNS) => Ok(Some(number - 1)),
            _ => Err(format!("{key}={value}: a column is a number from 1 to {MOST_COLUMNS}")),
        }
    }

    fn needed(&self, key: &str) -> Result<usize, String> {
        self.column(key)?.ok_or_else(|| format!("{key} is missing: the number of its column, as in {key}=1"))
    }

    fn bytes(&self, key: &str) -> Result<u64, String> {
        match self.get(key).map(str::parse::<u64>) {
            None => Ok(1),
            Some(Ok(bytes @ 1..=1_073_741_824)) => Ok(bytes),
            Some(_) => Err(format!("{key} is a number of bytes, such as 512")),
        }
    }
}

/// The table of a description.
fn describe(text: &str, time_unit: Option<Span>, head: &[u8]) -> Result<Table, String> {
    let description = Description::parse(text)?;
    let [time, offset, length] = ["time", "offset", "length"].map(|key| description.needed(key));
    let (time, offset, length) = (time?, offset?, length?);
    let device = description.column("device")?;
    let operation = match description.get("op") {
        None => return Err("op is missing: the number of its column, or read or write for all lines".into()),
        Some("read") => Column::Constant(Operation::Read),
        Some("write") => Column::Constant(Operation::Write),
        Some(_) => Column::At(description.needed("op")?, words(&description)?),
    };
    let mut names = Vec::new();
    let mut name = |column: usize, name: &'static str| {
        if names.len() <= column {
            names.resize(column + 1, UNUSED);
        }
        let is_free = std::mem::replace(&mut names[column], name) == UNUSED;
        if is_free { Ok(()) } else { Err(format!("column {} is two things", column + 1)) }
    };
    name(time, "time")?;
    name(offset, "offset")?;
    name(length, "length")?;
    if let Column::At(column, _) = operation {
        name(column, "op")?;
    }
    if let Some(column) = device {
        name(column, "device")?;
    }
    let tick_ns = match (description.get("unit"), time_unit) {
        (Some(unit), None) => tick_ns(unit)?,
        (None, Some(unit)) => unit.as_ns(),
        (Some(_), Some(_)) => return Err("unit and time_unit say the same; give one".into()),
        // Times of a calendar have none.
        _ => 1,
    };
    let table = Table {
        separator: separator(description.get("separator"), head)?,
        names: Cow::Owned(names),
        is_open: true,
        time,
        tick_ns,
        device: device.map_or(&[], |column| &SINGLE[column]),
        offset,
        offset_bytes: description.bytes("offset_unit")?,
        length,
        length_bytes: description.bytes("length_unit")?,
        operation,
        numbers: &[],
        latency: None,
    };
    if description.get("unit").is_none() && time_unit.is_none() && !table.is_calendar(head) {
        return Err(NO_UNIT.into());
    }
    Ok(table)
}

/// How operations are written.
fn words(description: &Description<'_>) -> Result<Cow<'static, [Word]>, String> {
    let of = |key, operation| {
        description
            .get(key)
            .map(|text| Word { text: Cow::Owned(text.to_owned()), operation: Some(operation) })
    };
    let own: Vec<Word> =
        [of("read", Operation::Read), of("write", Operation::Write)].into_iter().flatten().collect();
    if let [read, write] = &own[..]
        && read.text.eq_ignore_ascii_case(&write.text)
    {
        return Err(format!("read={} and write={} are the same", read.text, write.text));
    }
    Ok(if own.is_empty() { Cow::Borrowed(LETTERS) } else { Cow::Owned(own) })
}

fn tick_ns(unit: &str) -> Result<u64, String> {
    let is_span = unit.starts_with(|first: char| first.is_ascii_digit());
    let text = if is_span { unit.to_owned() } else { format!("1{unit}") };
    match Span::parse(&text) {
        Ok(Span(tick_ns @ 1..)) => Ok(tick_ns),
        _ => Err(format!("unit={unit}: it is s, ms, us, ns or a span such as 100ns")),
    }
}

fn separator(given: Option<&str>, head: &[u8]) -> Result<Separator, String> {
    Ok(match given {
        Some(given) => Separator::ALL
            .into_iter()
            .find(|separator| separator.word() == given)
            .ok_or_else(|| format!("separator={given}: it is comma, semicolon, tab or space"))?,
        None => {
            let first = lines(head, 1).next().unwrap_or_default();
            let has = |byte: u8| first.contains(&byte);
            match () {
                () if has(b',') => Separator::Comma,
                () if has(b';') => Separator::Semicolon,
                () => Separator::Space,
            }
        }
    })
}
