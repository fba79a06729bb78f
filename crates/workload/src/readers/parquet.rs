//! Parquet files, one row a request: `time_ns`, `operation` (`R`, `W`, `T`, `Z` or in
//! full), `offset` and `bytes`, and `device` where there are several.
//!
//! The columns are read side by side, some thousand rows at a time, so that a
//! file of any length takes the memory of a few of its pages. Its index stands at
//! its end: it cannot come through a pipe, nor packed.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Operation, Span};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

use super::columns;
use crate::input::{Compression, Input, Progress};
use crate::readers::{Devices, Format, Reader, ReaderOptions, Record};
use crate::text::listed;
use crate::{Counts, Location, WorkloadError};

/// The columns of a trace; all but the last are needed.
pub(crate) const COLUMNS: [&str; 5] = ["time_ns", "operation", "offset", "bytes", "device"];
const NEEDED: usize = 4;
const BATCH: usize = 4096;

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    shape: "a Parquet file with the columns time_ns, operation, offset, bytes and perhaps device",
    matches: |_, head| usize::from(head.starts_with(b"PAR1")) * super::DETECTION_LINES,
    open,
};

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_time_unit(FORMAT.name)?;
    options.refuse_action(FORMAT.name)?;
    let file = input.file.clone();
    let refuse = |message: String| WorkloadError::file(&file, message);
    if input.compression != Compression::Plain || input.is_read_once() {
        return Err(refuse("a Parquet file is read from its end, so neither packed nor from a pipe".into()));
    }
    let opened = input.reopen()?;
    let length = opened.metadata().map(|metadata| metadata.len()).unwrap_or(u64::MAX);
    let reader = guarded(|| {
        let reader = SerializedFileReader::new(opened)?;
        check_places(&reader, length).map(|()| reader)
    })
    .map_err(|error| refuse(explain(&error)))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let mut chosen = Vec::new();
    for (at, wanted) in COLUMNS.into_iter().enumerate() {
        let Some(index) = names.iter().position(|name| name == wanted) else {
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
        check(wanted, &column).map_err(refuse)?;
        chosen.push((wanted, index, column));
    }
    let time_ns = chosen.first().and_then(|(_, _, time)| unit_ns(time)).unwrap_or(1);
    let rows_in_all = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let devices = if chosen.len() > NEEDED { Devices::default() } else { Devices::single() };
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
        devices,
        name: String::new(),
        time_ns,
    }))
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

/// Refuses a column of a type that it cannot have.
fn check(name: &str, column: &ColumnDescPtr) -> Result<(), String> {
    if column.max_rep_level() > 0 {
        return Err(format!("column {name} is nested; it has to have one value in a row"));
    }
    let physical = column.physical_type();
    let is_right = match name {
        "operation" => physical == Type::BYTE_ARRAY,
        "device" => matches!(physical, Type::BYTE_ARRAY | Type::INT32 | Type::INT64),
        _ => matches!(physical, Type::INT32 | Type::INT64),
    };
    let wanted = if name == "operation" { "text" } else { "whole numbers" };
    let is_meant = match unit_ns(column) {
        Some(unit_ns) => unit_ns == 1 || name == "time_ns",
        None => physical == Type::BYTE_ARRAY,
    };
    if is_right && !is_meant {
        let meant = match column.logical_type_ref() {
            Some(meant) => format!("{meant:?}"),
            None => column.converted_type().to_string(),
        };
        return Err(format!("column {name} holds {meant}; it has to hold whole numbers"));
    }
    is_right.then_some(()).ok_or_else(|| format!("column {name} holds {physical}; it has to hold {wanted}"))
}

/// Refuses an index that points out of the file, which the library takes for granted.
fn check_places(reader: &SerializedFileReader<File>, length: u64) -> Result<(), ParquetError> {
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
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let contradiction = |_| Err(ParquetError::General("it contradicts itself".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(contradiction)
}

/// What is wrong with a file, in one line.
fn explain(error: &ParquetError) -> String {
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

/// One column of the row group that is being read.
struct Lane {
    name: &'static str,
    reader: ColumnReader,
    is_unsigned: bool,
    /// Level of a value that is there.
    present: i16,
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Narrow(Vec<i32>),
    Whole(Vec<i64>),
    Words(Vec<ByteArray>),
}

impl Lane {
    fn new(name: &'static str, column: &ColumnDescPtr, reader: ColumnReader) -> Lane {
        let values = match column.physical_type() {
            Type::BYTE_ARRAY => Values::Words(Vec::new()),
            Type::INT32 => Values::Narrow(Vec::new()),
            _ => Values::Whole(Vec::new()),
        };
        let unsigned =
            [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
        Lane {
            name,
            reader,
            is_unsigned: unsigned.contains(&column.converted_type()),
            present: column.max_def_level(),
            levels: Vec::new(),
            values,
        }
    }

    /// Reads the next rows; gives how many. The first of them without a value is wrong.
    fn fill(&mut self, wrong: &mut Wrong) -> Result<usize, ParquetError> {
        self.levels.clear();
        let levels = (self.present > 0).then_some(&mut self.levels);
        let (rows, values, _) = match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int64ColumnReader(reader), Values::Whole(values)) => {
                values.clear();
                reader.read_records(BATCH, levels, None, values)?
            }
            (ColumnReader::Int32ColumnReader(reader), Values::Narrow(values)) => {
                values.clear();
                reader.read_records(BATCH, levels, None, values)?
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Words(values)) => {
                values.clear();
                reader.read_records(BATCH, levels, None, values)?
            }
            _ => return Err(ParquetError::General(format!("column {} changes its type", self.name))),
        };
        if values < rows {
            let missing = self.levels.iter().position(|level| *level < self.present).unwrap_or(values);
            wrong.note(missing, || format!("column {} has no value", self.name));
        }
        Ok(rows)
    }

    /// Puts what was read into `numbers`. The first below 0 is wrong.
    fn numbers(&self, numbers: &mut Vec<u64>, wrong: &mut Wrong) {
        numbers.clear();
        match &self.values {
            Values::Whole(values) => numbers.extend(values.iter().map(|value| *value as u64)),
            Values::Narrow(values) if self.is_unsigned => {
                numbers.extend(values.iter().map(|value| u64::from(*value as u32)));
            }
            Values::Narrow(values) => numbers.extend(values.iter().map(|value| i64::from(*value) as u64)),
            Values::Words(_) => unreachable!("its type was checked"),
        }
        let is_below = |number: &u64| (*number as i64) < 0;
        if !self.is_unsigned
            && let Some(row) = numbers.iter().position(is_below)
        {
            wrong.note(row, || format!("column {}: {} is negative", self.name, numbers[row] as i64));
        }
    }

    /// Puts what was read into `operations`. The first that is none is wrong.
    fn operations(&self, operations: &mut Vec<Operation>, wrong: &mut Wrong) {
        operations.clear();
        let Values::Words(words) = &self.values else { unreachable!("its type was checked") };
        for word in words {
            operations.push(match word.data() {
                b"R" => Operation::Read,
                b"W" => Operation::Write,
                other => match columns::operation(other) {
                    Ok(operation) => operation,
                    Err(why) => {
                        wrong.note(operations.len(), || format!("column operation: {why}"));
                        return;
                    }
                },
            });
        }
    }
}

/// The first of the rows read together that is not right, and how. Those before it are given.
#[derive(Default)]
struct Wrong(Option<(usize, String)>);

impl Wrong {
    /// Notes what is wrong with a row, if those before it are right.
    fn note(&mut self, row: usize, message: impl FnOnce() -> String) {
        if self.0.as_ref().is_none_or(|(first, _)| row < *first) {
            self.0 = Some((row, message()));
        }
    }
}

/// Rows read together, column by column.
#[derive(Default)]
struct Rows {
    time_ns: Vec<u64>,
    operation: Vec<Operation>,
    offset: Vec<u64>,
    bytes: Vec<u64>,
    /// Devices that are numbers.
    device: Vec<u64>,
}

impl Rows {
    /// Takes what the lanes have read. A whole one of the times is `unit_ns`.
    fn take(&mut self, lanes: &[Lane], unit_ns: u64, wrong: &mut Wrong) {
        let [time, operation, offset, bytes, device @ ..] = lanes else { unreachable!("four are needed") };
        time.numbers(&mut self.time_ns, wrong);
        offset.numbers(&mut self.offset, wrong);
        bytes.numbers(&mut self.bytes, wrong);
        if unit_ns > 1 {
            for (row, time) in self.time_ns.iter_mut().enumerate() {
                let Some(time_ns) = time.checked_mul(unit_ns) else {
                    wrong.note(row, || {
                        format!("column time_ns: {time} is too large for a time in nanoseconds")
                    });
                    break;
                };
                *time = time_ns;
            }
        }
        operation.operations(&mut self.operation, wrong);
        let mut ranges = self.offset.iter().zip(&self.bytes);
        if let Some(row) = ranges.position(|(offset, bytes)| offset.checked_add(*bytes).is_none()) {
            let (offset, bytes) = (self.offset[row], self.bytes[row]);
            wrong.note(row, || format!("offset {offset} and bytes {bytes} lie beyond any 64-bit address"));
        }
        if let Some(device) = device.first().filter(|lane| !matches!(lane.values, Values::Words(_))) {
            device.numbers(&mut self.device, wrong);
        }
    }
}

struct Parquet {
    file: String,
    reader: SerializedFileReader<File>,
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
    devices: Devices,
    name: String,
    /// What a whole one of the times is.
    time_ns: u64,
}

impl Parquet {
    fn damaged(&self, error: &ParquetError) -> WorkloadError {
        WorkloadError::at(&self.file, Location::Row(self.item + 1), explain(error))
    }

    /// Reads more rows, one at least that is right; false at the end.
    fn refill(&mut self) -> Result<bool, WorkloadError> {
        self.progress.reach(self.item as f64 / self.rows_in_all.max(1) as f64);
        while self.wrong.0.is_none() {
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
            self.rows.take(&self.lanes, self.time_ns, &mut self.wrong);
            (self.at, self.read) = (0, self.wrong.0.as_ref().map_or(filled, |(row, _)| *row));
            if self.read > 0 {
                return Ok(true);
            }
        }
        let message = self.wrong.0.as_ref().map_or("", |(_, message)| message);
        Err(WorkloadError::at(&self.file, Location::Row(self.item + 1), message))
    }

    /// Reads rows into the lanes; gives how many.
    fn fill(&mut self) -> Result<usize, ParquetError> {
        let mut all = None;
        for lane in &mut self.lanes {
            let rows = lane.fill(&mut self.wrong)?;
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
        let device = match &self.lanes[NEEDED].values {
            Values::Words(words) => self.devices.index(words[self.at].data()),
            Values::Whole(_) | Values::Narrow(_) => {
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
        };
        if self.lanes.len() > NEEDED {
            next.device = self.device()?;
        }
        self.at += 1;
        self.item += 1;
        Ok(true)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn place(&self, item: u64) -> Location {
        Location::Row(item)
    }

    fn notes(&self) -> Vec<String> {
        let note = || format!("time_ns holds timestamps, a whole one of which is {}", Span(self.time_ns));
        (self.time_ns > 1).then(note).into_iter().collect()
    }
}
