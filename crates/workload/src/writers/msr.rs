//! MSR Cambridge CSV. Times are file times of 100 ns from the start of the
//! workload; the disk is 0, the response time that of the
//! recording, 0 where it is not known.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{Form, Writer};

pub(super) const WRITER: Writer = Writer {
    name: "msr",
    tick_ns: 100,
    operations: &[Operation::Read, Operation::Write],
    is_named: true,
    no_response: Some("0"),
    form: Form::Lines {
        header: |_, _, _| Ok(()),
        line: |out, name, ticks, arrival, took| {
            let operation = if arrival.operation == Operation::Read { "Read" } else { "Write" };
            let (offset, bytes) = (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.sectors) * SECTOR_BYTES);
            let took = took.unwrap_or(0);
            writeln!(out, "{ticks},{name},0,{operation},{offset},{bytes},{took}")
        },
    },
};
