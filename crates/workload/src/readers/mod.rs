//! Trace formats: one interface, one file each, and their list.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Operation, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::input::{Input, Progress};
use crate::text::lines;
use crate::{Counts, Location, WorkloadError};

mod actions;
mod alibaba;
mod asked_beside;
mod blkparse;
mod blktrace;
mod columns;
mod detection;
mod devices;
mod disksim;
mod etw;
mod fio_iolog;
mod mqsim;
mod msr;
mod oracle;
mod parquet;
mod replayer;
mod spc;
mod ssdsim;
mod systor;
mod table;
mod tencent;
mod vscsi;

pub(crate) use columns::{COLUMN_NAMES, operation as named_operation};
pub(crate) use detection::detect;
pub(crate) use devices::{Devices, SYNTHETIC, says_synthetic};
pub(crate) use parquet::{
    File as ParquetFile, Named as NamedColumns, explain as explain_parquet, guarded as guard_parquet,
    open_file as open_parquet,
};
pub(crate) use table::{Table, explain};

/// Every trace format, in the order in which they are listed and tried.
static FORMATS: &[Format] = &[
    msr::FORMAT,
    vscsi::FORMAT,
    ssdsim::FORMAT,
    mqsim::FORMAT,
    disksim::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    spc::FORMAT,
    systor::FORMAT,
    replayer::FORMAT,
    blkparse::FORMAT,
    fio_iolog::FORMAT,
    etw::FORMAT,
    blktrace::FORMAT,
    oracle::FORMAT,
    parquet::FORMAT,
    columns::FORMAT,
];

/// The columns of a format that has one for what each request took.
pub(crate) fn timed_table(format: &str) -> Option<Table> {
    [(msr::FORMAT.name, msr::TABLE), (systor::FORMAT.name, systor::TABLE)]
        .into_iter()
        .find_map(|(name, table)| (name == format).then_some(table))
}

/// Whether the first line names the columns as a published format does, and lines below it are
/// of that format.
pub(crate) fn is_published(head: &[u8]) -> bool {
    let tables = [msr::TABLE, alibaba::TABLE, tencent::TABLE, spc::TABLE, systor::TABLE, replayer::TABLE];
    let first = lines(head, 1).next().unwrap_or_default();
    tables.iter().any(|table| table.is_published(first) && table.matches(head) > 0)
}

/// Lines at the beginning of a file that detection looks at.
const DETECTION_LINES: usize = 20;

/// How a format begins to read.
type OpenReader = fn(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError>;

/// A trace format.
pub(crate) struct Format {
    /// Name in configuration.
    pub name: &'static str,
    /// One line for messages: the fields of a line or record.
    pub shape: &'static str,
    /// How many of the first lines or records of a file are of this format;
    /// 0 where it cannot be this format.
    pub matches: fn(file: &str, head: &[u8]) -> usize,
    /// Begins to read.
    pub open: OpenReader,
}

/// Which times of a trace count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// Those at which its lines were recorded: at the completion of a request.
    #[default]
    Recorded,
    /// Those at which requests were issued. They are not in order, which takes
    /// a `reorder` as long as the slowest request.
    Issued,
}

/// What a reader must be told.
pub(crate) struct ReaderOptions {
    /// What one tick of the trace's clock means, where not the format's own.
    pub time_unit: Option<Span>,
    /// The event of blkparse and blktrace that counts as a request.
    pub action: Option<String>,
    /// What is in which column, of the format `columns`.
    pub columns: Option<String>,
    /// Whether the format was given.
    pub is_forced: bool,
    /// Which times count, of a format with several.
    pub times: Times,
    /// Whether to read what requests took, where the format says that.
    pub responses: bool,
}

impl ReaderOptions {
    /// Nanoseconds of a tick, `default_ns` if none is set.
    pub(crate) fn tick_ns(&self, default_ns: u64) -> Result<u64, WorkloadError> {
        match self.time_unit {
            Some(Span::ZERO) => Err(WorkloadError::key(
                "workload.source.time_unit",
                "a tick of 0ns would put every request at the same time",
            )),
            Some(unit) => Ok(unit.as_ns()),
            None => Ok(default_ns),
        }
    }

    /// A table of what is to be read: what requests took only where it is asked for.
    pub(crate) fn asked(&self, table: Table) -> Table {
        Table { latency: table.latency.filter(|_| self.responses), ..table }
    }

    pub(crate) fn refuse_time_unit(&self, format: &str) -> Result<(), WorkloadError> {
        match self.time_unit {
            Some(_) => {
                Err(WorkloadError::key("workload.source.time_unit", format!("{format} has no tick to set")))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn refuse_action(&self, format: &str) -> Result<(), WorkloadError> {
        match self.action {
            Some(_) => Err(WorkloadError::key(
                "workload.source.action",
                format!("only blkparse and blktrace have actions; this trace is {format}"),
            )),
            None => Ok(()),
        }
    }
}

/// One request as the trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Time in nanoseconds since the trace's own origin.
    pub time_ns: u64,
    /// Line or record it stands in, from 1.
    pub item: u64,
    /// Index into the reader's devices.
    pub device: u32,
    /// What is asked.
    pub operation: Operation,
    /// First byte on its device.
    pub offset: u64,
    /// Length in bytes; `offset + bytes` fits 64 bits.
    pub bytes: u64,
    /// What it took; 0 where that was not measured or not asked for.
    pub response_ns: u64,
}

impl Ord for Record {
    fn cmp(&self, other: &Record) -> std::cmp::Ordering {
        // A flush that a request asks for comes before it.
        let key = |it: &Record| {
            (
                it.time_ns,
                it.item,
                it.operation != Operation::Flush,
                it.device,
                it.operation,
                it.offset,
                it.bytes,
                it.response_ns,
            )
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Record {
    fn partial_cmp(&self, other: &Record) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Record {
    /// Nothing, to be filled.
    pub const EMPTY: Record = Record {
        time_ns: 0,
        item: 0,
        device: 0,
        operation: Operation::Read,
        offset: 0,
        bytes: 0,
        response_ns: 0,
    };
}

/// Reads one trace, request by request.
pub(crate) trait Reader {
    /// Puts the next request into `next`, where it is filled in place: passing it on by
    /// value cost a fifth of reading. Whether there was one; everything passed over is counted
    /// in `counts`.
    fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError>;

    /// The devices met so far.
    fn devices(&self) -> &Devices;

    /// Whether it reads what requests took.
    fn has_responses(&self) -> bool {
        false
    }

    /// Where the line or record `item` is.
    fn place(&self, item: u64) -> Location {
        Location::Line(item)
    }

    /// The file it is in, where not in the one that was opened.
    fn file(&self, _item: u64) -> Option<&str> {
        None
    }

    /// Assumptions that a result must show.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a tick of its clock is taken for, where that can be set.
    fn tick_ns(&self) -> Option<u64> {
        None
    }

    /// How to say that a tick is this long.
    fn tick_setting(&self, unit: Span) -> String {
        format!("time_unit = \"{unit}\"")
    }

    /// What to do where a trace read to its end has no request.
    fn remedy(&self) -> Option<String> {
        None
    }
}

/// Whether a format stands in the name of a file.
fn is_named(file: &str, format: &str) -> bool {
    file.rsplit(['/', '\\']).next().is_some_and(|name| name.to_ascii_lowercase().contains(format))
}

/// The range of a request given in sectors of 512 bytes.
#[inline]
pub(crate) fn sector_range(lba: u64, sectors: u64) -> Result<(u64, u64), String> {
    match (lba.checked_mul(512), sectors.checked_mul(512)) {
        (Some(offset), Some(bytes)) if offset.checked_add(bytes).is_some() => Ok((offset, bytes)),
        _ => Err(format!("sector {lba} and a length of {sectors} lie beyond any 64-bit address")),
    }
}

/// The name of a trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatName(&'static str);

impl FormatName {
    /// Every format's name.
    pub fn all() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|format| format.name)
    }

    /// Finds a format by its name.
    ///
    /// # Errors
    /// A sentence with the nearest name if there is no such format.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::all().find(|known| *known == name).map(FormatName).ok_or_else(|| {
            format!(
                "unknown trace format {name:?}, expected one of {}{}",
                Self::all().collect::<Vec<_>>().join(", "),
                did_you_mean(name, Self::all())
            )
        })
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for FormatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for FormatName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for FormatName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        FormatName::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for FormatName {
    fn schema_name() -> Cow<'static, str> {
        "TraceFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": FormatName::all().collect::<Vec<_>>() })
    }
}

/// A trace that has been opened.
pub(crate) struct Opened {
    pub format: FormatName,
    pub compression: crate::Compression,
    pub file: String,
    pub progress: Progress,
    /// What of its packing a result must show.
    pub notes: Vec<String>,
    pub reader: Box<dyn Reader>,
}

/// Opens a trace in the format given, or in the one its contents show.
pub(crate) fn open(
    path: &Path,
    format: Option<FormatName>,
    options: &ReaderOptions,
) -> Result<Opened, WorkloadError> {
    // An idle CPU has a file without records, and others have them.
    let is_idle = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
    let others = if is_idle(path) { blktrace::other_cpus(&path.to_string_lossy()) } else { Vec::new() };
    let mut input = Input::open(others.first().map_or(path, Path::new))?;
    let format = match format {
        Some(name) => FORMATS.iter().find(|format| format.name == name.0).expect("names come from the list"),
        None if options.columns.is_some() => &columns::FORMAT,
        None => detect(&input.file, input.head())?,
    };
    if options.columns.is_some() && format.name != columns::FORMAT.name {
        return Err(WorkloadError::key(
            "workload.source.columns",
            format!("only the format columns has a description of them; this trace is {}", format.name),
        ));
    }
    if options.times == Times::Issued && format.name != etw::FORMAT.name {
        return Err(WorkloadError::key(
            "workload.source.times",
            format!("only etw has times of issue and of completion; this trace is {}", format.name),
        ));
    }
    let (file, compression, progress) = (input.file.clone(), input.compression, input.progress());
    let notes = std::mem::take(&mut input.notes);
    let reader = (format.open)(input, options)?;
    Ok(Opened { format: FormatName(format.name), compression, file, progress, notes, reader })
}

/// Every file that is read of a trace: the one named, and those of other CPUs beside a blktrace.
pub fn trace_files(path: &Path) -> Vec<PathBuf> {
    let others = blktrace::other_cpus(&path.to_string_lossy());
    std::iter::once(path.to_owned()).chain(others.into_iter().map(PathBuf::from)).collect()
}
