//! Parquet: the columns of the reader of the same name, but for the device, and
//! with what requests took, if that is known.

use std::io::{self, Write};
use std::sync::Arc;

use flashkeel_engine::SECTOR_BYTES;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{Form, Writer, columns};
use crate::Arrival;

const COLUMNS: &str = "
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED BYTE_ARRAY operation (UTF8);
    REQUIRED INT64 offset (UINT_64);
    REQUIRED INT64 bytes (UINT_64);
";
const RESPONSES: &str = "OPTIONAL INT64 latency_ns (UINT_64);";
/// Rows of a row group, which wait in memory until it is full.
const ROWS: usize = 1 << 17;

pub(super) const WRITER: Writer = Writer {
    name: "parquet",
    tick_ns: 1,
    operations: columns::OPERATIONS,
    is_named: false,
    no_response: Some("nothing"),
    form: Form::Parquet,
};

/// A file that is being written.
pub(super) struct Rows<'a> {
    file: SerializedFileWriter<&'a mut (dyn Write + Send)>,
    times: Vec<i64>,
    operations: Vec<ByteArray>,
    offsets: Vec<i64>,
    lengths: Vec<i64>,
    /// What requests took, if there is such a column; 0 is written as no value.
    responses: Option<Vec<i64>>,
}

impl<'a> Rows<'a> {
    pub fn begin(out: &'a mut (dyn Write + Send), is_timed: bool) -> io::Result<Self> {
        let level = ZstdLevel::try_new(1).map_err(failed)?;
        let mut properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
        // Times and addresses hardly ever repeat: as differences they take a third of the
        // bytes that a dictionary of them does, and are read and written in half the time.
        for name in ["time_ns", "offset"] {
            let column = ColumnPath::from(name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let schema = format!("message trace {{{COLUMNS}{}}}", if is_timed { RESPONSES } else { "" });
        let schema = Arc::new(parse_message_type(&schema).map_err(failed)?);
        Ok(Rows {
            file: SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(failed)?,
            times: Vec::new(),
            operations: Vec::new(),
            offsets: Vec::new(),
            lengths: Vec::new(),
            responses: is_timed.then(Vec::new),
        })
    }

    pub fn put(&mut self, arrival: &Arrival, took_ns: Option<u64>) -> io::Result<()> {
        self.times.push(arrival.time.0 as i64);
        self.operations.push(ByteArray::from(columns::letter(arrival.operation)));
        self.offsets.push((arrival.lba.0 * SECTOR_BYTES) as i64);
        self.lengths.push((u64::from(arrival.sectors) * SECTOR_BYTES) as i64);
        if let Some(responses) = &mut self.responses {
            responses.push(took_ns.unwrap_or(0) as i64);
        }
        if self.times.len() == ROWS { self.flush().map_err(failed) } else { Ok(()) }
    }

    pub fn end(mut self) -> io::Result<()> {
        self.flush().and_then(|()| self.file.close()).map(drop).map_err(failed)
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.times.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        numbers(&mut group, &mut self.times)?;
        let mut column = next(&mut group)?;
        column.typed::<ByteArrayType>().write_batch(&self.operations, None, None)?;
        column.close()?;
        self.operations.clear();
        numbers(&mut group, &mut self.offsets)?;
        numbers(&mut group, &mut self.lengths)?;
        if let Some(responses) = &mut self.responses {
            let levels: Vec<i16> = responses.iter().map(|&took_ns| i16::from(took_ns > 0)).collect();
            responses.retain(|&took_ns| took_ns > 0);
            let mut column = next(&mut group)?;
            column.typed::<Int64Type>().write_batch(responses, Some(&levels), None)?;
            column.close()?;
            responses.clear();
        }
        group.close().map(drop)
    }
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut (dyn Write + Send)>;

fn numbers(group: &mut Group<'_, '_>, values: &mut Vec<i64>) -> Result<(), ParquetError> {
    let mut column = next(group)?;
    column.typed::<Int64Type>().write_batch(values, None, None)?;
    values.clear();
    column.close()
}

fn next<'c>(group: &'c mut Group<'_, '_>) -> Result<SerializedColumnWriter<'c>, ParquetError> {
    Ok(group.next_column()?.expect("a column for each of the schema"))
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}
