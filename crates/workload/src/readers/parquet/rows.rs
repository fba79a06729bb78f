//! Rows of a Parquet file, some thousand at a time, column by column.

use flashkeel_engine::Operation;
use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use crate::readers::named_operation;

/// Rows that are read at a time.
const BATCH: usize = 4096;

/// One column of the row group that is being read.
pub(super) struct Lane {
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
    pub fn new(name: &'static str, column: &ColumnDescPtr, reader: ColumnReader) -> Lane {
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

    /// Reads the next rows; gives how many.
    pub fn fill(&mut self) -> Result<usize, ParquetError> {
        let levels = &mut self.levels;
        match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int64ColumnReader(reader), Values::Whole(values)) => {
                read(reader, levels, self.present, values)
            }
            (ColumnReader::Int32ColumnReader(reader), Values::Narrow(values)) => {
                read(reader, levels, self.present, values)
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Words(values)) => {
                read(reader, levels, self.present, values)
            }
            _ => Err(ParquetError::General(format!("column {} changes its type", self.name))),
        }
    }

    /// Whether a row has no value.
    fn is_missing(&self, row: usize) -> bool {
        self.levels.get(row).is_some_and(|level| *level < self.present)
    }

    /// The first row without a value that needs one is wrong.
    fn need(&self, is_needed: impl Fn(usize) -> bool, wrong: &mut Wrong) {
        let missing = (0..self.levels.len()).find(|&row| self.is_missing(row) && is_needed(row));
        if let Some(row) = missing {
            wrong.note(row, || format!("column {} has no value", self.name));
        }
    }

    /// Puts what was read into `numbers`. The first that is needed and is none, or below 0, is wrong.
    fn numbers(&self, numbers: &mut Vec<u64>, is_needed: impl Fn(usize) -> bool, wrong: &mut Wrong) {
        self.need(&is_needed, wrong);
        numbers.clear();
        match &self.values {
            Values::Whole(values) => numbers.extend(values.iter().map(|value| *value as u64)),
            Values::Narrow(values) if self.is_unsigned => {
                numbers.extend(values.iter().map(|value| u64::from(*value as u32)));
            }
            Values::Narrow(values) => numbers.extend(values.iter().map(|value| i64::from(*value) as u64)),
            Values::Words(_) => unreachable!("its type was checked"),
        }
        let is_below = |&row: &usize| (numbers[row] as i64) < 0 && is_needed(row);
        if !self.is_unsigned
            && let Some(row) = (0..numbers.len()).find(is_below)
        {
            wrong.note(row, || format!("column {}: {} is negative", self.name, numbers[row] as i64));
        }
    }

    /// What a row says, if this is a column of text.
    pub fn word(&self, row: usize) -> Option<&[u8]> {
        let Values::Words(words) = &self.values else { return None };
        Some(words[row].data())
    }

    /// Puts what was read into `operations`. The first that is none is wrong.
    fn operations(&self, operations: &mut Vec<Operation>, wrong: &mut Wrong) {
        operations.clear();
        self.need(|_| true, wrong);
        let Values::Words(words) = &self.values else { unreachable!("its type was checked") };
        for (row, word) in words.iter().enumerate() {
            if self.is_missing(row) {
                return;
            }
            operations.push(match word.data() {
                b"R" => Operation::Read,
                b"W" => Operation::Write,
                other => match named_operation(self.name, other) {
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

/// Reads the next rows of a column, and what level each has; gives how many. Values stand in their
/// rows then, whatever is in those without one.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    levels: &mut Vec<i16>,
    present: i16,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    levels.clear();
    values.clear();
    let (rows, found, _) = reader.read_records(BATCH, (present > 0).then_some(&mut *levels), None, values)?;
    if found == rows {
        return Ok(rows);
    }
    if levels.len() != rows || levels.iter().filter(|level| **level == present).count() != found {
        return Err(ParquetError::General("it contradicts itself".into()));
    }
    values.resize_with(rows, Default::default);
    let mut from = found;
    for row in (0..rows).rev().filter(|row| levels[*row] == present) {
        from -= 1;
        values.swap(from, row);
    }
    Ok(rows)
}

/// The first of the rows read together that is not right, and how. Those before it are given.
#[derive(Default)]
pub(super) struct Wrong(Option<(usize, String)>);

impl Wrong {
    /// Its row among those read together, and what is wrong.
    pub fn first(&self) -> Option<&(usize, String)> {
        self.0.as_ref()
    }

    /// Notes what is wrong with a row, if those before it are right.
    fn note(&mut self, row: usize, message: impl FnOnce() -> String) {
        if self.0.as_ref().is_none_or(|(first, _)| row < *first) {
            self.0 = Some((row, message()));
        }
    }
}

/// Rows read together, column by column.
#[derive(Default)]
pub(super) struct Rows {
    pub time_ns: Vec<u64>,
    pub operation: Vec<Operation>,
    pub offset: Vec<u64>,
    pub bytes: Vec<u64>,
    /// Devices that are numbers.
    pub device: Vec<u64>,
    /// What requests took.
    pub response_ns: Vec<u64>,
}

impl Rows {
    /// Takes what the lanes have read. A whole one of the times is `unit_ns`.
    pub fn take(
        &mut self,
        lanes: &[Lane],
        (has_devices, has_responses): (bool, bool),
        unit_ns: u64,
        wrong: &mut Wrong,
    ) {
        let [time, operation, offset, bytes, others @ ..] = lanes else { unreachable!("four are needed") };
        let device = others.first().filter(|_| has_devices);
        let response = others.last().filter(|_| has_responses);
        operation.operations(&mut self.operation, wrong);
        let operations = &self.operation;
        let has_range = |row: usize| operations.get(row) != Some(&Operation::Flush);
        time.numbers(&mut self.time_ns, |_| true, wrong);
        offset.numbers(&mut self.offset, has_range, wrong);
        bytes.numbers(&mut self.bytes, has_range, wrong);
        for row in (0..operations.len()).filter(|row| !has_range(*row)) {
            // A flush has no address: what stands there is not looked at, as in text.
            self.offset[row] = 0;
            let length = std::mem::take(&mut self.bytes[row]);
            if length != 0 {
                wrong.note(row, || format!("column bytes: {length} is no length of a flush, which has none"));
            }
        }
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
        let mut ranges = self.offset.iter().zip(&self.bytes);
        if let Some(row) = ranges.position(|(offset, bytes)| offset.checked_add(*bytes).is_none()) {
            let (offset, bytes) = (self.offset[row], self.bytes[row]);
            wrong.note(row, || format!("offset {offset} and bytes {bytes} lie beyond any 64-bit address"));
        }
        match device {
            Some(device) if matches!(device.values, Values::Words(_)) => device.need(|_| true, wrong),
            Some(device) => device.numbers(&mut self.device, |_| true, wrong),
            None => {}
        }
        if let Some(response) = response {
            response.numbers(&mut self.response_ns, |_| true, wrong);
        }
    }
}
