//! Parquet files whose columns have the names of `crate::names`, as request logs of our own.

use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};

use super::named_columns::Columns;
use super::{LatencyLog, LatencyLogOptions, of_chosen};
use crate::error::Pulse;
use crate::input::Input;
use crate::names::MOST;
use crate::readers::{NamedColumns, ParquetFile, explain_parquet, guard_parquet, open_parquet};
use crate::{Location, Stopped, WorkloadError};

/// Reads a log of rows. Columns of other names are passed over.
pub(super) fn read(
    input: &Input,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let file = input.file.clone();
    let opened = open_parquet(input)?;
    let (projection, named) =
        known(&opened).map_err(|error| WorkloadError::file(&file, explain_parquet(&error)))?;
    let columns = Columns::of_rows(&named).map_err(|why| WorkloadError::file(&file, why))?;
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
        let texts: Result<Vec<Option<String>>, String> =
            row.get_column_iter().map(|(name, field)| text(name, field)).collect();
        let texts = texts.map_err(refuse)?;
        let mut fields = [&[] as &[u8]; MOST];
        for (field, text) in fields.iter_mut().zip(&texts) {
            *field = text.as_deref().unwrap_or_default().as_bytes();
        }
        let found = columns.request(&fields, item, &mut devices);
        match (found, texts.iter().position(Option::is_none)) {
            (Ok(None), _) => passed_over += 1,
            // What is read or written has a value in each.
            (_, Some(at)) => return Err(refuse(format!("column {} has no value", named.names[at])).into()),
            (Ok(Some(found)), None) => all.push(found),
            (Err(why), None) => return Err(refuse(why).into()),
        }
    }
    let (requests, others) = of_chosen(&file, &devices, options, all)?;
    let passed_over = passed_over + others;
    Ok(LatencyLog { file, format: "parquet", requests, passed_over, notes: Vec::new() })
}

/// The columns that have a meaning.
fn known(file: &ParquetFile) -> Result<(Type, NamedColumns), ParquetError> {
    let metadata = file.metadata().file_metadata();
    let named = |columns: &[TypePtr]| {
        NamedColumns::new(metadata, columns.iter().map(|column| (column.name().to_owned(), &**column)))
    };
    let columns = metadata.schema().get_fields();
    let all = named(columns);
    let known = (0..columns.len()).filter(|&at| all.is_known(at)).take(MOST);
    let kept: Vec<TypePtr> = known.map(|at| columns[at].clone()).collect();
    let names = named(&kept);
    Ok((Type::group_type_builder(metadata.schema().name()).with_fields(kept).build()?, names))
}

/// A value as text of columns has it, if there is one.
fn text(name: &str, field: &Field) -> Result<Option<String>, String> {
    Ok(Some(match field {
        Field::Str(text) => text.clone(),
        Field::Bool(is_set) => is_set.to_string(),
        Field::Byte(number) => number.to_string(),
        Field::Short(number) => number.to_string(),
        Field::Int(number) => number.to_string(),
        Field::Long(number) | Field::TimestampMillis(number) | Field::TimestampMicros(number) => {
            number.to_string()
        }
        Field::UByte(number) => number.to_string(),
        Field::UShort(number) => number.to_string(),
        Field::UInt(number) => number.to_string(),
        Field::ULong(number) => number.to_string(),
        // Of 0 there is a negative one.
        Field::Float(number) => (number + 0.0).to_string(),
        Field::Double(number) => (number + 0.0).to_string(),
        Field::Null => return Ok(None),
        _ => return Err(format!("column {name} holds neither numbers nor text")),
    }))
}
