//! A recorded trace as a source: its settings, and one pass after another.

use std::{fmt, path::PathBuf, sync::Arc};

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Lba, Operation, SECTOR_BYTES, Span, Time};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};

use crate::input::is_read_once;
use crate::readers::{self, FormatName, Opened, ReaderOptions, Times};
use crate::{Arrival, Basis, Context, Counts, Open, Source, Stopped, Watch, WorkloadError};

mod compact;
mod kept;
mod order;
mod pass;
mod place;
mod rate;
mod remembered;

use kept::Kept;
pub(crate) use order::Ordered;
use pass::{Pass, Selected, Shape};
use place::AddressMap;
pub(crate) use rate::Pace;

/// Settings of a recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file, which may be a pipe; `-` is standard input. Compression and
    /// encoding are told from its first bytes.
    pub path: PathBuf,
    /// Its format; found from its contents if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FormatName>,
    /// What a tick of its clock means; the format's own if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<Span>,
    /// The action of blkparse and blktrace that counts as a request; `Q` if not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What is in which column of a text of any other format:
    /// `"time=1,unit=us,offset=3,length=4,op=2"`, with columns counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// Which of its times count, where it has more than one: those of `etw`.
    #[serde(default)]
    pub times: Times,
    /// Replay the requests of this device only; a name or a number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "name_or_number")]
    pub device: Option<String>,
    /// Where the address spaces of several devices go.
    #[serde(default)]
    pub devices: DeviceSpaces,
    /// What becomes of addresses beyond the simulated device.
    #[serde(default)]
    pub fold: Fold,
    /// Ranges are rounded outwards to this, ranges of trims inwards, and where zeros
    /// cover a unit in part, that part is written: a power of two up to 1MiB, from 4KiB
    /// or `stack.block` in a replay and from 512B in a conversion, which are also what
    /// it is if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<Bytes>,
    /// Requests of no length: refused, or left out and counted.
    #[serde(default)]
    pub zero_length: ZeroLength,
    /// At most so many lines of a text that cannot be read are left out and counted; at the
    /// next one the trace is refused.
    #[serde(default, skip_serializing_if = "is_none_of_them")]
    pub bad_lines: u64,
    /// Times may go backwards by at most this; requests are then put in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Span>,
    /// Only the requests of this part of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<TimeWindow>,
    /// How many times as fast as recorded: 2.0 halves every time.
    #[serde(default = "once_as_fast")]
    pub intensity: f64,
    /// How many times the trace is replayed. The first request of a repetition
    /// follows the last before it by the mean gap.
    #[serde(default = "once")]
    pub repeat: u32,
    /// How many times as long each write is, up to 1 TiB.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub write_magnification: u32,
}

/// Where the address spaces of a trace's devices go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSpaces {
    /// One after the other in the order in which they appear, each as long as
    /// its highest address, rounded up to 1 MiB. The trace is read once before
    /// the run to find these lengths, which also finds its errors early; once
    /// for all runs of it in a process. Up to some 25 million requests are kept
    /// in memory from then on, about 11 bytes each; a longer trace is read again
    /// by each run.
    #[default]
    Separate,
    /// All onto the same addresses.
    Merge,
}

/// What becomes of addresses beyond the simulated device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// The run is refused.
    #[default]
    Refuse,
    /// Taken modulo the capacity, cut off at the end of the device; counted.
    Wrap,
    /// Where the trace reaches beyond the device, what it reads and writes is
    /// laid out without what it never touches between, in extents of 4 KiB to
    /// 1 MiB, the largest that fit; neighbours stay neighbours. Counted. The
    /// trace is read once before the run, so that it cannot come through a pipe.
    Compact,
}

/// What becomes of reads, writes and trims of no length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroLength {
    /// The run is refused.
    #[default]
    Refuse,
    /// Left out and counted.
    Skip,
}

/// A part of a trace, in recorded time from its first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeWindow {
    /// Its beginning.
    #[serde(default)]
    pub from: Span,
    /// Its end, not included; that of the trace if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Span>,
}

/// Reads a device's name, which in many formats is a number.
fn name_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Name;

    impl Visitor<'_> for Name {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a device's name or number")
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
            Ok(name.to_owned())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    deserializer.deserialize_any(Name).map(Some)
}

fn once_as_fast() -> f64 {
    1.0
}

fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

fn once() -> u32 {
    1
}

fn is_once(times: &u32) -> bool {
    *times == 1
}

impl Trace {
    /// A trace with every setting at its default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Trace {
            path: path.into(),
            format: None,
            time_unit: None,
            action: None,
            columns: None,
            times: Times::default(),
            device: None,
            devices: DeviceSpaces::default(),
            fold: Fold::default(),
            align: None,
            zero_length: ZeroLength::default(),
            bad_lines: 0,
            reorder: None,
            window: None,
            intensity: once_as_fast(),
            write_magnification: once(),
            repeat: once(),
        }
    }

    /// The settings, checked; those too that need more than one pass.
    fn shape(&self, context: &Context) -> Result<Shape, WorkloadError> {
        let shape = Shape::new(self, context)?;
        let twice = match self {
            Trace { repeat: 2.., .. } => "repeat",
            Trace { fold: Fold::Compact, .. } => "fold",
            _ => return Ok(shape),
        };
        if is_read_once(&self.path) {
            return Err(WorkloadError::key(
                &format!("workload.source.{twice}"),
                "the trace has to be read more than once, and a pipe cannot be; save it to a file first",
            ));
        }
        Ok(shape)
    }

    /// Whether it comes through a pipe, and can be read only once.
    pub fn is_read_once(&self) -> bool {
        is_read_once(&self.path)
    }

    /// Opens it for something else than a replay: every address is there, and there
    /// is no device to fold addresses into. What requests took is read if `responses`.
    pub(crate) fn open_whole(
        &self,
        context: &Context,
        responses: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Box<dyn Source>, Stopped> {
        if self.fold != Fold::Refuse {
            let message = "only a replay folds addresses, into its device; every address is kept here";
            return Err(WorkloadError::key("workload.source.fold", message).into());
        }
        let mut source = self.source_with(context, responses, watch)?;
        source.notes.extend(source.placement.layout_note());
        Ok(Box::new(source))
    }

    pub(crate) fn source(&self, context: &Context, watch: &mut Watch<'_>) -> Result<TraceSource, Stopped> {
        self.source_with(context, false, watch)
    }

    fn source_with(
        &self,
        context: &Context,
        responses: bool,
        watch: &mut Watch<'_>,
    ) -> Result<TraceSource, Stopped> {
        let shape = self.shape(context)?;
        // Of a pipe nothing is taken before it is replayed.
        let placement = remembered::find(self, &shape, context, watch)?;
        let pass = Pass::again(self, &shape, placement.kept.as_ref(), responses)?;
        let magnified = (self.write_magnification > 1)
            .then(|| format!("writes are magnified {} times", self.write_magnification));
        let notes = [pass.notes(), placement.notes.clone(), magnified.into_iter().collect()].concat();
        Ok(TraceSource {
            trace: self.clone(),
            shape,
            placement,
            passes_left: self.repeat - 1,
            counts: Counts::default(),
            requests_left: context.requests.unwrap_or(u64::MAX),
            is_noted: false,
            start_ns: 0,
            last_ns: 0,
            delivered_in_pass: 0,
            bytes_in_pass: 0,
            responses: (responses && pass.has_responses()).then(Vec::new),
            pass,
            notes,
        })
    }

    /// When the first request that it delivers was recorded, in nanoseconds of its own clock;
    /// 0 where there is none.
    pub(crate) fn origin_ns(&self, context: &Context) -> Result<u64, WorkloadError> {
        let mut pass = Pass::open(self, &self.shape(context)?, false)?;
        let mut first = Selected::EMPTY;
        pass.next(&mut first, &mut Counts::default())?;
        Ok(pass.latest_ns())
    }

    /// How long a recorded time takes in a replay: the intensity applied.
    pub(crate) fn scaled_ns(&self, recorded_ns: u64, context: &Context) -> Result<u64, WorkloadError> {
        Ok(self.shape(context)?.scale(recorded_ns))
    }

    /// The format that is given, or that the file's contents show.
    ///
    /// # Errors
    /// If it cannot be read, or is no trace.
    pub fn format(&self) -> Result<FormatName, WorkloadError> {
        Ok(self.open_file(false)?.format)
    }

    /// Whether what its requests took is no longer theirs: at another pace, over again, of
    /// another length.
    pub(crate) fn is_altered(&self) -> bool {
        self.intensity != 1.0 || self.repeat > 1 || self.write_magnification > 1
    }

    /// Opens the file itself.
    pub(crate) fn open_file(&self, responses: bool) -> Result<Opened, WorkloadError> {
        let options = ReaderOptions {
            time_unit: self.time_unit,
            action: self.action.clone(),
            columns: self.columns.clone(),
            is_forced: self.format.is_some(),
            times: self.times,
            responses,
        };
        readers::open(&self.path, self.format, &options)
    }
}

impl Open for Trace {
    fn open(&self, context: &Context, watch: &mut Watch<'_>) -> Result<Box<dyn Source>, Stopped> {
        Ok(Box::new(self.source(context, watch)?))
    }

    fn check(&self, context: &Context, watch: &mut Watch<'_>) -> Result<(), Stopped> {
        if is_read_once(&self.path) {
            return Ok(self.shape(context).map(drop)?);
        }
        self.open(context, watch).map(drop)
    }

    fn is_finite(&self) -> bool {
        true
    }
}

/// A trace being replayed.
pub(crate) struct TraceSource {
    trace: Trace,
    shape: Shape,
    pass: Pass,
    placement: Arc<AddressMap>,
    passes_left: u32,
    counts: Counts,
    requests_left: u64,
    /// Whether what a pass shows has been noted.
    is_noted: bool,
    /// Time of the current pass's first request.
    start_ns: u64,
    /// Time of the last request delivered.
    last_ns: u64,
    delivered_in_pass: u64,
    /// Bytes read and written among them, as they were asked for.
    bytes_in_pass: u64,
    /// What each request of the last batch took, if that was asked for and is known.
    responses: Option<Vec<u64>>,
    notes: Vec<String>,
}

impl Source for TraceSource {
    fn fill(&mut self, batch: &mut Vec<Arrival>, limit: usize) -> Result<(), WorkloadError> {
        batch.clear();
        if let Some(responses) = &mut self.responses {
            responses.clear();
        }
        let mut selected = Selected::EMPTY;
        while batch.len() < limit && self.requests_left > 0 {
            if !self.pass.next(&mut selected, &mut self.counts)? {
                if self.counts.delivered == 0 {
                    return Err(self.pass.nothing_left(&self.trace, &self.counts));
                }
                if self.passes_left == 0 {
                    self.requests_left = 0;
                    break;
                }
                self.begin_again()?;
                continue;
            }
            let time_ns = self.start_ns.saturating_add(selected.time_ns);
            if self.shape.duration_ns.is_some_and(|end| time_ns >= end) {
                self.counts.outside_window += 1;
                self.requests_left = 0;
                break;
            }
            WorkloadError::unless_countable(time_ns)?;
            let (lba, sectors) = self
                .placement
                .place(&selected, &mut self.counts)
                .map_err(|message| self.pass.refuse(selected.item, message))?;
            if sectors == 0 && matches!(selected.operation, Operation::Trim | Operation::WriteZeroes) {
                self.counts.trims_dropped += 1;
                continue;
            }
            self.counts.deliver(selected.operation);
            self.requests_left -= 1;
            self.delivered_in_pass += 1;
            if matches!(selected.operation, Operation::Read | Operation::Write) {
                self.bytes_in_pass += u64::from(selected.asked_sectors) * SECTOR_BYTES;
            }
            self.last_ns = time_ns;
            if let Some(responses) = &mut self.responses {
                responses.push(selected.response_ns);
            }
            batch.push(Arrival {
                time: Time(time_ns),
                operation: selected.operation,
                lba: Lba(lba),
                sectors,
                asked_sectors: selected.asked_sectors,
            });
        }
        if self.requests_left == 0 {
            self.note_pass();
        }
        Ok(())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn progress(&self) -> Option<f64> {
        let passes = f64::from(self.trace.repeat - 1 - self.passes_left) + self.pass.progress();
        Some(passes / f64::from(self.trace.repeat))
    }

    fn basis(&self) -> Basis {
        self.pass.basis()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn responses(&self) -> &[u64] {
        self.responses.as_deref().unwrap_or_default()
    }
}

impl TraceSource {
    /// The number of the device that a sector belongs to; 0 where all are on the same addresses.
    pub(crate) fn device_at(&self, lba: Lba) -> usize {
        self.placement.device_at(lba.0)
    }

    /// Notes what is known at the end of the first pass, or where a limit ends it: what was met
    /// on the way, and a rate that no drive could serve.
    fn note_pass(&mut self) {
        if std::mem::replace(&mut self.is_noted, true) {
            return;
        }
        let met: Vec<String> =
            self.pass.notes().into_iter().filter(|note| !self.notes.contains(note)).collect();
        self.notes.extend(met);
        // As recorded: who asks for more may have it.
        let span_ns = (self.last_ns - self.start_ns) as f64 * self.trace.intensity.max(1.0);
        let pace = Pace {
            requests: self.delivered_in_pass,
            bytes: self.bytes_in_pass,
            span_ns: span_ns as u64,
            latest_ns: self.pass.latest_ns(),
        };
        self.notes.extend(self.pass.rate_note(&pace));
    }

    fn begin_again(&mut self) -> Result<(), WorkloadError> {
        self.note_pass();
        let gaps = self.delivered_in_pass.saturating_sub(1).max(1);
        self.start_ns = self.last_ns.saturating_add((self.last_ns - self.start_ns) / gaps);
        self.passes_left -= 1;
        self.delivered_in_pass = 0;
        self.bytes_in_pass = 0;
        // A pass that ends early is read, so that counts end with it.
        let is_whole =
            |kept: &&Arc<Kept>| self.shape.duration_ns.is_none() && kept.requests <= self.requests_left;
        let kept = self.placement.kept.as_ref().filter(is_whole);
        self.pass = Pass::again(&self.trace, &self.shape, kept, self.responses.is_some())?;
        Ok(())
    }
}
