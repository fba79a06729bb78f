//! What columns are by their names in the first line of a text, such as
//! `submitted_us,operation,lba,sectors,latency_us`, separated by commas, semicolons or
//! tabs. Times are in ns, us, ms or s, as their names end, or of a calendar where they do not say;
//! `offset`, `bytes`, `length` and `size` are bytes, `lba` and `sectors` have 512.

use flashkeel_config::did_you_mean;

use crate::text::{Separator, lines, listed};

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
const NAMES: [(&str, Meaning, u64); 21] = [
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
    ("device_id", Meaning::Device, 1),
    ("volume", Meaning::Device, 1),
    ("volume_id", Meaning::Device, 1),
    ("disk", Meaning::Device, 1),
    ("disk_id", Meaning::Device, 1),
    ("lun", Meaning::Device, 1),
    ("dev", Meaning::Device, 1),
];
/// Names that count where no other says the same. Other programs have a `type` or an `opcode`
/// that is something else.
const FALLBACKS: [(&str, Meaning, u64); 7] = [
    ("type", Meaning::Operation, 1),
    ("opcode", Meaning::Operation, 1),
    ("io_type", Meaning::Operation, 1),
    (IS_WRITE, Meaning::Operation, 1),
    ("len", Meaning::Length, 1),
    ("nr_sector", Meaning::Length, SECTOR),
    ("nr_sectors", Meaning::Length, SECTOR),
];
/// A column of 1 or true for writes and 0 or false for reads.
const IS_WRITE: &str = "is_write";
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
const CALENDAR: [(&str, Meaning); 5] = [
    ("submitted", Meaning::Submitted),
    ("time", Meaning::Submitted),
    ("timestamp", Meaning::Submitted),
    ("ts", Meaning::Submitted),
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

/// The letters and digits of a name, small: what is the same in `IOType` and `io_type`.
pub(crate) fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

fn is_same(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

/// What a column of this name is, and how much a whole one in it.
pub(crate) fn meaning(name: &str) -> Option<(Meaning, Option<u64>)> {
    let mut named = NAMES.iter().chain(&FALLBACKS);
    if let Some((_, meaning, scale)) = named.find(|(known, ..)| is_same(known, name)) {
        return Some((*meaning, Some(*scale)));
    }
    // As in `Time (us)`.
    let is_between = |c: char| !c.is_alphanumeric();
    let words: Vec<&str> = name.split(is_between).filter(|word| !word.is_empty()).collect();
    let name = words.join("_").to_lowercase();
    let of_unit = |(unit, ns): &(&str, u64)| {
        let stem = name.strip_suffix(unit)?;
        TIMES.iter().find(|(known, _)| *known == stem).map(|(_, meaning)| (*meaning, Some(*ns)))
    };
    let of_calendar =
        || CALENDAR.iter().find(|(known, _)| *known == name).map(|(_, meaning)| (*meaning, None));
    UNITS.iter().find_map(of_unit).or_else(of_calendar)
}

/// Whether a name counts only where no other says the same.
pub(crate) fn is_fallback(name: &str) -> bool {
    FALLBACKS.iter().any(|(known, ..)| is_same(known, name))
}

/// Whether a column of this name has 1 or true for writes and 0 or false for reads.
pub(crate) fn is_flag_of_writes(name: &str) -> bool {
    is_same(IS_WRITE, name)
}

/// The column that names the device: that of the name which says so most plainly, as a volume
/// may lie beside the disk that it is on.
pub(crate) fn device(names: &[String]) -> Option<Column> {
    let plainly = |name: &str| NAMES.iter().position(|&(known, ..)| is_same(known, name));
    let is_it = |name: &str| meaning(name).is_some_and(|(meaning, _)| meaning == Meaning::Device);
    let found = names.iter().enumerate().filter(|(_, name)| is_it(name));
    found.min_by_key(|(_, name)| plainly(name)).map(|(at, _)| Column { at, scale: Some(1) })
}

/// A note of the columns that nobody reads, if there are any.
pub(crate) fn unread(names: &[String]) -> Option<String> {
    let device = device(names).map(|column| column.at);
    let is_unread = |(at, name): &(usize, &String)| match meaning(name) {
        Some((Meaning::Device, _)) => Some(*at) != device,
        Some((meaning, _)) if is_fallback(name) => {
            find(names, meaning).is_ok_and(|found| found.is_some_and(|column| column.at != *at))
        }
        // The last is the number of a row, as pandas writes it.
        known => known.is_none() && !name.is_empty() && *name != "__index_level_0__",
    };
    let unread: Vec<&str> =
        names.iter().enumerate().filter(is_unread).map(|(_, name)| name.as_str()).collect();
    (!unread.is_empty()).then(|| format!("columns that are not read: {}", listed(unread.into_iter())))
}

/// The column that is this, and not the device, if there is one.
///
/// # Errors
/// A sentence where there are several.
pub(crate) fn find(names: &[String], wanted: Meaning) -> Result<Option<Column>, String> {
    match best(names, wanted) {
        (Some(one), Some(other)) => Err(same(&names[one.at], &names[other.at])),
        (one, _) => Ok(one),
    }
}

/// The sentence about two columns that are the same.
pub(crate) fn same(one: &str, other: &str) -> String {
    format!("the columns {one} and {other} say the same")
}

/// The column that says most plainly that it is this, and another that does so as plainly.
pub(crate) fn best(names: &[String], wanted: Meaning) -> (Option<Column>, Option<Column>) {
    let is_in_sectors = |name: &String| meaning(name) == Some((Meaning::Offset, Some(SECTOR)));
    let rank = |name: &String, scale: Option<u64>| match scale {
        Some(_) if is_fallback(name) => 2,
        Some(_) => 0,
        None => 1,
    };
    let of = |wanted_rank: u32| {
        names.iter().enumerate().filter_map(move |(at, name)| match meaning(name) {
            // Beside sectors, a `len` may count sectors, too.
            Some((Meaning::Length, Some(1))) if is_fallback(name) && names.iter().any(is_in_sectors) => None,
            Some((meaning, scale)) if meaning == wanted && rank(name, scale) == wanted_rank => {
                Some(Column { at, scale })
            }
            _ => None,
        })
    };
    let mut best = (0..=2).map(of).map(|mut found| (found.next(), found.next()));
    best.find(|(first, _)| first.is_some()).unwrap_or((None, None))
}

/// The sentence about a column that is not there, which messages call by the names that are `known`.
pub(crate) fn missing(names: &[String], known: &[&str]) -> String {
    let hint = known.iter().find_map(|known| {
        let near = names.iter().find(|name| !did_you_mean(name, [*known]).is_empty())?;
        Some(format!("; is that {near:?}?"))
    });
    format!("no column {}{}", known.join(" or "), hint.unwrap_or_default())
}
