//! What columns are by their names in the first line of a text, such as
//! `submitted_us,operation,lba,sectors,latency_us`, separated by commas, semicolons or
//! tabs. Times are in ns, us, ms or s, as their names end, or of a calendar where they do not say;
//! `offset`, `bytes`, `length` and `size` are bytes, `lba` and `sectors` have 512.

use crate::text::{Separator, lines};

/// Most columns up to the last that is read.
pub(crate) const MOST: usize = 64;
const SECTOR: u64 = 512;

/// What a column may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Operation,
    Offset,
    Length,
    Submitted,
    Completed,
    Latency,
    Device,
}

/// Names without a unit, what they mean, and bytes of a whole one.
const NAMES: [(&str, Meaning, u64); 14] = [
    ("operation", Meaning::Operation, 1),
    ("op", Meaning::Operation, 1),
    ("rw", Meaning::Operation, 1),
    ("offset", Meaning::Offset, 1),
    ("offset_bytes", Meaning::Offset, 1),
    ("lba", Meaning::Offset, SECTOR),
    ("sector", Meaning::Offset, SECTOR),
    ("bytes", Meaning::Length, 1),
    ("length", Meaning::Length, 1),
    ("length_bytes", Meaning::Length, 1),
    ("size", Meaning::Length, 1),
    ("size_bytes", Meaning::Length, 1),
    ("sectors", Meaning::Length, SECTOR),
    ("device", Meaning::Device, 1),
];
/// Names before a unit of time.
const TIMES: [(&str, Meaning); 6] = [
    ("submitted", Meaning::Submitted),
    ("time", Meaning::Submitted),
    ("timestamp", Meaning::Submitted),
    ("ts", Meaning::Submitted),
    ("completed", Meaning::Completed),
    ("latency", Meaning::Latency),
];
const UNITS: [(&str, u64); 4] = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];
/// Names of times of a calendar, unless a column with a unit says the same.
const CALENDAR: [(&str, Meaning); 4] = [
    ("submitted", Meaning::Submitted),
    ("time", Meaning::Submitted),
    ("timestamp", Meaning::Submitted),
    ("completed", Meaning::Completed),
];

/// A column that is read.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub at: usize,
    /// Nanoseconds or bytes of a whole one; none of times of a calendar.
    pub scale: Option<u64>,
}

/// What separates the names in a first line; none where there is but one.
pub(crate) fn separator(first: &[u8]) -> Option<Separator> {
    let separators = [(b',', Separator::Comma), (b';', Separator::Semicolon), (b'\t', Separator::Tab)];
    separators.into_iter().find(|(byte, _)| first.contains(byte)).map(|(_, separator)| separator)
}

/// The names in the first line, in small letters, and what separates them: all of them, of
/// which those beyond [`MOST`] have no meaning.
pub(crate) fn header(head: &[u8]) -> Option<(Separator, Vec<String>)> {
    let first = lines(head, 1).next()?;
    let separator = separator(first)?;
    let mut fields = [&[] as &[u8]; MOST];
    let count = separator.fields(first, &mut fields);
    let mut names: Vec<String> =
        fields.iter().take(count).map(|field| String::from_utf8_lossy(field).to_lowercase()).collect();
    names.resize(count, String::new());
    Some((separator, names))
}

/// What a column of this name is, and how much a whole one in it.
pub(crate) fn meaning(name: &str) -> Option<(Meaning, Option<u64>)> {
    if let Some((_, meaning, scale)) = NAMES.iter().find(|(known, ..)| *known == name) {
        return Some((*meaning, Some(*scale)));
    }
    let of_unit = |(unit, ns): &(&str, u64)| {
        let stem = name.strip_suffix(unit)?;
        TIMES.iter().find(|(known, _)| *known == stem).map(|(_, meaning)| (*meaning, Some(*ns)))
    };
    let of_calendar =
        || CALENDAR.iter().find(|(known, _)| *known == name).map(|(_, meaning)| (*meaning, None));
    UNITS.iter().find_map(of_unit).or_else(of_calendar)
}

/// The column that is this, if there is one.
///
/// # Errors
/// A sentence where there are several.
pub(crate) fn find(names: &[String], wanted: Meaning) -> Result<Option<Column>, String> {
    let of = |is_calendar: bool| {
        names.iter().enumerate().filter_map(move |(at, name)| match meaning(name) {
            Some((meaning, scale)) if meaning == wanted && scale.is_none() == is_calendar => {
                Some(Column { at, scale })
            }
            _ => None,
        })
    };
    let mut found = of(false).peekable();
    let mut of_calendar = of(true);
    let pair = if found.peek().is_some() {
        (found.next(), found.next())
    } else {
        (of_calendar.next(), of_calendar.next())
    };
    match pair {
        (Some(one), Some(other)) => {
            Err(format!("the columns {} and {} say the same", names[one.at], names[other.at]))
        }
        (one, _) => Ok(one),
    }
}
