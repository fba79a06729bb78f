//! MQSim ascii traces: five whole numbers separated by spaces: time, device,
//! first sector (512 bytes), sectors, and 1 for a read or 0 for a write
//! (`traces/README.md` of MQSim).
//!
//! A tick is 1 ns unless `time_unit` says otherwise. SSDsim and DiskSim traces
//! have the same columns: a file whose name contains `ssdsim` or `disksim` is
//! taken for one of those, any other for MQSim's; `format` forces either.

use std::borrow::Cow;

use flashkeel_engine::Operation;

use super::table::{Column, Table, TableReader, Word, word};
use crate::WorkloadError;
use crate::input::Input;
use crate::readers::{DETECTION_LINES, Format, Reader, ReaderOptions};
use crate::text::{Separator, lines, number, words};

const NAMES: [&str; 5] = ["time", "device", "lba", "sectors", "operation"];
const WORDS: &[Word] = &[word("1", Operation::Read), word("0", Operation::Write)];

const TABLE: Table = five_columns(&NAMES, Column::At(4, Cow::Borrowed(WORDS)), 1);
/// Formats with the same columns, which are told by the names of their files.
const ALIKE: [&str; 2] = ["ssdsim", "disksim"];

pub(super) const FORMAT: Format = Format {
    name: "mqsim",
    shape: "5 fields separated by spaces: time in ns, device, lba, sectors, 1 = read or 0 = write",
    matches: |file, head| {
        if ALIKE.iter().any(|name| super::is_named(file, name)) { 0 } else { columns(head) }
    },
    open: |input, options| {
        let note = "MQSim, SSDsim and DiskSim traces have the same columns; this one is read as mqsim, in ns";
        let is_told = options.is_forced || super::is_named(&input.file, "mqsim");
        let notes = if is_told || options.time_unit.is_some() { Vec::new() } else { vec![note.to_owned()] };
        open(input, FORMAT.name, options, 1, notes)
    },
};

/// Five columns separated by spaces: time, device, sector, sectors and operation.
pub(super) const fn five_columns(names: &'static [&'static str], operation: Column, tick_ns: u64) -> Table {
    Table {
        separator: Separator::Space,
        names: Cow::Borrowed(names),
        is_open: false,
        time: 0,
        tick_ns,
        device: &[1],
        offset: 2,
        offset_bytes: 512,
        length: 3,
        length_bytes: 512,
        operation,
        numbers: &[1],
        latency: None,
    }
}

/// How many of the first lines are five whole numbers.
pub(super) fn columns(head: &[u8]) -> usize {
    let is_request =
        |line: &&[u8]| words(line).count() == NAMES.len() && words(line).all(|word| number(word).is_some());
    if TABLE.is_named_otherwise(head) { 0 } else { lines(head, DETECTION_LINES).filter(is_request).count() }
}

/// Reads these columns with the given tick.
pub(super) fn open(
    input: Input,
    format: &str,
    options: &ReaderOptions,
    default_tick_ns: u64,
    notes: Vec<String>,
) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(format)?;
    let tick_ns = options.tick_ns(default_tick_ns)?;
    Ok(TableReader::boxed(input, Table { tick_ns, ..TABLE }, notes))
}
