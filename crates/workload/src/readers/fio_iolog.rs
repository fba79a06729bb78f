//! fio I/O logs of version 2 (`file action [offset length]`) and version 3
//! (`timestamp file action [offset length]`), as described in fio's manual,
//! "Trace file format".
//!
//! Offsets and lengths are bytes. Version 3 has timestamps in µs. Version 2
//! has no times of its own: `wait` lines give µs after the previous wait, and
//! requests between two waits arrive together. sync, datasync and
//! sync_file_range are flushes; add, open, close and unlink are passed over.

use flashkeel_config::did_you_mean;
use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{Devices, Format, Reader, ReaderOptions, Record};
use crate::text::{Field, lines, quote, words};
use crate::{Counts, Location, WorkloadError};

const TICK_NS: u64 = 1000;
const ACTIONS: [&str; 11] = [
    "read",
    "write",
    "trim",
    "sync",
    "datasync",
    "sync_file_range",
    "wait",
    "add",
    "open",
    "close",
    "unlink",
];

pub(super) const FORMAT: Format = Format {
    name: "fio",
    shape: "a first line `fio version 2 iolog` or `fio version 3 iolog`",
    matches: |_, head| {
        usize::from(lines(head, 1).next().and_then(version).is_some()) * super::DETECTION_LINES
    },
    open,
};

fn version(line: &[u8]) -> Option<u8> {
    match line {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

fn open(mut input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let tick_ns = options.tick_ns(TICK_NS)?;
    let file = input.file.clone();
    let first = input.line()?.map(|(_, line)| line).unwrap_or_default();
    let version = version(first).ok_or_else(|| {
        let message = format!("expected {}, found {}", FORMAT.shape, quote(first));
        WorkloadError::at(&file, Location::Line(1), message)
    })?;
    Ok(Box::new(Iolog {
        file,
        input,
        clock: Clock { version, tick_ns, now_ns: 0 },
        devices: Devices::default(),
    }))
}

struct Iolog {
    file: String,
    input: Input,
    clock: Clock,
    devices: Devices,
}

/// How times come about.
struct Clock {
    version: u8,
    tick_ns: u64,
    now_ns: u64,
}

impl Reader for Iolog {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        while let Some((item, line)) = self.input.line()? {
            let record = if line.is_empty() {
                None
            } else {
                parse(line, item, &mut self.clock, &mut self.devices)
                    .map_err(|message| WorkloadError::at(&self.file, Location::Line(item), message))?
            };
            if let Some(record) = record {
                *next = record;
                return Ok(true);
            }
            counts.not_io += 1;
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn tick_ns(&self) -> Option<u64> {
        Some(self.clock.tick_ns)
    }
}

fn parse(line: &[u8], item: u64, clock: &mut Clock, devices: &mut Devices) -> Result<Option<Record>, String> {
    let mut words = words(line);
    let mut position = 0;
    let mut next = |name| {
        position += 1;
        (Field::new(position, name), words.next())
    };
    let some = |(field, word): (Field, Option<_>)| {
        word.map(|word| (field, word)).ok_or_else(|| field.refuse("missing; fields are separated by spaces"))
    };
    let to_ns = |field: Field, ticks: u64| {
        ticks.checked_mul(clock.tick_ns).ok_or_else(|| field.refuse("too large for a time in nanoseconds"))
    };
    let mut now_ns = clock.now_ns;
    if clock.version == 3 {
        let (field, word) = some(next("timestamp"))?;
        now_ns = to_ns(field, field.number(word)?)?;
    }
    let (name_field, name) = some(next("file"))?;
    let (action_field, action) = some(next("action"))?;
    let offset = next("offset");
    let length = next("length");
    if let (field, Some(word)) = next("end of line") {
        return Err(field.refuse(format!("unexpected {}", quote(word))));
    }
    let operation = match action {
        b"read" => Operation::Read,
        b"write" => Operation::Write,
        b"trim" => Operation::Trim,
        b"sync" | b"datasync" | b"sync_file_range" => Operation::Flush,
        b"add" | b"open" | b"close" | b"unlink" => return Ok(None),
        b"wait" if clock.version == 2 => {
            let (field, word) = some(offset)?;
            let gap_ns = to_ns(field, field.number(word)?)?;
            clock.now_ns = now_ns
                .checked_add(gap_ns)
                .ok_or_else(|| field.refuse("too large for a time in nanoseconds"))?;
            return Ok(None);
        }
        b"wait" => return Err(action_field.refuse("version 3 has timestamps and no wait")),
        _ => {
            let hint = did_you_mean(&String::from_utf8_lossy(action), ACTIONS);
            return Err(action_field.refuse(format!("unknown operation {}{hint}", quote(action))));
        }
    };
    let device = devices.index(name).map_err(|why| name_field.refuse(why))?;
    if operation == Operation::Flush {
        return Ok(Some(Record {
            time_ns: now_ns,
            item,
            device,
            operation,
            offset: 0,
            bytes: 0,
            response_ns: 0,
        }));
    }
    let ((offset_field, offset), (length_field, length)) = (some(offset)?, some(length)?);
    let (offset, bytes) = (offset_field.number(offset)?, length_field.number(length)?);
    if offset.checked_add(bytes).is_none() {
        return Err(offset_field.refuse("offset and length lie beyond any 64-bit address"));
    }
    Ok(Some(Record { time_ns: now_ns, item, device, operation, offset, bytes, response_ns: 0 }))
}
