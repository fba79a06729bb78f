//! Parquet files of any columns.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::file;

/// One column of a file.
pub enum Cells<'a> {
    Whole(&'a [i64]),
    Narrow(&'a [i32]),
    Single(&'a [f32]),
    Double(&'a [f64]),
    Words(&'a [&'a str]),
    Flags(&'a [bool]),
    /// Whether there is a value, and those that are there.
    Some(&'a [i16], &'a [i64]),
}

/// A file of these columns, with the rows of one group.
pub fn table(columns: &str, groups: &[&[Cells<'_>]]) -> PathBuf {
    table_of(None, columns, groups)
}

/// The same with Arrow's schema beside it.
pub fn table_of(arrow: Option<&str>, columns: &str, groups: &[&[Cells<'_>]]) -> PathBuf {
    let path = file("t.parquet", b"");
    let schema = Arc::new(parse_message_type(&format!("message t {{ {columns} }}")).unwrap());
    let arrow = arrow.map(|schema| vec![KeyValue::new("ARROW:schema".to_owned(), schema.to_owned())]);
    let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(arrow).build());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    for cells in groups {
        let mut group = writer.next_row_group().unwrap();
        for cells in *cells {
            let mut column = group.next_column().unwrap().unwrap();
            match cells {
                Cells::Whole(values) => column.typed::<Int64Type>().write_batch(values, None, None),
                Cells::Narrow(values) => column.typed::<Int32Type>().write_batch(values, None, None),
                Cells::Single(values) => column.typed::<FloatType>().write_batch(values, None, None),
                Cells::Double(values) => column.typed::<DoubleType>().write_batch(values, None, None),
                Cells::Flags(values) => column.typed::<BoolType>().write_batch(values, None, None),
                Cells::Some(levels, values) => {
                    column.typed::<Int64Type>().write_batch(values, Some(levels), None)
                }
                Cells::Words(words) => {
                    let words: Vec<ByteArray> = words.iter().map(|word| ByteArray::from(*word)).collect();
                    column.typed::<ByteArrayType>().write_batch(&words, None, None)
                }
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    path
}
