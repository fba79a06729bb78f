//! fio I/O log of version 3: timestamps in µs, one file.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{Form, Writer};

pub(super) const WRITER: Writer = Writer {
    name: "fio",
    tick_ns: 1000,
    operations: &[Operation::Read, Operation::Write, Operation::Trim, Operation::Flush],
    is_named: true,
    no_response: None,
    form: Form::Lines {
        header: |out, name, _| write!(out, "fio version 3 iolog\n0 {name} add\n0 {name} open\n"),
        line: |out, name, ticks, arrival, _| {
            let action = match arrival.operation {
                Operation::Read => "read",
                Operation::Write => "write",
                Operation::Trim => "trim",
                Operation::Flush => "sync",
                Operation::WriteZeroes | Operation::Demote => unreachable!("not among the operations above"),
            };
            let (offset, bytes) = (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.sectors) * SECTOR_BYTES);
            writeln!(out, "{ticks} {name} {action} {offset} {bytes}")
        },
    },
};
