//! Rows of a Parquet file, some thousand at a time, column by column.

use flashkeel_engine::Operation;
use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
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

    /// Reads the next rows; gives how many. The first of them without a value is wrong.
    pub fn fill(&mut self, wrong: &mut Wrong) -> Result<usize, ParquetError> {
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

    /// What a row says, if this is a column of text.
    pub fn word(&self, row: usize) -> Option<&[u8]> {
        let Values::Words(words) = &self.values else { return None };
        Some(words[row].data())
    }

    /// Puts what was read into `operations`. The first that is none is wrong.
    fn operations(&self, operations: &mut Vec<Operation>, wrong: &mut Wrong) {
        operations.clear();
        let Values::Words(words) = &self.values else { unreachable!("its type was checked") };
        for word in words {
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
        if let Some(device) = device.filter(|lane| !matches!(lane.values, Values::Words(_))) {
            device.numbers(&mut self.device, wrong);
        }
        if let Some(response) = response {
            response.numbers(&mut self.response_ns, wrong);
        }
    }
}
