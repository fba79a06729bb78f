//! Alibaba Cloud's block traces, CSV (`README.md` of alibaba/block-traces):
//! `device_id,opcode,offset,length,timestamp`, opcode `R` or `W`, offset and
//! length in bytes, times in µs.

use std::borrow::Cow;

use super::table::{Column, LETTERS, Table, TableReader};
use crate::readers::Format;
use crate::text::Separator;

const TICK_NS: u64 = 1000;

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&["device id", "opcode", "offset", "length", "timestamp"]),
    is_open: false,
    time: 4,
    tick_ns: TICK_NS,
    device: &[0],
    offset: 2,
    offset_bytes: 1,
    length: 3,
    length_bytes: 1,
    operation: Column::At(1, Cow::Borrowed(LETTERS)),
    numbers: &[0],
    latency: None,
};

pub(super) const FORMAT: Format = Format {
    name: "alibaba",
    shape: "5 fields separated by commas: device, R or W, offset, length, timestamp in us",
    matches: |_, head| TABLE.matches(head),
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        Ok(TableReader::boxed(input, Table { tick_ns: options.tick_ns(TICK_NS)?, ..TABLE }, Vec::new()))
    },
};
