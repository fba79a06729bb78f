//! Rows of a Parquet file, some thousand at a time, column by column.

use flashkeel_engine::Operation;
use parquet::basic::{ConvertedType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use super::times::{decimal_ns, text_ns};
use crate::readers::named_operation;

/// Rows that are read at a time.
const BATCH: usize = 4096;
const TOO_LATE: &str = "too large for a time in nanoseconds";
const TOO_FAR: &str = "beyond any 64-bit address";

/// A column that is read.
pub(super) struct Chosen {
    /// As the file has it.
    pub name: String,
    pub index: usize,
    pub column: ColumnDescPtr,
    /// Nanoseconds or bytes of a whole one; none of times whose unit neither name nor type says.
    pub scale: Option<u64>,
}

impl Chosen {
    /// Whether it has numbers and nothing says what a whole one is; text may be of a calendar.
    pub fn needs_tick(&self) -> bool {
        self.scale.is_none() && self.column.physical_type() != Type::BYTE_ARRAY
    }
}

/// What a column says of how long a request took.
#[derive(Clone, Copy)]
pub(super) enum Response {
    Took,
    /// When it completed.
    Completed,
}

/// One column of the row group that is being read.
pub(super) struct Lane {
    name: String,
    scale: Option<u64>,
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
    Single(Vec<f32>),
    Double(Vec<f64>),
    Words(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl Lane {
    pub fn new(chosen: &Chosen, reader: ColumnReader) -> Lane {
        let values = match chosen.column.physical_type() {
            Type::BYTE_ARRAY => Values::Words(Vec::new()),
            Type::BOOLEAN => Values::Flags(Vec::new()),
            Type::INT32 => Values::Narrow(Vec::new()),
            Type::FLOAT => Values::Single(Vec::new()),
            Type::DOUBLE => Values::Double(Vec::new()),
            _ => Values::Whole(Vec::new()),
        };
        let unsigned =
            [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
        Lane {
            name: chosen.name.clone(),
            scale: chosen.scale,
            reader,
            is_unsigned: unsigned.contains(&chosen.column.converted_type()),
            present: chosen.column.max_def_level(),
            levels: Vec::new(),
            values,
        }
    }

    /// Reads the next rows; gives how many.
    pub fn fill(&mut self) -> Result<usize, ParquetError> {
        let (levels, present) = (&mut self.levels, self.present);
        match (&mut self.reader, &mut self.values) {
            (ColumnReader::Int64ColumnReader(reader), Values::Whole(values)) => {
                read(reader, levels, present, values)
            }
            (ColumnReader::Int32ColumnReader(reader), Values::Narrow(values)) => {
                read(reader, levels, present, values)
            }
            (ColumnReader::FloatColumnReader(reader), Values::Single(values)) => {
                read(reader, levels, present, values)
            }
            (ColumnReader::DoubleColumnReader(reader), Values::Double(values)) => {
                read(reader, levels, present, values)
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Words(values)) => {
                read(reader, levels, present, values)
            }
            (ColumnReader::BoolColumnReader(reader), Values::Flags(values)) => {
                read(reader, levels, present, values)
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

    /// Puts what was read into `numbers`, 0 where there is none. The first below 0 of those that count
    /// is wrong.
    fn numbers(&self, numbers: &mut Vec<u64>, counts: impl Fn(usize) -> bool, wrong: &mut Wrong) {
        numbers.clear();
        match &self.values {
            Values::Whole(values) => numbers.extend(values.iter().map(|value| *value as u64)),
            Values::Narrow(values) if self.is_unsigned => {
                numbers.extend(values.iter().map(|value| u64::from(*value as u32)));
            }
            Values::Narrow(values) => numbers.extend(values.iter().map(|value| i64::from(*value) as u64)),
            _ => unreachable!("its type was checked"),
        }
        let is_below = |&row: &usize| (numbers[row] as i64) < 0 && counts(row);
        if !self.is_unsigned
            && let Some(row) = (0..numbers.len()).find(is_below)
        {
            wrong.note(row, || format!("column {}: {} is negative", self.name, numbers[row] as i64));
        }
    }

    /// Makes numbers that were read bytes or nanoseconds. The first that 64 bits do not hold is
    /// wrong.
    fn scale(&self, numbers: &mut [u64], beyond: &str, wrong: &mut Wrong) {
        let scale = self.scale.unwrap_or(1);
        if scale == 1 {
            return;
        }
        for (row, number) in numbers.iter_mut().enumerate() {
            let Some(scaled) = number.checked_mul(scale) else {
                wrong.note(row, || format!("column {}: {number} is {beyond}", self.name));
                return;
            };
            *number = scaled;
        }
    }

    /// Puts the times that were read into `times`, in nanoseconds, 0 where there is none. The first
    /// that is no time is wrong.
    fn times(&self, times: &mut Vec<u64>, wrong: &mut Wrong) {
        let (mut text, unit_ns) = (String::new(), self.scale.unwrap_or(1));
        match &self.values {
            Values::Whole(_) | Values::Narrow(_) => {
                self.numbers(times, |_| true, wrong);
                self.scale(times, TOO_LATE, wrong);
            }
            Values::Single(values) => {
                self.convert(values, times, wrong, |value| decimal_ns(*value, unit_ns, &mut text));
            }
            Values::Double(values) => {
                self.convert(values, times, wrong, |value| decimal_ns(*value, unit_ns, &mut text));
            }
            Values::Words(words) => {
                self.convert(words, times, wrong, |word| text_ns(word.data(), self.scale, &self.name));
            }
            Values::Flags(_) => unreachable!("its type was checked"),
        }
    }

    /// Puts values into `numbers` as they are converted, up to the first that cannot be.
    fn convert<T>(
        &self,
        values: &[T],
        numbers: &mut Vec<u64>,
        wrong: &mut Wrong,
        mut convert: impl FnMut(&T) -> Result<u64, String>,
    ) {
        numbers.clear();
        for (row, value) in values.iter().enumerate() {
            let converted = if self.is_missing(row) { Ok(0) } else { convert(value) };
            match converted {
                Ok(number) => numbers.push(number),
                Err(why) => return wrong.note(row, || format!("column {}: {why}", self.name)),
            }
        }
    }

    /// Puts into `took` how long the requests of these times took, 0 where that is not known. The
    /// first that is no time is wrong.
    fn responses(&self, response: Response, times_ns: &[u64], took: &mut Vec<u64>, wrong: &mut Wrong) {
        self.times(took, wrong);
        let Response::Completed = response else { return };
        for (row, (took, time_ns)) in took.iter_mut().zip(times_ns).enumerate() {
            if self.is_missing(row) {
                continue;
            }
            let Some(took_ns) = took.checked_sub(*time_ns) else {
                let early_ns = time_ns - *took;
                wrong.note(row, || {
                    format!("column {}: the completion is {early_ns} ns before its submission", self.name)
                });
                return;
            };
            *took = took_ns;
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
        let named = |text: &[u8]| named_operation(&self.name, text);
        match &self.values {
            Values::Words(words) => self.name_all(words, operations, wrong, |word| match word.data() {
                b"R" => Ok(Operation::Read),
                b"W" => Ok(Operation::Write),
                other => named(other),
            }),
            Values::Flags(flags) => {
                self.name_all(flags, operations, wrong, |flag| named(if *flag { b"1" } else { b"0" }));
            }
            Values::Narrow(numbers) => {
                self.name_all(numbers, operations, wrong, |number| named(number.to_string().as_bytes()));
            }
            Values::Whole(numbers) => {
                self.name_all(numbers, operations, wrong, |number| named(number.to_string().as_bytes()));
            }
            _ => unreachable!("its type was checked"),
        }
    }

    /// Puts values into `operations`, up to the first that is none.
    fn name_all<T>(
        &self,
        values: &[T],
        operations: &mut Vec<Operation>,
        wrong: &mut Wrong,
        name: impl Fn(&T) -> Result<Operation, String>,
    ) {
        for (row, value) in values.iter().enumerate() {
            if self.is_missing(row) {
                return;
            }
            match name(value) {
                Ok(operation) => operations.push(operation),
                Err(why) => return wrong.note(row, || format!("column {}: {why}", self.name)),
            }
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
    /// Takes what the lanes have read; the last says what requests took, if any does.
    pub fn take(&mut self, lanes: &[Lane], has_devices: bool, response: Option<Response>, wrong: &mut Wrong) {
        let [time, operation, offset, bytes, others @ ..] = lanes else { unreachable!("four are needed") };
        operation.operations(&mut self.operation, wrong);
        let operations = &self.operation;
        let has_range = |row: usize| operations.get(row) != Some(&Operation::Flush);
        time.need(|_| true, wrong);
        time.times(&mut self.time_ns, wrong);
        for (lane, numbers) in [(offset, &mut self.offset), (bytes, &mut self.bytes)] {
            lane.need(has_range, wrong);
            lane.numbers(numbers, has_range, wrong);
        }
        for row in (0..operations.len()).filter(|row| !has_range(*row)) {
            // A flush has no address: what stands there is not looked at, as in text.
            self.offset[row] = 0;
            let length = std::mem::take(&mut self.bytes[row]);
            if length != 0 {
                let name = &bytes.name;
                wrong
                    .note(row, || format!("column {name}: {length} is no length of a flush, which has none"));
            }
        }
        offset.scale(&mut self.offset, TOO_FAR, wrong);
        bytes.scale(&mut self.bytes, TOO_FAR, wrong);
        let mut ranges = self.offset.iter().zip(&self.bytes);
        if let Some(row) = ranges.position(|(offset, bytes)| offset.checked_add(*bytes).is_none()) {
            let (offset, bytes) = (self.offset[row], self.bytes[row]);
            wrong.note(row, || format!("offset {offset} and bytes {bytes} lie beyond any 64-bit address"));
        }
        if has_devices && let Some(device) = others.first() {
            device.need(|_| true, wrong);
            if !matches!(device.values, Values::Words(_)) {
                device.numbers(&mut self.device, |_| true, wrong);
            }
        }
        if let Some((response, lane)) = response.zip(others.last()) {
            lane.responses(response, &self.time_ns, &mut self.response_ns, wrong);
        }
    }
}
