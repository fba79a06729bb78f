//! Storage Performance Council traces (SPC Trace File Format Specification
//! 1.0.1), as UMass publishes Financial and WebSearch:
//! `ASU,LBA,Size,Opcode,Timestamp`, blocks of 512 bytes, size in bytes, `R` or
//! `W` in any case, seconds with decimals. Further fields may follow.

use std::borrow::Cow;

use super::table::{Column, LETTERS, Table, TableReader};
use crate::readers::Format;
use crate::text::Separator;

const TICK_NS: u64 = 1_000_000_000;

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&["asu", "lba", "size", "opcode", "timestamp"]),
    is_open: true,
    time: 4,
    tick_ns: TICK_NS,
    device: &[0],
    offset: 1,
    offset_bytes: 512,
    length: 2,
    length_bytes: 1,
    operation: Column::At(3, Cow::Borrowed(LETTERS)),
    numbers: &[0],
    latency: None,
};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    shape: "5 fields separated by commas: ASU, LBA, size in bytes, R or W, timestamp in s",
    matches: |_, head| TABLE.matches(head),
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        Ok(TableReader::boxed(input, Table { tick_ns: options.tick_ns(TICK_NS)?, ..TABLE }, Vec::new()))
    },
};
