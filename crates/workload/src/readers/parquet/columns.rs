//! Which column of a Parquet file is what, by its name and its type.

use flashkeel_engine::Span;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::{ColumnDescPtr, Type};

use super::durations::durations;
use crate::names::{self, Column, Meaning};

/// The columns of a file by their names, and what their types say of times.
pub(crate) struct Named {
    /// As the file has them.
    pub names: Vec<String>,
    /// In small letters.
    pub lower: Vec<String>,
    /// Nanoseconds of a whole one, where the type says that: of timestamps and durations.
    pub units_ns: Vec<Option<u64>>,
}

impl Named {
    /// The columns of a file with these names and types.
    pub fn new<'a>(metadata: &FileMetaData, columns: impl Iterator<Item = (String, &'a Type)>) -> Named {
        let durations = durations(metadata);
        let mut named = Named { names: Vec::new(), lower: Vec::new(), units_ns: Vec::new() };
        for (name, column) in columns {
            let duration = durations.iter().find(|(of, _)| *of == name).map(|(_, ns)| *ns);
            let is_number =
                column.is_primitive() && column.get_physical_type() == Physical::INT64 && is_plain(column);
            named.units_ns.push(timestamp_ns(column).or(duration.filter(|_| is_number)));
            named.lower.push(name.to_lowercase());
            named.names.push(name);
        }
        named
    }

    /// Whether anything is known of a column of this name and type.
    pub fn is_known(&self, at: usize) -> bool {
        names::meaning(&self.lower[at]).is_some() || names::meaning(&self.by_type(at)).is_some()
    }

    /// A column of times by its type: as one of its name that says a unit.
    fn by_type(&self, at: usize) -> String {
        self.units_ns[at].map(|_| format!("{}_ns", self.lower[at])).unwrap_or_default()
    }

    /// The column of times that is this, if there is one, and nanoseconds of a whole one, as its type
    /// says, or else its name: none where neither does. A name with a unit counts first, as in text.
    ///
    /// # Errors
    /// A sentence where there are several.
    pub fn time(&self, wanted: Meaning) -> Result<Option<Column>, String> {
        let has_unit = |name: &str| names::meaning(name).is_some_and(|(_, scale)| scale.is_some());
        let by_name = |at: usize| Some(&self.lower[at]).filter(|name| has_unit(name)).cloned();
        let all = 0..self.names.len();
        for names in [
            all.clone().map(|at| by_name(at).unwrap_or_default()).collect(),
            all.map(|at| self.by_type(at)).collect(),
            self.lower.clone(),
        ] {
            match names::best(&names, wanted) {
                (Some(one), Some(other)) => {
                    return Err(names::same(&self.names[one.at], &self.names[other.at]));
                }
                (Some(Column { at, scale }), None) => {
                    return Ok(Some(Column { at, scale: self.units_ns[at].or(scale) }));
                }
                (None, _) => {}
            }
        }
        Ok(None)
    }

    /// A note of what a column's times are by their type, where its name does not say so.
    pub fn unit_note(&self, at: usize) -> Option<String> {
        let by_type = self.units_ns[at]?;
        let by_name = names::meaning(&self.lower[at]).and_then(|(_, scale)| scale);
        let name = &self.names[at];
        (by_type != by_name.unwrap_or(1))
            .then(|| format!("a whole one of {name} is {}, as its type says", Span(by_type)))
    }

    /// A note of the columns that nobody reads, if there are any.
    pub fn unread(&self) -> Option<String> {
        let is_time = |at: usize| names::meaning(&self.by_type(at)).is_some();
        let others = (0..self.names.len()).map(|at| if is_time(at) { "" } else { &self.lower[at] });
        names::unread(&others.map(str::to_owned).collect::<Vec<_>>())
    }
}

/// Nanoseconds of a whole one of timestamps.
fn timestamp_ns(column: &Type) -> Option<u64> {
    let info = column.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Timestamp(timestamp)), _) => Some(match timestamp.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1_000,
            TimeUnit::NANOS => 1,
        }),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(1_000),
        _ => None,
    }
}

/// Whether a number in a column is that and nothing else, such as a date.
fn is_plain(column: &Type) -> bool {
    let info = column.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Integer(_)) => true,
        Some(_) => false,
        None => !matches!(
            info.converted_type(),
            ConvertedType::DATE
                | ConvertedType::DECIMAL
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS
        ),
    }
}

/// What a column has to hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text, or what `is_write` may be.
    Operation,
    Whole,
    /// A name, or a number for one.
    Name,
    Time,
}

/// Refuses a column of a type that it cannot have; `unit_ns` is of timestamps and durations.
pub(super) fn check(
    kind: Kind,
    name: &str,
    column: &ColumnDescPtr,
    unit_ns: Option<u64>,
) -> Result<(), String> {
    if column.max_rep_level() > 0 {
        return Err(format!("column {name} is nested; it has to have one value in a row"));
    }
    let physical = column.physical_type();
    let is_whole = matches!(physical, Physical::INT32 | Physical::INT64);
    let is_text = physical == Physical::BYTE_ARRAY;
    let (is_right, needed) = match kind {
        Kind::Operation => {
            (is_whole || is_text || physical == Physical::BOOLEAN, "text, or 0 and 1 or false and true")
        }
        Kind::Whole => (is_whole, "whole numbers"),
        Kind::Name => (is_whole || is_text, "whole numbers or text"),
        Kind::Time => (
            is_whole || is_text || matches!(physical, Physical::FLOAT | Physical::DOUBLE),
            "numbers, timestamps, durations or text",
        ),
    };
    let is_meant = match unit_ns {
        Some(_) => kind == Kind::Time && is_whole,
        None => is_text && column.converted_type() != ConvertedType::DECIMAL || is_plain(column.self_type()),
    };
    if is_right && is_meant {
        return Ok(());
    }
    let holds = match column.logical_type_ref() {
        _ if !is_right => physical.to_string(),
        Some(meant) => format!("{meant:?}"),
        None if unit_ns.is_some() => "durations".to_owned(),
        None => column.converted_type().to_string(),
    };
    Err(format!("column {name} holds {holds}; it has to hold {needed}"))
}
