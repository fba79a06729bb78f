//! Parquet files, one row a request: `time_ns`, `operation` (`R`, `W`, `T`, `Z`, `F` or in
//! full), `offset` and `bytes`, `device` where there are several, and `latency_ns`, which a
//! replay does not use; or the names that `crate::names` knows. Times are numbers, with decimals or
//! without, timestamps, durations, or text.
//!
//! The columns are read side by side, some thousand rows at a time, so that a
//! file of any length takes the memory of a few of its pages. Its index stands at
//! its end: it cannot come through a pipe, nor packed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flashkeel_config::did_you_mean;
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::columns::{NO_UNIT, UNIT_REMEDY};
use crate::input::{Compression, Input, Progress};
use crate::names::{self, Column, Meaning};
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record};
use crate::text::listed;
use crate::{Basis, Counts, Location, WorkloadError};

mod columns;
mod durations;
mod rows;
mod times;

pub(crate) use columns::Named;
use columns::{Kind, check};
use rows::{Chosen, Lane, Response, Rows, Wrong};

/// The columns of a trace as we call them; all but the last are needed.
const COLUMNS: [&str; 5] = ["time_ns", "operation", "offset", "bytes", "device"];
const NEEDED: usize = 4;

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    shape: "a Parquet file with the columns time_ns, operation, offset, bytes and perhaps device",
    matches: |_, head| usize::from(head.starts_with(b"PAR1")) * DETECTION_LINES,
    open,
};

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let reader = open_file(&input)?;
    let file = input.file.clone();
    let metadata = reader.metadata().file_metadata();
    let Choice { chosen, has_devices, response, tick_ns, notes } = Choice::of(&file, metadata, options)?;
    let rows_in_all = u64::try_from(metadata.num_rows()).unwrap_or(0);
    let devices = if has_devices {
        Devices::default()
    } else if says(metadata, Basis::KEY, Basis::Synthetic.label()) {
        Devices::synthetic()
    } else {
        Devices::single()
    };
    Ok(Box::new(Parquet {
        progress: input.progress(),
        file,
        reader,
        chosen,
        rows_in_all,
        group: 0,
        lanes: Vec::new(),
        rows: Rows::default(),
        wrong: Wrong::default(),
        at: 0,
        read: 0,
        item: 0,
        has_devices,
        response,
        devices,
        name: String::new(),
        tick_ns,
        notes,
    }))
}

/// What is read of a file.
struct Choice {
    /// The columns that are needed, in the order of [`COLUMNS`], then those that may be there.
    chosen: Vec<Chosen>,
    has_devices: bool,
    /// What the last column says of how long requests took.
    response: Option<Response>,
    /// What a tick is of times whose unit neither their name nor their type says.
    tick_ns: Option<u64>,
    notes: Vec<String>,
}

impl Choice {
    fn of(file: &str, metadata: &FileMetaData, options: &ReaderOptions) -> Result<Choice, WorkloadError> {
        let refuse = |message: String| WorkloadError::file(file, message);
        let leaves = metadata.schema_descr().columns();
        let named = Named::new(metadata, leaves.iter().map(|leaf| (leaf.path().string(), leaf.self_type())));
        let choose = |column: Column, kind: Kind| -> Result<Chosen, String> {
            let (name, leaf) = (named.names[column.at].clone(), leaves[column.at].clone());
            check(kind, &name, &leaf, named.units_ns[column.at])?;
            Ok(Chosen { name, index: column.at, column: leaf, scale: column.scale })
        };
        let needed = |number: usize, found: Result<Option<Column>, String>, kind: Kind| {
            let as_we_call_it = named.names.iter().position(|name| name == COLUMNS[number]);
            let column = match as_we_call_it {
                Some(at) => Column { at, scale: named.units_ns[at].or(Some(1)) },
                None => {
                    found.map_err(refuse)?.ok_or_else(|| refuse(missing(COLUMNS[number], &named.names)))?
                }
            };
            choose(column, kind).map_err(refuse)
        };
        let find = |meaning| names::find(&named.lower, meaning);
        let mut chosen = vec![
            needed(0, named.time(Meaning::Submitted), Kind::Time)?,
            needed(1, find(Meaning::Operation), Kind::Operation)?,
            needed(2, find(Meaning::Offset), Kind::Whole)?,
            needed(3, find(Meaning::Length), Kind::Whole)?,
        ];
        let mut notes = Vec::from_iter(named.unread());
        let tick_ns = of_ticks(file, &mut chosen[0], options)?;
        notes.extend(named.unit_note(chosen[0].index));
        let device = names::device(&named.lower);
        if let Some(device) = device {
            chosen.push(choose(device, Kind::Name).map_err(refuse)?);
        }
        let mut response = None;
        // As of text, times say more than what was made of them; a replay does without either, so that
        // what cannot be read is left out.
        let says = [(Meaning::Completed, Response::Completed), (Meaning::Latency, Response::Took)];
        for (meaning, what) in says.into_iter().filter(|_| options.responses) {
            let found = named.time(meaning).and_then(|found| {
                let column = found.map(|column| choose(column, Kind::Time)).transpose()?;
                match column.filter(|_| response.is_none()) {
                    Some(column) if column.needs_tick() => Err(format!("column {}: {NO_UNIT}", column.name)),
                    column => Ok(column),
                }
            });
            match found {
                Ok(Some(column)) => {
                    notes.extend(named.unit_note(column.index));
                    chosen.push(column);
                    response = Some(what);
                }
                Ok(None) => {}
                Err(why) => notes.push(format!("what requests took is not read: {why}")),
            }
        }
        Ok(Choice { chosen, has_devices: device.is_some(), response, tick_ns, notes })
    }
}

/// Sets what a whole one of the times is where neither their name nor their type says it; gives
/// what was set.
fn of_ticks(file: &str, time: &mut Chosen, options: &ReaderOptions) -> Result<Option<u64>, WorkloadError> {
    match options.time_unit {
        Some(_) if time.scale.is_some() => {
            let message = format!("the column {} says what its unit is; give no other", time.name);
            Err(WorkloadError::key("workload.source.time_unit", message))
        }
        Some(_) => {
            time.scale = Some(options.tick_ns(1)?);
            Ok(time.scale)
        }
        None if time.needs_tick() => {
            let message = format!("column {}: {NO_UNIT}; {UNIT_REMEDY}", time.name);
            Err(WorkloadError::file(file, message))
        }
        None => Ok(None),
    }
}

/// Whether a file has such a value under a key of its own.
fn says(metadata: &FileMetaData, key: &str, value: &str) -> bool {
    let all = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    all.iter().any(|entry| entry.key == key && entry.value.as_deref() == Some(value))
}

/// The sentence about a column that is not there.
fn missing(wanted: &str, names: &[String]) -> String {
    let names = || names.iter().map(String::as_str);
    let hint = did_you_mean(wanted, names());
    format!(
        "has no column {wanted}; a trace has {}, and this has {}{hint}",
        COLUMNS.join(", "),
        listed(names())
    )
}

/// A file whose index has been read.
pub(crate) type File = SerializedFileReader<std::fs::File>;

/// Reads the index of a file.
pub(crate) fn open_file(input: &Input) -> Result<File, WorkloadError> {
    let refuse = |message: String| WorkloadError::file(&input.file, message);
    if input.compression != Compression::Plain || input.is_read_once() {
        return Err(refuse("a Parquet file is read from its end, so neither packed nor from a pipe".into()));
    }
    let opened = input.reopen()?;
    let length = opened.metadata().map(|metadata| metadata.len()).unwrap_or(u64::MAX);
    guarded(|| {
        let reader = SerializedFileReader::new(opened)?;
        check_places(&reader, length).map(|()| reader)
    })
    .map_err(|error| refuse(explain(&error)))
}

/// Refuses an index that points out of the file, which the library takes for granted.
fn check_places(reader: &File, length: u64) -> Result<(), ParquetError> {
    let columns = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    for column in columns {
        let first = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let inside = |value: i64| u64::try_from(value).ok().filter(|value| *value <= length);
        let end = inside(first).zip(inside(column.compressed_size())).map(|(first, bytes)| first + bytes);
        if end.is_none_or(|end| end > length) || inside(column.data_page_offset()).is_none() {
            return Err(ParquetError::General("its index points out of it".into()));
        }
    }
    Ok(())
}

/// Does what the library may panic at, where a file contradicts itself.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let contradiction = |_| Err(ParquetError::General("it contradicts itself".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(contradiction)
}

/// What is wrong with a file, in one line.
pub(crate) fn explain(error: &ParquetError) -> String {
    let text = error.to_string();
    if let Some((_, method)) = text.split_once("Disabled feature at compile time: ") {
        let method: String = method.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
        return format!(
            "its columns are packed by {method}, which is not read; zstd, snappy, gzip and lz4 are"
        );
    }
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    format!("no Parquet file, or a damaged one: {text}")
}

struct Parquet {
    file: String,
    reader: File,
    /// Each column that is read.
    chosen: Vec<Chosen>,
    rows_in_all: u64,
    /// Row groups begun.
    group: usize,
    lanes: Vec<Lane>,
    rows: Rows,
    wrong: Wrong,
    /// The next row of those read, and how many of these are right.
    at: usize,
    read: usize,
    /// Rows given.
    item: u64,
    progress: Progress,
    has_devices: bool,
    response: Option<Response>,
    devices: Devices,
    name: String,
    /// What a whole one of the times is, where somebody has set it.
    tick_ns: Option<u64>,
    notes: Vec<String>,
}

impl Parquet {
    fn damaged(&self, error: &ParquetError) -> WorkloadError {
        WorkloadError::at(&self.file, Location::Row(self.item + 1), explain(error))
    }

    /// Reads more rows, one at least that is right; false at the end.
    fn refill(&mut self) -> Result<bool, WorkloadError> {
        self.progress.reach(self.item as f64 / self.rows_in_all.max(1) as f64);
        while self.wrong.first().is_none() {
            if self.lanes.is_empty() {
                if self.group >= self.reader.num_row_groups() {
                    return Ok(false);
                }
                let lanes = guarded(|| self.begin_group()).map_err(|error| self.damaged(&error))?;
                self.lanes = lanes;
                self.group += 1;
            }
            let filled = guarded(|| self.fill()).map_err(|error| self.damaged(&error))?;
            if filled == 0 {
                self.lanes.clear();
                continue;
            }
            self.rows.take(&self.lanes, self.has_devices, self.response, &mut self.wrong);
            (self.at, self.read) = (0, self.wrong.first().map_or(filled, |(row, _)| *row));
            if self.read > 0 {
                return Ok(true);
            }
        }
        let message = self.wrong.first().map_or("", |(_, message)| message);
        Err(WorkloadError::at(&self.file, Location::Row(self.item + 1), message))
    }

    /// Reads rows into the lanes; gives how many.
    fn fill(&mut self) -> Result<usize, ParquetError> {
        let mut all = None;
        for lane in &mut self.lanes {
            let rows = lane.fill()?;
            if *all.get_or_insert(rows) != rows {
                return Err(ParquetError::General("its columns have different numbers of rows".into()));
            }
        }
        Ok(all.unwrap_or(0))
    }

    fn begin_group(&self) -> Result<Vec<Lane>, ParquetError> {
        let group = self.reader.get_row_group(self.group)?;
        let lane = |chosen: &Chosen| Ok(Lane::new(chosen, group.get_column_reader(chosen.index)?));
        self.chosen.iter().map(lane).collect()
    }

    /// The number of the device in the next row.
    fn device(&mut self) -> Result<u32, WorkloadError> {
        let device = match self.lanes[NEEDED].word(self.at) {
            Some(word) => self.devices.index(word),
            None => {
                self.name.clear();
                std::fmt::Write::write_fmt(&mut self.name, format_args!("{}", self.rows.device[self.at]))
                    .expect("a string takes what is written");
                self.devices.index(self.name.as_bytes())
            }
        };
        device.map_err(|why| {
            WorkloadError::at(
                &self.file,
                Location::Row(self.item + 1),
                format!("column {}: {why}", self.chosen[NEEDED].name),
            )
        })
    }
}

impl Reader for Parquet {
    #[inline]
    fn next(&mut self, next: &mut Record, _counts: &mut Counts) -> Result<bool, WorkloadError> {
        if self.at == self.read && !self.refill()? {
            return Ok(false);
        }
        let (at, rows) = (self.at, &self.rows);
        *next = Record {
            time_ns: rows.time_ns[at],
            item: self.item + 1,
            device: 0,
            operation: rows.operation[at],
            offset: rows.offset[at],
            bytes: rows.bytes[at],
            response_ns: if self.response.is_some() { rows.response_ns[at] } else { 0 },
        };
        if self.has_devices {
            next.device = self.device()?;
        }
        self.at += 1;
        self.item += 1;
        Ok(true)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn has_responses(&self) -> bool {
        self.response.is_some()
    }

    fn place(&self, item: u64) -> Location {
        Location::Row(item)
    }

    fn tick_ns(&self) -> Option<u64> {
        self.tick_ns
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
