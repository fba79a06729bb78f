//! MSR Cambridge block traces, CSV as published by SNIA IOTTA:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamps are Windows file times (100 ns), offset and size are bytes, and
//! a device is named `hostname.disk`. A replay does not use the
//! recorded response time; a log of latencies and a conversion do.
//! Other collections have the same columns with times in another unit, with
//! decimals too: `time_unit` says which.

use std::borrow::Cow;

use flashkeel_engine::Operation;

use super::table::{Column, Latency, Table, TableReader, Word, word};
use crate::calendar::calendar_ns;
use crate::readers::{DETECTION_LINES, Format};
use crate::text::{Separator, lines, scaled};

const NAMES: [&str; 7] = ["timestamp", "hostname", "disk number", "type", "offset", "size", "response time"];
/// Windows file time.
const TICK_NS: u64 = 100;
const WORDS: &[Word] = &[word("Read", Operation::Read), word("Write", Operation::Write)];

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&NAMES),
    is_open: false,
    time: 0,
    tick_ns: TICK_NS,
    device: &[1, 2],
    offset: 4,
    offset_bytes: 1,
    length: 5,
    length_bytes: 1,
    operation: Column::At(3, Cow::Borrowed(WORDS)),
    numbers: &[2],
    latency: Some(Latency::Took(6, TICK_NS)),
};

pub(super) const FORMAT: Format = Format {
    name: "msr",
    shape: "7 fields separated by commas: timestamp, hostname, disk number, Read or Write, offset, size, response time",
    matches,
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        let table = options.asked(TABLE.in_ticks(options.tick_ns(TICK_NS)?));
        Ok(TableReader::boxed(input, table, Vec::new()))
    },
};

/// Tells by numbers where they must be, so that a misspelt operation is found
/// later, and named.
fn matches(_: &str, head: &[u8]) -> usize {
    if TABLE.is_named_otherwise(head) {
        return 0;
    }
    let is_request = |line: &&[u8]| {
        let mut fields = [&[] as &[u8]; NAMES.len()];
        let is_number = |text: &[u8]| scaled(text, 1).is_some();
        Separator::Comma.fields(line, &mut fields) == NAMES.len()
            && (is_number(fields[TABLE.time]) || calendar_ns(fields[TABLE.time]).is_some())
            && is_number(fields[TABLE.offset])
            // SPC's, with two further fields.
            && !(is_number(fields[1]) && matches!(fields[3], b"R" | b"W" | b"r" | b"w"))
    };
    lines(head, DETECTION_LINES).filter(is_request).count()
}
