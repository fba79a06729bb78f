//! The virtual desktop traces of SYSTOR '17, CSV (SNIA IOTTA set 4928, its
//! README): `Timestamp,Response,IOType,LUN,Offset,Size`, Unix time of issue in
//! seconds with decimals, `R`, `W` or nothing, offset and size in bytes.

use std::borrow::Cow;

use flashkeel_engine::Operation;

use super::table::{Column, Latency, Table, TableReader, Word, word};
use crate::readers::Format;
use crate::text::Separator;

const TICK_NS: u64 = 1_000_000_000;
/// What its README says nothing about is no request.
const WORDS: &[Word] = &[
    word("R", Operation::Read),
    word("W", Operation::Write),
    Word { text: Cow::Borrowed(""), operation: None },
];

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&["timestamp", "response", "io type", "lun", "offset", "size"]),
    is_open: false,
    time: 0,
    tick_ns: TICK_NS,
    device: &[3],
    offset: 4,
    offset_bytes: 1,
    length: 5,
    length_bytes: 1,
    operation: Column::At(2, Cow::Borrowed(WORDS)),
    numbers: &[3],
    latency: Some(Latency::Took(1, TICK_NS)),
};

pub(super) const FORMAT: Format = Format {
    name: "systor",
    shape: "6 fields separated by commas: timestamp in s, response, R or W, LUN, offset, size",
    matches: |_, head| TABLE.matches(head),
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        let table = options.asked(TABLE.in_ticks(options.tick_ns(TICK_NS)?));
        Ok(TableReader::boxed(input, table, Vec::new()))
    },
};
