//! DiskSim ascii traces (DiskSim 4.0 reference manual, CMU-PDL-08-101, "The
//! ascii input trace format"): arrival time in ms with decimals, device, first
//! block (512 bytes), blocks, and flags in hexadecimal, with or without `0x`, as C's
//! `%x` reads them, whose lowest bit is set for a read.
//!
//! The other columns are MQSim's: decimals in the time, `0x` before the flags, or `disksim`
//! in the file's name tell it.

use super::table::{Column, Table, TableReader, without_0x};
use crate::readers::{Format, mqsim};
use crate::text::{lines, words};

const NAMES: [&str; 5] = ["time", "device", "block", "blocks", "flags"];
const TICK_NS: u64 = 1_000_000;

const TABLE: Table = mqsim::five_columns(&NAMES, Column::Bit(4), TICK_NS);

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    shape: "5 fields separated by spaces: time in ms with decimals, device, block, blocks, 1 = read or 0 = write",
    matches: |file, head| {
        let is_its = |line: &[u8]| {
            let has_decimals = words(line).next().is_some_and(|time| time.contains(&b'.'));
            has_decimals || words(line).nth(4).is_some_and(|flags| without_0x(flags) != flags)
        };
        let is_disksim = super::is_named(file, FORMAT.name) || lines(head, 2).any(is_its);
        if is_disksim { TABLE.matches(head) } else { 0 }
    },
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        Ok(TableReader::boxed(input, Table { tick_ns: options.tick_ns(TICK_NS)?, ..TABLE }, Vec::new()))
    },
};
