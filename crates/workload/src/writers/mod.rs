//! Trace formats that can be written: one file each, and their list.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flashkeel_config::did_you_mean;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, reason};
use flate2::write::GzEncoder;
use rustix::fs::OFlags;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::input::{identity, open_at};
use crate::readers::{SYNTHETIC, says_synthetic, trace_files};
use crate::{Arrival, Basis, Context, Seeds, Source, Stopped, Trace, Watch, WorkloadError};

mod columns;
mod fio_iolog;
mod mqsim;
mod msr;
mod parquet;

/// Every format that can be written.
static WRITERS: &[Writer] =
    &[msr::WRITER, mqsim::WRITER, fio_iolog::WRITER, columns::WRITER, parquet::WRITER];

/// The name of standard output, as a path.
const STANDARD_OUTPUT: &str = "-";
const BATCH: usize = 4096;
const BUFFER_BYTES: usize = 64 << 10;
/// Host or file of requests that were recorded.
const RECORDED: &str = "flashkeel";

/// A trace format that can be written.
struct Writer {
    /// Name, that of the reader of the same format.
    name: &'static str,
    /// What times are rounded down to.
    tick_ns: u64,
    /// Operations it can express.
    operations: &'static [Operation],
    /// Whether a file says whose requests they are.
    is_named: bool,
    /// If it has a place for what requests took, what stands there where that is not known.
    no_response: Option<&'static str>,
    form: Form,
}

/// Writes one request of the host or file `name`, its time and what it took given in ticks.
type WriteLine =
    fn(out: &mut dyn Write, name: &str, ticks: u64, arrival: &Arrival, took: Option<u64>) -> io::Result<()>;

/// How a file is written.
enum Form {
    /// As lines.
    Lines {
        /// Writes what stands before the first request, of requests with what they took or without.
        header: fn(out: &mut dyn Write, name: &str, is_timed: bool) -> io::Result<()>,
        /// Writes one request.
        line: WriteLine,
    },
    /// As columns of a Parquet file.
    Parquet,
}

/// A file that is being written.
enum Target<'a> {
    Lines { out: &'a mut (dyn Write + Send), writer: &'static Writer, name: &'static str },
    Rows(Box<parquet::Rows<'a>>),
}

impl<'a> Target<'a> {
    fn begin(
        writer: &'static Writer,
        name: &'static str,
        out: &'a mut (dyn Write + Send),
        is_timed: bool,
    ) -> io::Result<Self> {
        match &writer.form {
            Form::Lines { header, .. } => {
                header(out, name, is_timed)?;
                Ok(Target::Lines { out, writer, name })
            }
            Form::Parquet => Ok(Target::Rows(Box::new(parquet::Rows::begin(out, is_timed)?))),
        }
    }

    /// Writes a request, and what it took if that is written: 0 where it is not known.
    fn put(&mut self, arrival: &Arrival, took_ns: Option<u64>) -> io::Result<()> {
        match self {
            Target::Lines { out, writer, name } => match writer.form {
                Form::Lines { line, .. } => {
                    let ticks = |ns: u64| ns / writer.tick_ns;
                    line(*out, name, ticks(arrival.time.0), arrival, took_ns.map(ticks))
                }
                Form::Parquet => unreachable!("its target has rows"),
            },
            Target::Rows(rows) => rows.put(arrival, took_ns),
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Target::Lines { .. } => Ok(()),
            Target::Rows(rows) => rows.end(),
        }
    }
}

/// The name of a trace format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterName(&'static str);

impl WriterName {
    /// Every name.
    pub fn all() -> impl Iterator<Item = &'static str> {
        WRITERS.iter().map(|writer| writer.name)
    }

    /// Finds a format by its name.
    ///
    /// # Errors
    /// A sentence with the nearest name if there is no such format.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::all().find(|known| *known == name).map(WriterName).ok_or_else(|| {
            format!(
                "cannot write trace format {name:?}, expected one of {}{}",
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

impl Serialize for WriterName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for WriterName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WriterName::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for WriterName {
    fn schema_name() -> Cow<'static, str> {
        "WrittenTraceFormat".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": WriterName::all().collect::<Vec<_>>() })
    }
}

/// What has been written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Requests written.
    pub requests: u64,
    /// Requests whose time had to be rounded down to the format's tick.
    pub times_rounded: u64,
    /// Requests of which it is also written what they took.
    #[serde(skip_serializing_if = "is_none")]
    pub response_times: u64,
    /// Whether they were recorded.
    pub basis: Basis,
    /// What became of the requests of the input.
    pub counts: crate::Counts,
    /// Assumptions made about the input.
    pub notes: Vec<String>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Writes a trace to `out` in another format, its devices laid one after the
/// other unless its settings say otherwise; with gzip where the name of `out`
/// ends in `.gz`. `watch` is told how much is done: the trace is read twice, to
/// lay out its devices and to convert it. What requests took goes with them where the
/// format has a place for it; what is left out of that is noted.
///
/// # Errors
/// If the trace is wrong or holds an operation that the format cannot express,
/// `out` cannot be written, or `watch` breaks off; nothing is left at `out`
/// then.
pub fn convert(
    trace: &Trace,
    format: WriterName,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Written, Stopped> {
    refuse_overwriting(trace, out)?;
    let mut source = trace.open_whole(&conversion(), true, watch)?;
    save_measured(&mut *source, format, trace.is_altered().then_some(ALTERED), out, watch)
}

/// Why what requests took is left out.
pub(crate) const ALTERED: &str = "they are those of the requests as they were recorded";

/// What a trace is opened for when it is not replayed: every address is there,
/// and none is aligned.
pub fn conversion() -> Context {
    Context {
        device_sectors: u64::MAX / 512,
        seeds: Seeds::alone(0),
        requests: None,
        duration: None,
        is_timed: true,
        block: Bytes(512),
    }
}

/// Refuses to write where a trace is read from, by whatever name.
///
/// # Errors
/// If `out` is the file of the trace, or one that is read along with it.
pub fn refuse_overwriting(trace: &Trace, out: &Path) -> Result<(), WorkloadError> {
    if out == Path::new(STANDARD_OUTPUT) {
        return Ok(());
    }
    let Some(target) = identity(out) else { return Ok(()) };
    match trace_files(&trace.path).into_iter().find(|file| identity(file) == Some(target)) {
        None => Ok(()),
        Some(file) => {
            let message = format!("it is the trace that is read, {}; choose another name", file.display());
            Err(WorkloadError::file(&out.display().to_string(), message))
        }
    }
}

/// Makes a file of its own in the folder of `out`, which nobody else has.
fn create_beside(out: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0u32.. {
        let beside = out.with_file_name(format!(".flashkeel-{}-{number}.partial", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (beside, file)),
        }
    }
    unreachable!("four thousand million files of one process")
}

/// Writes every arrival of a source to `out`, or to standard output if that is
/// `-`; with gzip where its name ends in `.gz`. Where the format has a name of a host or file, it says whether they
/// are synthetic.
///
/// # Errors
/// As for [`convert`].
pub fn save(
    source: &mut dyn Source,
    format: WriterName,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Written, Stopped> {
    save_measured(source, format, None, out, watch)
}

/// The same; what requests took is left out where there is a reason for that.
pub(crate) fn save_measured(
    source: &mut dyn Source,
    format: WriterName,
    left_out: Option<&str>,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Written, Stopped> {
    let writer = WRITERS.iter().find(|writer| writer.name == format.0).expect("names come from the list");
    let name = out.display().to_string();
    let cannot = |error| unwritten(&name, &error);
    if out == Path::new(STANDARD_OUTPUT) {
        return write_to(writer, source, left_out, out, io::stdout(), watch);
    }
    // A pipe or a device is written to, and stays what it is.
    if out.metadata().is_ok_and(|target| !target.is_file() && !target.is_dir()) {
        let target = open_at(out, OFlags::WRONLY).map_err(cannot)?;
        return write_to(writer, source, left_out, out, target, watch);
    }
    // Written beside its place and moved there, so that no reader sees a part.
    // A link stays one.
    let place = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    let (beside, file) = create_beside(&place).map_err(cannot)?;
    let written = write_to(writer, source, left_out, out, file, watch)
        .and_then(|written| std::fs::rename(&beside, &place).map(|()| written).map_err(cannot));
    if written.is_err() {
        // What went wrong is said already.
        let _ = std::fs::remove_file(beside);
    }
    written
}

/// Writes to `file` what is to be at `out`.
fn write_to(
    writer: &'static Writer,
    source: &mut dyn Source,
    left_out: Option<&str>,
    out: &Path,
    file: impl Write + Send,
    watch: &mut Watch<'_>,
) -> Result<Written, Stopped> {
    let name = out.display().to_string();
    let cannot = |error| unwritten(&name, &error);
    let has_extension = |wanted: &str| out.extension().is_some_and(|extension| extension == wanted);
    if let Some(packed) = ["zst", "xz", "bz2", "zip"].into_iter().find(|packed| has_extension(packed)) {
        let message =
            format!("traces are written plain, or with gzip where the name ends in .gz, not as .{packed}");
        return Err(WorkloadError::file(&name, message).into());
    }
    let is_parquet = matches!(writer.form, Form::Parquet);
    if is_parquet && has_extension("gz") {
        return Err(
            WorkloadError::file(&name, "a Parquet file is compressed in itself, and not again").into()
        );
    }
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    let done = if has_extension("gz") {
        let mut packed = GzEncoder::new(&mut file, flate2::Compression::default());
        let done = write_requests(writer, source, left_out, &name, &mut packed, watch)?;
        packed.finish().map_err(cannot)?;
        done
    } else {
        write_requests(writer, source, left_out, &name, &mut file, watch)?
    };
    file.flush().map_err(cannot)?;
    let (counts, basis) = (source.counts().clone(), source.basis());
    let mut notes = source.notes().to_vec();
    if done.responses_left_out > 0 {
        let able = WRITERS.iter().filter(|writer| writer.no_response.is_some()).map(|writer| writer.name);
        let no_place =
            || format!("{} has no place for them; {} have", writer.name, able.collect::<Vec<_>>().join(", "));
        let why = match left_out {
            Some(why) => why.to_owned(),
            None if writer.no_response.is_none() => no_place(),
            None => "the requests before them have none".to_owned(),
        };
        notes.push(format!("response times of {} requests are left out: {why}", done.responses_left_out));
    }
    if done.untimed > 0 {
        notes.push(format!(
            "{} reads and writes have no response time, or none that can be read: in its place is {}",
            done.untimed,
            writer.no_response.unwrap_or_default()
        ));
    }
    Ok(Written {
        requests: counts.delivered,
        times_rounded: done.times_rounded,
        response_times: done.responses,
        basis,
        counts,
        notes,
    })
}

/// What has become of the requests that were written.
#[derive(Default)]
struct Done {
    times_rounded: u64,
    /// Of how many it is written what they took.
    responses: u64,
    /// Of how many it would be known.
    responses_left_out: u64,
    /// Reads and writes of which it is not, where it is of others.
    untimed: u64,
}

/// Why a file is not written: its name is wrong, or a disk is full or fails.
fn unwritten(file: &str, error: &io::Error) -> Stopped {
    use io::ErrorKind::{
        InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    let message = WorkloadError::file(file, format!("cannot write it: {}", reason(error)));
    match error.kind() {
        InvalidFilename | IsADirectory | NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem => {
            Stopped::Wrong(message)
        }
        _ => Stopped::Unwritten(message),
    }
}

/// Writes every arrival.
fn write_requests(
    writer: &'static Writer,
    source: &mut dyn Source,
    left_out: Option<&str>,
    file: &str,
    out: &mut (dyn Write + Send),
    watch: &mut Watch<'_>,
) -> Result<Done, Stopped> {
    let cannot = |error| unwritten(file, &error);
    let mut batch = Vec::with_capacity(BATCH);
    let mut done = Done::default();
    source.fill(&mut batch, BATCH)?;
    let is_synthetic = source.basis() == Basis::Synthetic;
    if is_synthetic && !writer.is_named && !says_synthetic(Path::new(file)) {
        let message = format!(
            "nothing in it would say that the trace is synthetic, for which {} has no place; choose a name \
             with \"{SYNTHETIC}\" in it",
            writer.name
        );
        return Err(WorkloadError::file(file, message).into());
    }
    let name = if is_synthetic { SYNTHETIC } else { RECORDED };
    // Files of others have the column and 0 in it; who has measured, has by then.
    let is_timed =
        writer.no_response.is_some() && left_out.is_none() && source.responses().iter().any(|ns| *ns > 0);
    let mut target = Target::begin(writer, name, out, is_timed).map_err(cannot)?;
    loop {
        if batch.is_empty() {
            target.end().map_err(cannot)?;
            return Ok(done);
        }
        let responses = source.responses();
        for (index, arrival) in batch.iter().enumerate() {
            if !writer.operations.contains(&arrival.operation) {
                return Err(WorkloadError::file(file, inexpressible(writer, arrival.operation)).into());
            }
            done.times_rounded += u64::from(arrival.time.0 % writer.tick_ns != 0);
            let took_ns = responses.get(index).copied().unwrap_or(0);
            let count = if is_timed { &mut done.responses } else { &mut done.responses_left_out };
            *count += u64::from(took_ns > 0);
            let is_served = matches!(arrival.operation, Operation::Read | Operation::Write);
            done.untimed += u64::from(is_timed && is_served && took_ns == 0);
            target.put(arrival, is_timed.then_some(took_ns)).map_err(cannot)?;
        }
        if watch(source.progress().unwrap_or(0.0)).is_break() {
            return Err(Stopped::Interrupted);
        }
        source.fill(&mut batch, BATCH)?;
    }
}

/// What is wrong with an operation that a format has no words for.
fn inexpressible(writer: &Writer, operation: Operation) -> String {
    let name = match operation {
        Operation::WriteZeroes => "write of zeroes".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    };
    let able = WRITERS.iter().filter(|other| other.operations.contains(&operation));
    let able: Vec<_> = able.map(|other| other.name).collect();
    format!("{} cannot express a {name}; {} can", writer.name, able.join(", "))
}
