//! Parquet files whose columns have the names of `crate::names`, as request logs of our own.

use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::record::Field;
use parquet::schema::types::Type;

use super::named_columns::Columns;
use super::{LatencyLog, LatencyLogOptions, of_chosen};
use crate::error::Pulse;
use crate::input::Input;
use crate::names::{MOST, meaning};
use crate::readers::{ParquetFile, explain_parquet, guard_parquet, open_parquet};
use crate::{Location, Stopped, WorkloadError};

/// Reads a log of rows. Columns of other names are passed over.
pub(super) fn read(
    input: &Input,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let file = input.file.clone();
    let opened = open_parquet(input)?;
    let (projection, names) =
        known(&opened).map_err(|error| WorkloadError::file(&file, explain_parquet(&error)))?;
    let columns = Columns::of_rows(names.clone()).map_err(|why| WorkloadError::file(&file, why))?;
    let in_all = opened.metadata().file_metadata().num_rows().max(1) as f64;
    let mut devices = columns.devices();
    let (mut all, mut passed_over, mut item) = (Vec::new(), 0, 0);
    let mut rows = guard_parquet(|| opened.get_row_iter(Some(projection)))
        .map_err(|error| WorkloadError::file(&file, explain_parquet(&error)))?;
    loop {
        let at = Location::Row(item + 1);
        let damaged = |error: ParquetError| WorkloadError::at(&file, at, explain_parquet(&error));
        let Some(row) = guard_parquet(|| rows.next().transpose()).map_err(damaged)? else { break };
        item += 1;
        pulse.step(|| item as f64 / in_all)?;
        let refuse = |message| WorkloadError::at(&file, at, message);
        let texts: Result<Vec<String>, String> =
            row.get_column_iter().map(|(name, field)| text(name, field)).collect();
        let texts = texts.map_err(refuse)?;
        let mut fields = [&[] as &[u8]; MOST];
        for (field, text) in fields.iter_mut().zip(&texts) {
            *field = text.as_bytes();
        }
        match columns.request(&fields, item, &mut devices).map_err(refuse)? {
            Some(found) => all.push(found),
            None => passed_over += 1,
        }
    }
    let (requests, others) = of_chosen(&file, &devices, options, all)?;
    let passed_over = passed_over + others;
    Ok(LatencyLog { file, format: "parquet", requests, passed_over, notes: Vec::new() })
}

/// The columns that have a meaning, and their names in small letters.
fn known(file: &ParquetFile) -> Result<(Type, Vec<String>), ParquetError> {
    let root = file.metadata().file_metadata().schema();
    let is_known = |name: &str| meaning(&name.to_lowercase()).is_some();
    let kept: Vec<_> =
        root.get_fields().iter().filter(|it| is_known(it.name())).take(MOST).cloned().collect();
    let names = kept.iter().map(|column| column.name().to_lowercase()).collect();
    Ok((Type::group_type_builder(root.name()).with_fields(kept).build()?, names))
}

/// A value as text of columns has it.
fn text(name: &str, field: &Field) -> Result<String, String> {
    Ok(match field {
        Field::Str(text) => text.clone(),
        Field::Bool(is_set) => is_set.to_string(),
        Field::Byte(number) => number.to_string(),
        Field::Short(number) => number.to_string(),
        Field::Int(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::UByte(number) => number.to_string(),
        Field::UShort(number) => number.to_string(),
        Field::UInt(number) => number.to_string(),
        Field::ULong(number) => number.to_string(),
        Field::Float(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Null => return Err(format!("column {name} has no value")),
        _ => return Err(format!("column {name} holds neither numbers nor text")),
    })
}
