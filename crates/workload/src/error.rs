//! The one error of this crate: what is wrong, and where.

use std::fmt;
use std::ops::ControlFlow;

/// The latest arrival. A [`Time`](flashkeel_engine::Time) counts twice as far, so that nothing
/// that follows from an arrival passes the end of the clock.
const LATEST_NS: u64 = 1 << 63;

/// Where in an input something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// The file as a whole.
    File,
    /// No file: a configuration key.
    Key,
    /// A line of a text file, counted from 1.
    Line(u64),
    /// A record of a binary file.
    Record {
        /// Number of the record, counted from 1.
        number: u64,
        /// Offset of its first byte in the decompressed file.
        byte: u64,
    },
    /// A row of a table, counted from 1.
    Row(u64),
    /// A record that begins at this byte of the decompressed file.
    Byte(u64),
}

/// Input that cannot be used, with its place and, where there is one, a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// File name, or the path of a configuration key.
    pub subject: String,
    /// Where in the file.
    pub place: Location,
    /// One sentence without the place.
    pub message: String,
}

impl WorkloadError {
    pub(crate) fn at(file: &str, place: Location, message: impl Into<String>) -> Self {
        WorkloadError { subject: file.into(), place, message: printable(message.into()) }
    }

    pub(crate) fn file(file: &str, message: impl Into<String>) -> Self {
        Self::at(file, Location::File, message)
    }

    pub(crate) fn key(key: &str, message: impl Into<String>) -> Self {
        Self::at(key, Location::Key, message)
    }

    /// Refuses an arrival in the half of the clock that is left to what comes after the last one.
    #[inline]
    pub(crate) fn unless_countable(time_ns: u64) -> Result<(), Self> {
        if time_ns > LATEST_NS { Err(Self::beyond_the_clock()) } else { Ok(()) }
    }

    #[cold]
    fn beyond_the_clock() -> Self {
        let message = "arrivals reach beyond the 292 years that can be simulated; ask for fewer requests or repeats, a \
                       duration, or a higher rate or intensity; of a recorded trace, see its times and their unit";
        Self::key("workload", message)
    }
}

/// A message in which nothing moves a cursor: names come from files.
fn printable(message: String) -> String {
    if !message.contains(char::is_control) {
        return message;
    }
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    message.chars().map(escape).collect()
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        match self.place {
            Location::File | Location::Key => {}
            Location::Line(line) => write!(f, ":{line}")?,
            Location::Row(row) => write!(f, ": row {row}")?,
            Location::Byte(byte) => write!(f, ": byte {byte}")?,
            Location::Record { number, byte } => write!(f, ": record {number} (byte {byte})")?,
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for WorkloadError {}

/// Told the fraction that is done of something that lasts; may stop it.
pub type Watch<'a> = dyn FnMut(f64) -> ControlFlow<()> + 'a;

/// Why something that lasts ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The input is wrong.
    Wrong(WorkloadError),
    /// What was to be written could not be, and whoever asked for it is not to blame.
    Unwritten(WorkloadError),
    /// Whoever watched asked for it.
    Interrupted,
}

impl From<WorkloadError> for Stopped {
    fn from(error: WorkloadError) -> Self {
        Stopped::Wrong(error)
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Wrong(error) | Stopped::Unwritten(error) => error.fmt(f),
            Stopped::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Stopped {}

/// Asks now and then whether to go on.
pub(crate) struct Pulse<'w, 'a> {
    watch: &'w mut Watch<'a>,
    steps: u32,
}

impl<'w, 'a> Pulse<'w, 'a> {
    /// Steps between two questions: far under a tenth of a second.
    const EVERY: u32 = 1 << 14;

    pub(crate) fn new(watch: &'w mut Watch<'a>) -> Self {
        Pulse { watch, steps: 0 }
    }

    #[inline]
    pub(crate) fn step(&mut self, fraction: impl FnOnce() -> f64) -> Result<(), Stopped> {
        self.step_by(1, fraction)
    }

    /// Takes as many steps at once.
    #[inline]
    pub(crate) fn step_by(&mut self, steps: u64, fraction: impl FnOnce() -> f64) -> Result<(), Stopped> {
        self.steps = self.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.steps < Self::EVERY {
            return Ok(());
        }
        self.steps = 0;
        match (self.watch)(fraction()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stopped::Interrupted),
        }
    }
}
