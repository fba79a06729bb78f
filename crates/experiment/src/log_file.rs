//! The request log as a Parquet file, made while the run goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use flashkeel_stats::{Column, LogRows, Recorder};
use flashkeel_workload::Basis;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, TypePtr};

/// Lots of rows that wait to be encoded.
const LOTS: usize = 2;
/// The column that holds no numbers.
const WORDS: &str = "operation";

/// The file in the making: a thread encodes rows as they come, so that what is held of the
/// log is a fraction of what its numbers take.
pub(crate) struct LogFile {
    encoder: JoinHandle<Result<File>>,
}

type File = SerializedFileWriter<Vec<u8>>;

impl LogFile {
    /// A file of the first `max_rows` requests that `recorder` will measure, and of whose they
    /// are if there are several tenants.
    pub fn of(recorder: &mut Recorder, max_rows: u64, has_tenants: bool) -> Self {
        let (rows, lots) = sync_channel(LOTS);
        recorder.log_to(rows, max_rows, has_tenants);
        LogFile { encoder: thread::spawn(move || encode(&lots)) }
    }

    /// The file, once the recorder has finished, of requests that rest on `basis`.
    pub fn end(self, basis: Basis) -> Vec<u8> {
        let file = self.encoder.join().expect("the encoder ends");
        let whole = file.and_then(|mut file| {
            file.append_key_value_metadata(KeyValue::new(Basis::KEY.into(), basis.label().to_owned()));
            file.into_inner()
        });
        whole.expect("what is in memory can be written")
    }
}

/// A column of one lot: its pages, and what a file has to say of them.
type Chunk = (Bytes, ColumnCloseResult);

/// A row group for each lot that is not empty, with the columns of the last lot: it has those
/// of all others.
fn encode(lots: &Receiver<LogRows>) -> Result<File> {
    let properties = properties();
    let mut encoded: Vec<(usize, Vec<(String, Chunk)>)> = Vec::new();
    let mut names = Vec::new();
    for rows in lots {
        let count = rows.len();
        let columns = rows.into_columns();
        names = columns.iter().map(|(name, _)| name.clone()).collect();
        if count > 0 {
            let chunks = columns.into_iter().map(|(name, column)| {
                let chunk = chunk(&name, column, &properties)?;
                Ok((name, chunk))
            });
            encoded.push((count, chunks.collect::<Result<_>>()?));
        }
    }
    let mut file = SerializedFileWriter::new(Vec::new(), schema(&names)?, properties.clone())?;
    for (count, chunks) in encoded {
        let mut group = file.next_row_group()?;
        let mut chunks = chunks.into_iter().peekable();
        for name in &names {
            let (pages, close) = match chunks.next_if(|(own, _)| own == name) {
                Some((_, chunk)) => chunk,
                // A cause that only later requests met.
                None => chunk(name, Column::U64(vec![0; count]), &properties)?,
            };
            group.append_column(&pages, close)?;
        }
        debug_assert!(chunks.next().is_none(), "the last lot has the columns of all");
        group.close()?;
    }
    Ok(file)
}

fn chunk(name: &str, column: Column, properties: &WriterPropertiesPtr) -> Result<Chunk> {
    let descriptor = SchemaDescriptor::new(schema(&[name.to_owned()])?).column(0);
    let mut pages = TrackedWrite::new(Vec::new());
    let writer =
        get_column_writer(descriptor, properties.clone(), Box::new(SerializedPageWriter::new(&mut pages)));
    let close = match column {
        Column::U64(values) => {
            let bits: Vec<i64> = values.into_iter().map(u64::cast_signed).collect();
            let mut writer = get_typed_column_writer::<Int64Type>(writer);
            writer.write_batch(&bits, None, None)?;
            writer.close()?
        }
        Column::Word { indices, vocabulary } => {
            let words: Vec<ByteArray> = vocabulary.iter().map(|&word| ByteArray::from(word)).collect();
            let words: Vec<ByteArray> =
                indices.iter().map(|&index| words[usize::from(index)].clone()).collect();
            let mut writer = get_typed_column_writer::<ByteArrayType>(writer);
            writer.write_batch(&words, None, None)?;
            writer.close()?
        }
        Column::F64(_) | Column::Lists(_) => unreachable!("a log has neither"),
    };
    Ok((pages.into_inner()?.into(), close))
}

fn schema(names: &[String]) -> Result<TypePtr> {
    let columns = names.iter().map(|name| match name.as_str() {
        WORDS => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
        _ => format!("REQUIRED INT64 {name} (UINT_64);"),
    });
    let message = format!("message requests {{ {} }}", columns.collect::<String>());
    parse_message_type(&message).map(Arc::new)
}

/// Numbers of a log hardly ever repeat, so that none is looked up in a dictionary: as
/// differences they take a third of the time. zstd would take as long as all the rest, for
/// files 7 % smaller.
fn properties() -> WriterPropertiesPtr {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_dictionary_enabled(false)
        .set_column_encoding(ColumnPath::from(WORDS), Encoding::PLAIN)
        .set_column_dictionary_enabled(ColumnPath::from(WORDS), true)
        .set_write_batch_size(LogRows::MOST);
    Arc::new(properties.build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashkeel_engine::{
        Cause, Completion, Lba, Ledger, Operation, RequestId, Span, Status, TenantId, Time,
    };
    use flashkeel_stats::{Asked, MeasureConfig};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn a_cause_that_only_later_lots_met_is_nought_in_those_before() {
        let mut recorder = Recorder::new(&MeasureConfig::default(), Span::ZERO, &[]);
        let file = LogFile::of(&mut recorder, u64::MAX, false);
        let met = LogRows::MOST + 1;
        for row in 0..met + 2 {
            let mut ledger = Ledger::ZERO;
            ledger.charge(if row < met { Cause::OwnFlash } else { Cause::BehindErase }, Span(7));
            let (lba, arrived, tenant) = (Lba(row as u64), Time::ZERO, TenantId(0));
            let asked =
                Asked { operation: Operation::Read, lba, sectors: 8, asked_sectors: 8, arrived, tenant };
            let id = RequestId(row as u64);
            recorder.record(&asked, &Completion { id, time: Time(7), status: Status::Ok, ledger });
        }
        recorder.finish(Time(7), &[]);
        let file = SerializedFileReader::new(Bytes::from(file.end(Basis::Synthetic))).unwrap();
        let groups = file.metadata().row_groups();
        assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [met as i64 - 1, 3]);
        let rows = file.get_row_iter(None).unwrap().map(|row| {
            row.unwrap()
                .get_column_iter()
                .map(|(name, field)| (name.clone(), field.clone()))
                .collect::<Vec<_>>()
        });
        for (at, row) in rows.enumerate() {
            let of = |name: &str| row.iter().find(|(own, _)| own == name).unwrap().1.clone();
            let (own, erase) = if at < met { (7, 0) } else { (0, 7) };
            assert_eq!(of("lba"), Field::ULong(at as u64));
            assert_eq!((of("own_flash_ns"), of("behind_erase_ns")), (Field::ULong(own), Field::ULong(erase)));
            assert_eq!(of("operation"), Field::Str("read".to_owned()));
        }
    }
}
