//! DiskSim ascii traces (DiskSim 4.0 reference manual, CMU-PDL-08-101, "The
//! ascii input trace format"): arrival time in ms with decimals, device, first
//! block (512 bytes), blocks, and flags in hexadecimal whose lowest bit is set
//! for a read.
//!
//! The other columns are MQSim's: decimals in the time, or `disksim` in the
//! file's name, tell it.

use super::table::{Column, Table, TableReader};
use crate::readers::{Format, mqsim};
use crate::text::{lines, words};

const NAMES: [&str; 5] = ["time", "device", "block", "blocks", "flags"];
const TICK_NS: u64 = 1_000_000;

const TABLE: Table = mqsim::five_columns(&NAMES, Column::Bit(4), TICK_NS);

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    shape: "5 fields separated by spaces: time in ms with decimals, device, block, blocks, 1 = read or 0 = write",
    matches: |file, head| {
        let has_decimals = |line: &[u8]| words(line).next().is_some_and(|time| time.contains(&b'.'));
        let is_disksim = super::is_named(file, FORMAT.name) || lines(head, 2).any(has_decimals);
        if is_disksim { TABLE.matches(head) } else { 0 }
    },
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        Ok(TableReader::boxed(input, Table { tick_ns: options.tick_ns(TICK_NS)?, ..TABLE }, Vec::new()))
    },
};
