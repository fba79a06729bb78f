//! MQSim ascii traces: five whole numbers separated by spaces: time, device,
//! first sector (512 bytes), sectors, and 1 for a read or 0 for a write.
//!
//! A tick is 1 ns unless `time_unit` says otherwise. SSDsim traces have the
//! same columns: a file whose name contains `ssdsim` is taken for one of those,
//! any other for MQSim's; `format` forces either.

use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record, sector_range};
use crate::text::{Field, Separator, exactly, lines, number, quote, words};
use crate::{Counts, Place, WorkloadError};

const NAMES: [&str; 5] = ["time", "device", "lba", "sectors", "operation"];

pub(super) const FORMAT: Format = Format {
    name: "mqsim",
    shape: "5 fields separated by spaces: time in ns, device, lba, sectors, 1 = read or 0 = write",
    matches: |file, head| if super::ssdsim::is_named(file) { 0 } else { columns(head) },
    open: |input, options| open(input, FORMAT.name, options, 1, Vec::new()),
};

/// How many of the first lines are five whole numbers.
pub(super) fn columns(head: &[u8]) -> usize {
    let is_request =
        |line: &&[u8]| words(line).count() == NAMES.len() && words(line).all(|word| number(word).is_some());
    lines(head, DETECTION_LINES).filter(is_request).count()
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
    Ok(Box::new(Columns { file: input.file.clone(), input, tick_ns, devices: Devices::default(), notes }))
}

struct Columns {
    file: String,
    input: Input,
    tick_ns: u64,
    devices: Devices,
    notes: Vec<String>,
}

impl Reader for Columns {
    fn next(&mut self, counts: &mut Counts) -> Result<Option<Record>, WorkloadError> {
        while let Some((item, line)) = self.input.line()? {
            if line.is_empty() {
                counts.not_io += 1;
                continue;
            }
            return parse(line, item, self.tick_ns, &mut self.devices)
                .map(Some)
                .map_err(|message| WorkloadError::at(&self.file, Place::Line(item), message));
        }
        Ok(None)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn parse(line: &[u8], item: u64, tick_ns: u64, devices: &mut Devices) -> Result<Record, String> {
    let field = |position: usize| Field::new(position, NAMES[position - 1]);
    let [time, device, lba, sectors, operation] = exactly(words(line), line, Separator::Space, &NAMES)?;
    let time_ns = field(1)
        .number(time)?
        .checked_mul(tick_ns)
        .ok_or_else(|| field(1).refuse("too large for a time in nanoseconds"))?;
    field(2).number(device)?;
    let device = devices.index(device).map_err(|why| field(2).refuse(why))?;
    let range = sector_range(field(3).number(lba)?, field(4).number(sectors)?);
    let (offset, bytes) = range.map_err(|why| field(3).refuse(why))?;
    let operation = match operation {
        b"0" => Operation::Write,
        b"1" => Operation::Read,
        _ => {
            return Err(
                field(5).refuse(format!("unknown operation {}; 1 is a read and 0 a write", quote(operation)))
            );
        }
    };
    Ok(Record { time_ns, item, device, operation, offset, bytes })
}
