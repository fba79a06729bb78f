//! Columns with a header, which is also how a trace gets into a table: time in
//! ns, `R`, `W`, `T`, `Z` or `F`, offset and length in bytes, both 0 of a flush, and what the
//! request took, if that is known.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{Form, Writer};
use crate::readers::COLUMN_NAMES;

/// What the first line ends with where there is such a column.
const RESPONSE_NAME: &str = ",latency_ns";

/// Those that have a letter.
pub(super) const OPERATIONS: &[Operation] =
    &[Operation::Read, Operation::Write, Operation::Trim, Operation::WriteZeroes, Operation::Flush];

pub(super) const WRITER: Writer = Writer {
    name: "columns",
    tick_ns: 1,
    operations: OPERATIONS,
    is_named: false,
    no_response: Some("nothing"),
    form: Form::Lines {
        header: |out, _, is_timed| {
            writeln!(out, "{COLUMN_NAMES}{}", if is_timed { RESPONSE_NAME } else { "" })
        },
        line: |out, _, ticks, arrival, took| {
            let operation = letter(arrival.operation);
            let (offset, bytes) = (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.sectors) * SECTOR_BYTES);
            write!(out, "{ticks},{operation},{offset},{bytes}")?;
            match took {
                // An empty field: 0 would be taken for what it took.
                Some(0) => writeln!(out, ","),
                Some(took) => writeln!(out, ",{took}"),
                None => writeln!(out),
            }
        },
    },
};

/// What stands for an operation.
pub(super) fn letter(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "R",
        Operation::Write => "W",
        Operation::Trim => "T",
        Operation::WriteZeroes => "Z",
        Operation::Flush => "F",
        Operation::Demote => unreachable!("not among the operations above"),
    }
}
