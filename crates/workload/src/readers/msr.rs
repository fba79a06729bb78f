//! MSR Cambridge block traces, CSV as published by SNIA IOTTA:
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Timestamps are Windows file times (100 ns), offset and size are bytes, and
//! a device is named `hostname.disk`. The recorded response time is not used.

use flashkeel_config::did_you_mean;
use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record};
use crate::text::{Field, Separator, exactly, lines, number, quote};
use crate::{Counts, Place, WorkloadError};

const NAMES: [&str; 7] = ["timestamp", "hostname", "disk number", "type", "offset", "size", "response time"];
/// Windows file time.
const TICK_NS: u64 = 100;

pub(super) const FORMAT: Format = Format {
    name: "msr",
    shape: "7 fields separated by commas: timestamp, hostname, disk number, Read or Write, offset, size, response time",
    matches,
    open,
};

fn matches(_: &str, head: &[u8]) -> usize {
    let is_request = |line: &&[u8]| {
        let mut fields = line.split(|&byte| byte == b',');
        fields.clone().count() == NAMES.len()
            && fields.next().is_some_and(|time| number(time).is_some())
            && fields.nth(3).is_some_and(|offset| number(offset).is_some())
    };
    lines(head, DETECTION_LINES).filter(is_request).count()
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let tick_ns = options.tick_ns(TICK_NS)?;
    Ok(Box::new(Msr {
        file: input.file.clone(),
        input,
        tick_ns,
        devices: Devices::default(),
        name: Vec::new(),
    }))
}

struct Msr {
    file: String,
    input: Input,
    tick_ns: u64,
    devices: Devices,
    name: Vec<u8>,
}

impl Reader for Msr {
    fn next(&mut self, counts: &mut Counts) -> Result<Option<Record>, WorkloadError> {
        while let Some((item, line)) = self.input.line()? {
            if line.is_empty() || item == 1 && line.starts_with(b"Timestamp,") {
                counts.not_io += 1;
                continue;
            }
            return parse(line, item, self.tick_ns, &mut self.devices, &mut self.name)
                .map(Some)
                .map_err(|message| WorkloadError::at(&self.file, Place::Line(item), message));
        }
        Ok(None)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }
}

fn parse(
    line: &[u8],
    item: u64,
    tick_ns: u64,
    devices: &mut Devices,
    name: &mut Vec<u8>,
) -> Result<Record, String> {
    let field = |position: usize| Field::new(position, NAMES[position - 1]);
    let fields = line.split(|&byte| byte == b',');
    let [time, host, disk, operation, offset, size, response] =
        exactly(fields, line, Separator::Comma, &NAMES)?;
    let time_ns = field(1)
        .number(time)?
        .checked_mul(tick_ns)
        .ok_or_else(|| field(1).refuse("too large for a time in nanoseconds"))?;
    field(3).number(disk)?;
    field(7).number(response)?;
    name.clear();
    name.extend_from_slice(host);
    name.push(b'.');
    name.extend_from_slice(disk);
    let device = devices.index(name).map_err(|why| field(2).refuse(why))?;
    let operation = if operation.eq_ignore_ascii_case(b"Read") {
        Operation::Read
    } else if operation.eq_ignore_ascii_case(b"Write") {
        Operation::Write
    } else {
        let hint = did_you_mean(&String::from_utf8_lossy(operation), ["Read", "Write"]);
        return Err(field(4).refuse(format!("unknown operation {}{hint}", quote(operation))));
    };
    let (offset, bytes) = (field(5).number(offset)?, field(6).number(size)?);
    if offset.checked_add(bytes).is_none() {
        return Err(field(5).refuse("offset and size lie beyond any 64-bit address"));
    }
    Ok(Record { time_ns, item, device, operation, offset, bytes })
}
