//! Parquet files, one row a request: `time_ns`, `operation` (`R`, `W`, `T`, `Z` or in
//! full), `offset` and `bytes`, `device` where there are several, and `latency_ns`, which a
//! replay does not use.
//!
//! The columns are read side by side, some thousand rows at a time, so that a
//! file of any length takes the memory of a few of its pages. Its index stands at
//! its end: it cannot come through a pipe, nor packed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flashkeel_config::did_you_mean;
use flashkeel_engine::Span;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

use crate::input::{Compression, Input, Progress};
use crate::names::{self, Meaning};
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record};
use crate::text::listed;
use crate::{Counts, Location, WorkloadError};

mod rows;

use rows::{Lane, Rows, Wrong};

/// The columns of a trace; all but the last are needed. [`RESPONSE`] may stand beside them.
pub(crate) const COLUMNS: [&str; 5] = ["time_ns", "operation", "offset", "bytes", "device"];
const NEEDED: usize = 4;
const RESPONSE: &str = "latency_ns";
/// What the columns mean, as far as names say it: those of text are known here, too.
const MEANINGS: [Meaning; 5] =
    [Meaning::Submitted, Meaning::Operation, Meaning::Offset, Meaning::Length, Meaning::Device];

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    shape: "a Parquet file with the columns time_ns, operation, offset, bytes and perhaps device",
    matches: |_, head| usize::from(head.starts_with(b"PAR1")) * DETECTION_LINES,
    open,
};

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_time_unit(FORMAT.name)?;
    options.refuse_action(FORMAT.name)?;
    let reader = open_file(&input)?;
    let file = input.file.clone();
    let refuse = |message: String| WorkloadError::file(&file, message);
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let (mut chosen, mut notes) = (Vec::new(), Vec::from_iter(names::unread(&lower)));
    let mut time_ns = 1;
    for (at, (wanted, meaning)) in COLUMNS.into_iter().zip(MEANINGS).enumerate() {
        let is_also = |index: &usize| match names::meaning(&lower[*index]) {
            // Of a time the unit is in its name or in its type.
            Some((Meaning::Submitted, None)) => at == 0 && is_timestamp(&schema.column(*index)),
            Some((found, scale)) => found == meaning && (at == 0 || scale == Some(1)),
            None => false,
        };
        let index = match meaning {
            Meaning::Device => names::device(&lower).map(|column| column.at),
            _ => names.iter().position(|name| name == wanted),
        };
        let Some(index) = index
            .or_else(|| (0..names.len()).filter(is_also).min_by_key(|&at| names::is_fallback(&lower[at])))
        else {
            if at >= NEEDED {
                continue;
            }
            let hint = did_you_mean(wanted, names.iter().map(String::as_str));
            let message = format!(
                "has no column {wanted}; a trace has {}, and this has {}{hint}",
                COLUMNS.join(", "),
                listed(names.iter().map(String::as_str))
            );
            return Err(refuse(message));
        };
        let column = schema.column(index);
        check(wanted, &names[index], &column).map_err(refuse)?;
        if at == 0 {
            let by_name = names::meaning(&lower[index]).and_then(|(_, scale)| scale);
            let by_type = unit_ns(&column).filter(|&ns| ns > 1);
            let name = &names[index];
            notes.extend(
                by_type.map(|ns| format!("{name} holds timestamps, a whole one of which is {}", Span(ns))),
            );
            time_ns = by_type.or(by_name).unwrap_or(1);
        }
        chosen.push((wanted, index, column));
    }
    let has_devices = chosen.len() > NEEDED;
    // A replay does without it: what is none is not there.
    let response = names
        .iter()
        .position(|name| options.responses && name == RESPONSE)
        .filter(|&index| check(RESPONSE, RESPONSE, &schema.column(index)).is_ok());
    if let Some(index) = response {
        chosen.push((RESPONSE, index, schema.column(index)));
    }
    let rows_in_all = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let devices = if has_devices { Devices::default() } else { Devices::single() };
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
        has_responses: response.is_some(),
        devices,
        name: String::new(),
        time_ns,
        notes,
    }))
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

/// What a whole number in a column is: that many ns of a timestamp, 1 of a plain
/// number; none where it means something else, such as a date.
fn unit_ns(column: &ColumnDescPtr) -> Option<u64> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => Some(match timestamp.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1_000,
            TimeUnit::NANOS => 1,
        }),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(1_000),
        (Some(LogicalType::Integer(_)), _) => Some(1),
        (None, ConvertedType::DATE | ConvertedType::DECIMAL) => None,
        (None, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS) => None,
        (None, _) => Some(1),
        _ => None,
    }
}

/// Whether the type of a column says which unit its times have.
fn is_timestamp(column: &ColumnDescPtr) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Timestamp(_)))
        || matches!(
            column.converted_type(),
            ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS
        )
}

/// Refuses a column of a type that it cannot have.
fn check(wanted: &str, name: &str, column: &ColumnDescPtr) -> Result<(), String> {
    if column.max_rep_level() > 0 {
        return Err(format!("column {name} is nested; it has to have one value in a row"));
    }
    let physical = column.physical_type();
    let is_right = match wanted {
        "operation" => physical == Type::BYTE_ARRAY,
        "device" => matches!(physical, Type::BYTE_ARRAY | Type::INT32 | Type::INT64),
        _ => matches!(physical, Type::INT32 | Type::INT64),
    };
    let needed = if wanted == "operation" { "text" } else { "whole numbers" };
    let is_meant = match unit_ns(column) {
        Some(unit_ns) => unit_ns == 1 || wanted == "time_ns",
        None => physical == Type::BYTE_ARRAY,
    };
    if is_right && !is_meant {
        let meant = match column.logical_type_ref() {
            Some(meant) => format!("{meant:?}"),
            None => column.converted_type().to_string(),
        };
        return Err(format!("column {name} holds {meant}; it has to hold whole numbers"));
    }
    is_right.then_some(()).ok_or_else(|| format!("column {name} holds {physical}; it has to hold {needed}"))
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
    /// Name, number and description of each column that is read.
    chosen: Vec<(&'static str, usize, ColumnDescPtr)>,
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
    has_responses: bool,
    devices: Devices,
    name: String,
    /// What a whole one of the times is.
    time_ns: u64,
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
            self.rows.take(
                &self.lanes,
                (self.has_devices, self.has_responses),
                self.time_ns,
                &mut self.wrong,
            );
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
        let lane = |&(name, index, ref column): &(&'static str, usize, ColumnDescPtr)| {
            Ok(Lane::new(name, column, group.get_column_reader(index)?))
        };
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
            WorkloadError::at(&self.file, Location::Row(self.item + 1), format!("column device: {why}"))
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
            response_ns: if self.has_responses { rows.response_ns[at] } else { 0 },
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
        self.has_responses
    }

    fn place(&self, item: u64) -> Location {
        Location::Row(item)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
