//! MQSim ascii: time in ns, device 0, first sector, sectors, 1 for a read.

use flashkeel_engine::Operation;

use super::{Form, Writer};

pub(super) const WRITER: Writer = Writer {
    name: "mqsim",
    tick_ns: 1,
    operations: &[Operation::Read, Operation::Write],
    is_named: false,
    no_response: None,
    form: Form::Lines {
        header: |_, _, _| Ok(()),
        line: |out, _, ticks, arrival, _| {
            let operation = u8::from(arrival.operation == Operation::Read);
            writeln!(out, "{ticks} 0 {} {} {operation}", arrival.lba.0, arrival.sectors)
        },
    },
};
