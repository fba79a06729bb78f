//! blktrace's binary files, one a CPU: `NAME.blktrace.0`, `NAME.blktrace.1` and
//! so on (`include/uapi/linux/blktrace_api.h` of Linux, `struct blk_io_trace`,
//! version 7).
//!
//! A record is 48 bytes in the byte order of the machine that wrote it: magic
//! u32, sequence u32, ns u64, sector u64, bytes u32, action u32, pid u32, device
//! u32, CPU u32, error u16, and a u16 that says how many bytes of another kind
//! follow. Where the file that is named is one of several CPUs', all are read:
//! each is in order, so that one record of each at a time is enough to merge
//! them. What `blktrace -o -` writes to a pipe is several CPUs' records in one
//! stream, a piece of each in turn: it is merged too, by as many records as its
//! buffers hold. What is still out of order then takes a `reorder`.
//!
//! Records of one action are the requests, as in blkparse's text.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

use flashkeel_engine::Operation;

use super::actions::Actions;
use super::asked_beside::AskedBeside;
use crate::input::Input;
use crate::readers::{Devices, Format, Reader, ReaderOptions, Record, sector_range};
use crate::{Counts, Location, WorkloadError};

const RECORD_BYTES: usize = 48;
/// Records of one stream among which the next is looked for: as many as blktrace
/// hands over at a time, buffers of 512 KiB (blktrace(8), `-b`), of 24 CPUs.
const WINDOW: usize = 1 << 18;
/// Where in the number of a record that of its file lies, above its place in there.
const CPU_AT: u32 = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

// Categories of an action, in its upper half.
const WRITES: u32 = 1 << 17;
const FLUSHES: u32 = 1 << 18;
const PASSED_THROUGH: u32 = 1 << 25;
const NOTIFIES: u32 = 1 << 26;
const DISCARDS: u32 = 1 << 29;
const FORCES_UNIT_ACCESS: u32 = 1 << 31;

/// In its lower half: the bytes that follow begin with the number of a cgroup.
const OF_CGROUP: u32 = 1 << 8;

/// The letters that blkparse(1) has for the actions, by their number.
const LETTERS: [&str; 16] = ["", "Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A"];

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    shape: "binary records of 48 bytes and more that begin with blktrace's magic number",
    matches: |_, head| {
        let is_magic = head.get(..4).is_some_and(|magic| ByteOrder::of(magic).is_some());
        usize::from(is_magic) * super::DETECTION_LINES
    },
    open,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of(magic: &[u8]) -> Option<ByteOrder> {
        let magic: [u8; 4] = magic.try_into().expect("four bytes");
        let is_magic = |word: u32| word & !0xff == MAGIC;
        match () {
            () if is_magic(u32::from_le_bytes(magic)) => Some(ByteOrder::Little),
            () if is_magic(u32::from_be_bytes(magic)) => Some(ByteOrder::Big),
            () => None,
        }
    }
}

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    options.refuse_time_unit(FORMAT.name)?;
    let action = options.action.clone().unwrap_or_else(|| "Q".into());
    let Some(number) = LETTERS.iter().position(|letter| *letter == action && !letter.is_empty()) else {
        return Err(WorkloadError::key(
            "workload.source.action",
            format!("blktrace has no action {action:?}; it has {}", LETTERS[1..].join(", ")),
        ));
    };
    let mut notes = Vec::new();
    let mut cpus = vec![Cpu::new(input)?];
    for path in other_cpus(&cpus[0].input.file) {
        cpus.push(Cpu::new(Input::open(Path::new(&path))?)?);
    }
    if cpus.len() > 1 {
        notes.push(format!("the files of {} CPUs are read together", cpus.len()));
    }
    Ok(Box::new(Blktrace {
        number: number as u32,
        actions: Actions::new(&action),
        order: if cpus.len() > 1 { Order::Files(BinaryHeap::new()) } else { Order::Stream(Lanes::default()) },
        cpus,
        is_started: false,
        devices: Devices::default(),
        beside: AskedBeside::default(),
        name: String::new(),
        notes,
    }))
}

/// The files of other CPUs beside one that is named `NAME.blktrace.CPU`.
pub(super) fn other_cpus(file: &str) -> Vec<String> {
    let Some(at) = file.rfind(".blktrace.") else { return Vec::new() };
    let (base, rest) = file.split_at(at + ".blktrace.".len());
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (own, packing) = rest.split_at(digits);
    let mut cpus: Vec<u32> = Vec::new();
    let path = Path::new(base);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(stem), Ok(entries)) = (path.file_name().and_then(|name| name.to_str()), folder.read_dir())
    else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let cpu = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_suffix(packing));
        if let Some(cpu) = cpu.filter(|cpu| *cpu != own)
            && let Ok(number) = cpu.parse()
            && cpu.bytes().all(|byte| byte.is_ascii_digit())
            // An idle CPU has a file without records.
            && entry.metadata().is_ok_and(|metadata| metadata.len() > 0)
        {
            cpus.push(number);
        }
    }
    cpus.sort_unstable();
    cpus.into_iter().map(|cpu| format!("{base}{cpu}{packing}")).collect()
}

/// The file of one CPU.
struct Cpu {
    input: Input,
    order: ByteOrder,
}

/// What matters of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time_ns: u64,
    /// Number of its file, and where in it the record is.
    cpu: usize,
    byte: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
}

impl Cpu {
    fn new(input: Input) -> Result<Cpu, WorkloadError> {
        let magic = input.head().get(..4).and_then(ByteOrder::of);
        let order = magic.ok_or_else(|| {
            let place = Location::Record { number: 1, byte: 0 };
            WorkloadError::at(&input.file, place, "does not begin with blktrace's magic number")
        })?;
        Ok(Cpu { input, order })
    }

    /// The next record of the file, and the CPU that wrote it.
    fn next(&mut self, cpu: usize) -> Result<Option<(u32, Event)>, WorkloadError> {
        let order = self.order;
        let byte = self.input.byte();
        let Some((item, record)) = self.input.record(RECORD_BYTES)? else { return Ok(None) };
        let u32_at = |at: usize| {
            let word = record[at..at + 4].try_into().expect("four bytes");
            if order == ByteOrder::Little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
        };
        let u64_at = |at: usize| {
            let word = record[at..at + 8].try_into().expect("eight bytes");
            if order == ByteOrder::Little { u64::from_le_bytes(word) } else { u64::from_be_bytes(word) }
        };
        let magic = u32_at(0);
        let event = Event {
            time_ns: u64_at(8),
            cpu,
            byte,
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            device: u32_at(36),
        };
        let written_by = u32_at(40);
        let more = [record[46], record[47]];
        let more =
            if order == ByteOrder::Little { u16::from_le_bytes(more) } else { u16::from_be_bytes(more) };
        if magic != MAGIC | VERSION {
            let message = match magic {
                magic if magic & !0xff == MAGIC => {
                    format!("version {} of blktrace's format; only version {VERSION} is read", magic & 0xff)
                }
                _ => "does not begin with blktrace's magic number".to_owned(),
            };
            return Err(WorkloadError::at(
                &self.input.file,
                Location::Record { number: item, byte },
                message,
            ));
        }
        self.input.skip(more.into())?;
        Ok(Some((written_by, event)))
    }
}

/// In which order records are taken.
enum Order {
    /// Of several files: the next record of each.
    Files(BinaryHeap<Reverse<Event>>),
    /// Of one file or stream: what has been read ahead of it.
    Stream(Lanes),
}

/// Records that have been read ahead, by CPU; those of a CPU are in order.
#[derive(Default)]
struct Lanes {
    /// Number of each CPU, and its records.
    lanes: Vec<(u32, VecDeque<Event>)>,
    waiting: usize,
    is_ended: bool,
}

impl Lanes {
    fn push(&mut self, cpu: u32, event: Event) {
        self.waiting += 1;
        match self.lanes.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, lane)) => lane.push_back(event),
            None => self.lanes.push((cpu, VecDeque::from([event]))),
        }
    }

    fn pop(&mut self) -> Option<Event> {
        let first =
            |(_, lane): &(u32, VecDeque<Event>)| lane.front().map(|event| (event.time_ns, event.byte));
        let at = (0..self.lanes.len())
            .filter_map(|at| first(&self.lanes[at]).map(|key| (key, at)))
            .min()
            .map(|(_, at)| at)?;
        self.waiting -= 1;
        self.lanes[at].1.pop_front()
    }
}

struct Blktrace {
    /// Number of the action that counts.
    number: u32,
    actions: Actions,
    cpus: Vec<Cpu>,
    order: Order,
    is_started: bool,
    devices: Devices,
    beside: AskedBeside,
    name: String,
    notes: Vec<String>,
}

impl Blktrace {
    fn take(&mut self) -> Result<Option<Event>, WorkloadError> {
        let Blktrace { cpus, order, is_started, .. } = self;
        let files = cpus.len();
        match order {
            Order::Stream(lanes) => {
                while lanes.waiting < WINDOW && !lanes.is_ended {
                    match cpus[0].next(0)? {
                        Some((cpu, event)) => lanes.push(cpu, event),
                        None => lanes.is_ended = true,
                    }
                }
                Ok(lanes.pop())
            }
            Order::Files(waiting) => {
                let mut refill = |waiting: &mut BinaryHeap<_>, cpu: usize| {
                    cpus[cpu].next(cpu).map(|next| waiting.extend(next.map(|(_, event)| Reverse(event))))
                };
                if !*is_started {
                    *is_started = true;
                    (0..files).try_for_each(|cpu| refill(waiting, cpu))?;
                }
                let Some(Reverse(event)) = waiting.pop() else { return Ok(None) };
                refill(waiting, event.cpu)?;
                Ok(Some(event))
            }
        }
    }

    fn request(&mut self, event: &Event) -> Result<Record, String> {
        let operation = match event {
            Event { action, .. } if action & DISCARDS != 0 => Operation::Trim,
            Event { action, bytes: 0, .. } if action & FLUSHES != 0 => Operation::Flush,
            Event { action, .. } if action & (WRITES | FLUSHES) != 0 => Operation::Write,
            _ => Operation::Read,
        };
        self.name.clear();
        // A device number of Linux: 12 bits and 20.
        std::fmt::Write::write_fmt(
            &mut self.name,
            format_args!("{},{}", event.device >> 20, event.device & 0xf_ffff),
        )
        .expect("a string takes what is written");
        let device = self.devices.index(self.name.as_bytes())?;
        let item = ((event.cpu as u64) << CPU_AT | event.byte) + 1;
        let record = |offset, bytes| Record {
            time_ns: event.time_ns,
            item,
            device,
            operation,
            offset,
            bytes,
            response_ns: 0,
        };
        if operation == Operation::Flush {
            return Ok(record(0, 0));
        }
        let (offset, _) = sector_range(event.sector, 0)?;
        match offset.checked_add(event.bytes.into()) {
            Some(_) => Ok(record(offset, event.bytes.into())),
            None => Err(format!("sector {} lies beyond any 64-bit address", event.sector)),
        }
    }
}

impl Reader for Blktrace {
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        if let Some(request) = self.beside.next() {
            *next = request;
            return Ok(true);
        }
        while let Some(event) = self.take()? {
            let action = event.action & 0xffff & !OF_CGROUP;
            let moves_data = event.action & (NOTIFIES | PASSED_THROUGH) == 0
                && (event.bytes > 0 || event.action & FLUSHES != 0);
            if !moves_data || action != self.number {
                if moves_data {
                    self.actions.pass(LETTERS.get(action as usize).copied().unwrap_or_default());
                }
                counts.not_io += 1;
                continue;
            }
            let request = self.request(&event).map_err(|message| {
                WorkloadError::at(&self.cpus[event.cpu].input.file, Location::Byte(event.byte), message)
            })?;
            let is_forced = event.action & FORCES_UNIT_ACCESS != 0;
            *next = self.beside.first(request, event.action & FLUSHES != 0, is_forced);
            return Ok(true);
        }
        Ok(false)
    }

    fn devices(&self) -> &Devices {
        &self.devices
    }

    fn place(&self, item: u64) -> Location {
        Location::Byte((item - 1) & ((1 << CPU_AT) - 1))
    }

    fn file(&self, item: u64) -> Option<&str> {
        Some(&self.cpus[((item - 1) >> CPU_AT) as usize].input.file)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.iter().cloned().chain(self.beside.note()).collect()
    }

    fn remedy(&self) -> Option<String> {
        self.actions.remedy()
    }
}
