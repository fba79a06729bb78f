//! MSR Cambridge CSV. Times are file times of 100 ns from the start of the
//! workload; the disk is 0, the response time 0.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{Form, Writer};

pub(super) const WRITER: Writer = Writer {
    name: "msr",
    tick_ns: 100,
    operations: &[Operation::Read, Operation::Write],
    is_named: true,
    form: Form::Lines {
        header: |_, _| Ok(()),
        line: |out, name, ticks, arrival| {
            let operation = if arrival.operation == Operation::Read { "Read" } else { "Write" };
            let (offset, bytes) = (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.sectors) * SECTOR_BYTES);
            writeln!(out, "{ticks},{name},0,{operation},{offset},{bytes},0")
        },
    },
};
