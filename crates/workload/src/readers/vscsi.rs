//! CloudPhysics vSCSI traces: little-endian binary records of one disk.
//!
//! Two layouts exist, told apart by where a version of 1 or 2 stands beside an
//! opcode (collections disagree on the version's number and byte order):
//! - 32 bytes: serial u32, length in bytes u32, scatter-gather entries u32,
//!   SCSI opcode u16, version u16, block (512 bytes) u64, time in µs u64;
//! - 40 bytes: opcode u16, version u16, serial u32, length u32, entries u32,
//!   block u64, time in µs u64, response time in µs u64.
//!
//! Opcodes are those of SCSI SBC: READ and WRITE of 6, 10, 12 and 16 bytes.
//! Every other command is counted and passed over.

use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record, sector_range};
use crate::{Counts, Location, WorkloadError};

const TICK_NS: u64 = 1000;

pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    shape: "binary records of 32 or 40 bytes",
    matches: |_, head| LAYOUTS.iter().map(|layout| layout.matches(head)).max().unwrap_or(0),
    open,
};

/// Where the fields of a record are, in bytes from its beginning.
struct Layout {
    size: usize,
    opcode: usize,
    length: usize,
    block: usize,
    time: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout { size: 32, opcode: 12, length: 4, block: 16, time: 24 },
    Layout { size: 40, opcode: 0, length: 8, block: 16, time: 24 },
];

impl Layout {
    /// The opcode, if a version stands beside it.
    fn opcode(&self, record: &[u8]) -> Option<u8> {
        match record[self.opcode..self.opcode + 4] {
            [opcode, 0, 0, 1 | 2] | [opcode, 0, 1 | 2, 0] => Some(opcode),
            _ => None,
        }
    }

    /// How many of the first records have this layout; more than half must.
    fn matches(&self, head: &[u8]) -> usize {
        let records = head.chunks_exact(self.size).take(DETECTION_LINES);
        let count = records.len();
        let matching = records.filter(|record| self.opcode(record).is_some()).count();
        if 2 * matching > count { matching } else { 0 }
    }
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let tick_ns = options.tick_ns(TICK_NS)?;
    let layout = LAYOUTS.iter().max_by_key(|layout| layout.matches(input.head())).expect("there are two");
    Ok(Box::new(Vscsi { file: input.file.clone(), input, layout, tick_ns, devices: Devices::single() }))
}

struct Vscsi {
    file: String,
    input: Input,
    layout: &'static Layout,
    tick_ns: u64,
    devices: Devices,
}

impl Reader for Vscsi {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        while let Some((item, record)) = self.input.record(self.layout.size)? {
            match parse(record, next, item, self.layout, self.tick_ns) {
                Ok(true) => return Ok(true),
                Ok(false) => counts.not_io += 1,
                Err(message) => return Err(WorkloadError::at(&self.file, self.place(item), message)),
            }
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn tick_ns(&self) -> Option<u64> {
        Some(self.tick_ns)
    }

    fn place(&self, item: u64) -> Location {
        Location::Record { number: item, byte: (item - 1) * self.layout.size as u64 }
    }
}

/// Puts the request of a record into `next`, if it is one.
#[inline]
fn parse(record: &[u8], next: &mut Record, item: u64, layout: &Layout, tick_ns: u64) -> Result<bool, String> {
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let opcode = layout.opcode(record).ok_or_else(|| {
        format!("opcode and version read {:#010x}, which no record has", u32_at(layout.opcode))
    })?;
    let operation = match opcode {
        0x08 | 0x28 | 0xa8 | 0x88 => Operation::Read,
        0x0a | 0x2a | 0xaa | 0x8a => Operation::Write,
        _ => return Ok(false),
    };
    let length = u32_at(layout.length);
    if length % 512 != 0 {
        return Err(format!("a length of {length} bytes is not a whole number of 512-byte blocks"));
    }
    let (offset, bytes) = sector_range(u64_at(layout.block), u64::from(length / 512))?;
    let time = u64_at(layout.time);
    let time_ns =
        time.checked_mul(tick_ns).ok_or_else(|| format!("time {time} is too large for nanoseconds"))?;
    *next = Record { time_ns, item, device: 0, operation, offset, bytes, response_ns: 0 };
    Ok(true)
}
