//! Columns with a header, which is also how a trace gets into a table: time in
//! ns, `R`, `W`, `T` or `Z`, offset and length in bytes.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{Form, Writer};
use crate::readers::COLUMN_NAMES;

pub(super) const WRITER: Writer = Writer {
    name: "columns",
    tick_ns: 1,
    operations: &[Operation::Read, Operation::Write, Operation::Trim, Operation::WriteZeroes],
    is_named: false,
    form: Form::Lines {
        header: |out, _| writeln!(out, "{COLUMN_NAMES}"),
        line: |out, _, ticks, arrival| {
            let operation = letter(arrival.operation);
            let (offset, bytes) = (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.sectors) * SECTOR_BYTES);
            writeln!(out, "{ticks},{operation},{offset},{bytes}")
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
        Operation::Flush | Operation::Demote => unreachable!("not among the operations above"),
    }
}
