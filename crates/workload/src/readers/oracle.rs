//! libCacheSim's `oracleGeneral` (its `oracleGeneralBin.h`): little-endian
//! binary records of 24 bytes: time in s u32, object u64, size in bytes u32,
//! and after how many requests the object comes again i64, -1 for never.
//!
//! It is a cache's trace: it has no operations, so every request is taken for a
//! read, and its objects are numbers. Block traces in this format number 512-byte
//! sectors, which is what they are taken for.

use flashkeel_engine::Operation;

use crate::input::Input;
use crate::readers::{DETECTION_LINES, Devices, Format, Reader, ReaderOptions, Record, sector_range};
use crate::{Counts, Location, WorkloadError};

const TICK_NS: u64 = 1_000_000_000;
const RECORD_BYTES: usize = 24;
const NEVER: i64 = -1;
/// Never, in files of older versions.
const NEVER_TOO: i64 = i64::MAX;
/// Longest request that detection believes in.
const LIKELY_BYTES: u32 = 1 << 30;

pub(super) const FORMAT: Format = Format {
    name: "oracle-general",
    shape: "binary records of 24 bytes: time in s, object, size, next access",
    matches,
    open,
};

/// The first records, if each of them may be one: time does not go back, sizes
/// are those of requests, the next access lies ahead.
fn matches(_: &str, head: &[u8]) -> usize {
    let mut last = None;
    let mut count = 0;
    for (number, record) in (1..).zip(head.chunks_exact(RECORD_BYTES).take(DETECTION_LINES)) {
        let Raw { time, bytes, next, .. } = Raw::read(record);
        // Text read as numbers has times of over 2^29 s and sizes beyond this.
        let is_likely = last.is_none_or(|last| time >= last)
            && (1..LIKELY_BYTES).contains(&bytes)
            && (next == NEVER || next == NEVER_TOO || (number..1 << 40).contains(&next));
        if !is_likely {
            return 0;
        }
        last = Some(time);
        count += 1;
    }
    count
}

/// A record as it is written.
struct Raw {
    time: u32,
    object: u64,
    bytes: u32,
    next: i64,
}

impl Raw {
    #[inline]
    fn read(record: &[u8]) -> Raw {
        Raw {
            time: u32::from_le_bytes(record[..4].try_into().expect("four bytes")),
            object: u64::from_le_bytes(record[4..12].try_into().expect("eight bytes")),
            bytes: u32::from_le_bytes(record[12..16].try_into().expect("four bytes")),
            next: i64::from_le_bytes(record[16..24].try_into().expect("eight bytes")),
        }
    }
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_action(FORMAT.name)?;
    let tick_ns = options.tick_ns(TICK_NS)?;
    Ok(Box::new(Oracle { file: input.file.clone(), input, tick_ns, devices: Devices::single() }))
}

struct Oracle {
    file: String,
    input: Input,
    tick_ns: u64,
    devices: Devices,
}

impl Reader for Oracle {
    fn next(&mut self, next: &mut Record, _: &mut Counts) -> Result<bool, WorkloadError> {
        let Some((item, record)) = self.input.record(RECORD_BYTES)? else { return Ok(false) };
        let raw = Raw::read(record);
        let range = sector_range(raw.object, 0).map(|(offset, _)| (offset, u64::from(raw.bytes)));
        let refuse = |message| WorkloadError::at(&self.file, self.place(item), message);
        match (u64::from(raw.time).checked_mul(self.tick_ns), range) {
            (Some(time_ns), Ok((offset, bytes))) if offset.checked_add(bytes).is_some() => {
                *next = Record {
                    time_ns,
                    item,
                    device: 0,
                    operation: Operation::Read,
                    offset,
                    bytes,
                    response_ns: 0,
                };
                Ok(true)
            }
            (None, _) => Err(refuse(format!("time {} is too large for nanoseconds", raw.time))),
            _ => Err(refuse(format!(
                "object {} is no sector of any device; where objects are hashes, a trace has no addresses to replay",
                raw.object
            ))),
        }
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn tick_ns(&self) -> Option<u64> {
        Some(self.tick_ns)
    }

    fn place(&self, item: u64) -> Location {
        Location::Record { number: item, byte: (item - 1) * RECORD_BYTES as u64 }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "oracleGeneral has no operations and no addresses: every request is taken for a read, and its object \
             for its first sector"
                .to_owned(),
        ];
        if self.tick_ns == TICK_NS {
            let note = "the times of oracleGeneral are whole seconds: all requests of a second arrive at its beginning";
            notes.push(note.to_owned());
        }
        notes
    }
}
