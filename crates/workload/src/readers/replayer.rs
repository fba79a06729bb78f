//! CSV of the trace replayers around FEMU and ttFlash (`replayer/README.md` of
//! huaicheng/replayer): time in ms, disk, offset and size in bytes, and 1 for a
//! read or 0 for a write. Sectors in the place of bytes are of something else:
//! detection takes only ranges of whole sectors for this format.

use std::borrow::Cow;

use flashkeel_engine::Operation;

use super::table::{Column, Table, TableReader, Word, word};
use crate::readers::Format;
use crate::text::Separator;

const TICK_NS: u64 = 1_000_000;
const WORDS: &[Word] = &[word("1", Operation::Read), word("0", Operation::Write)];

pub(super) const TABLE: Table = Table {
    separator: Separator::Comma,
    names: Cow::Borrowed(&["time", "disk", "offset", "size", "type"]),
    is_open: false,
    time: 0,
    tick_ns: TICK_NS,
    device: &[1],
    offset: 2,
    offset_bytes: 1,
    length: 3,
    length_bytes: 1,
    operation: Column::At(4, Cow::Borrowed(WORDS)),
    numbers: &[1],
    latency: None,
};

pub(super) const FORMAT: Format = Format {
    name: "replayer",
    shape: "5 fields separated by commas: time in ms, disk, offset and size in bytes, 1 = read or 0 = write",
    matches: |_, head| {
        TABLE.matches_where(head, |found| found.bytes >= 512 && (found.offset | found.bytes) % 512 == 0)
    },
    open: |input, options| {
        options.refuse_action(FORMAT.name)?;
        let note = "five columns of numbers are read as replayer: time in ms, disk, offset and size in bytes, 1 = read";
        let is_told = options.is_forced || super::is_named(&input.file, FORMAT.name);
        let notes = if is_told { Vec::new() } else { vec![note.to_owned()] };
        Ok(TableReader::boxed(input, Table { tick_ns: options.tick_ns(TICK_NS)?, ..TABLE }, notes))
    },
};
