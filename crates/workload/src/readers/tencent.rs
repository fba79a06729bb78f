//! Tencent's cloud block storage traces, CSV (SNIA IOTTA set 27917, its
//! README): `Timestamp,Offset,Size,IOType,VolumeID`, times in whole seconds,
//! offset and size in sectors of 512 bytes, 0 for a read and 1 for a write.

use std::borrow::Cow;

use flashkeel_engine::Operation;

use super::table::{Column, Table, TableReader, Word, word};
use crate::readers::Format;
use crate::text::Separator;

const TICK_NS: u64 = 1_000_000_000;
const WORDS: &[Word] = &[word("0", Operation::Read), word("1", Operation::Write)];

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&["timestamp", "offset", "size", "io type", "volume id"]),
    is_open: false,
    time: 0,
    tick_ns: TICK_NS,
    device: &[4],
    offset: 1,
    offset_bytes: 512,
    length: 2,
    length_bytes: 512,
    operation: Column::At(3, Cow::Borrowed(WORDS)),
    numbers: &[4],
    latency: None,
};

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    shape: "5 fields separated by commas: timestamp in s, offset and size in sectors, 0 = read or 1 = write, volume",
    matches: |_, head| TABLE.matches(head),
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        let tick_ns = options.tick_ns(TICK_NS)?;
        let note = "the times of a Tencent trace are whole seconds: all requests of a second arrive at its beginning";
        let guess = "five columns of numbers are read as tencent: time in s, offset and size in sectors, 1 = write, volume";
        let is_told = options.is_forced || super::is_named(&input.file, FORMAT.name);
        let mut notes = Vec::new();
        notes.extend((!is_told).then(|| guess.to_owned()));
        notes.extend((tick_ns == TICK_NS).then(|| note.to_owned()));
        Ok(TableReader::boxed(input, Table { tick_ns, ..TABLE }, notes))
    },
};
