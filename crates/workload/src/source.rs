//! What the driver sees: arrivals in batches, and counts of what became of
//! the input.

use flashkeel_engine::{Lba, Operation, Time};
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// One request of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, from the start of the workload.
    pub time: Time,
    /// What is asked.
    pub operation: Operation,
    /// First sector; 0 for a flush.
    pub lba: Lba,
    /// Length in sectors; 0 for a flush only.
    pub sectors: u32,
    /// Length in sectors before it was rounded to the alignment, or cut: the
    /// size by which the request is classed.
    pub asked_sectors: u32,
}

/// A stream of arrivals with non-decreasing times, handed out in batches so
/// that dynamic dispatch costs nothing per request.
pub trait Source {
    /// Replaces the contents of `batch` by the next arrivals, at most `limit`
    /// of them. An empty batch is the end.
    ///
    /// # Errors
    /// If the input is wrong; the source must not be used afterwards.
    fn fill(&mut self, batch: &mut Vec<Arrival>, limit: usize) -> Result<(), WorkloadError>;

    /// What became of the input so far.
    fn counts(&self) -> &Counts;

    /// Fraction of the input that has been taken; `None` where it has no end.
    fn progress(&self) -> Option<f64>;

    /// Whether the arrivals are recorded or synthesised. Of a trace that says
    /// so of itself this is known once something has been taken.
    fn basis(&self) -> Basis;

    /// Assumptions that every result must show, such as an assumed time unit.
    fn notes(&self) -> &[String];

    /// What each arrival of the last batch took when it was recorded, in nanoseconds, 0 where
    /// that was not measured; none at all where it is not known or was not asked for.
    fn responses(&self) -> &[u64] {
        &[]
    }
}

/// What a workload rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A recorded trace.
    Trace,
    /// Requests made by a generator or from a profile.
    Synthetic,
}

impl Basis {
    /// Under which a Parquet file says what its requests rest on.
    pub const KEY: &str = "flashkeel.basis";

    /// What it says there.
    pub fn label(self) -> &'static str {
        match self {
            Basis::Trace => "trace",
            Basis::Synthetic => "synthetic",
        }
    }
}

/// What became of the requests of an input. A request is counted in `read`
/// and then in exactly one of `other_device`, `outside_window`, `zero_length`,
/// `trims_dropped` and `delivered`, unless the workload ends while it waits in
/// the `reorder` window; the other counters mark changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests read from the trace or generated; of zeros that the alignment divides,
    /// each part.
    pub read: u64,
    /// Requests handed to the driver.
    pub delivered: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Trims among them.
    pub trims: u64,
    /// Flushes among them.
    pub flushes: u64,
    /// Writes of zeros among them, which carry no data.
    pub write_zeroes: u64,
    /// Lines or records that are no requests: headers, blank lines, file
    /// actions, events of other kinds, SCSI commands other than read and write.
    pub not_io: u64,
    /// Lines that cannot be read, left out by `bad_lines`.
    pub bad_lines: u64,
    /// Requests left out by the `device` filter.
    pub other_device: u64,
    /// Requests left out by the `window`, or beyond the `duration`.
    pub outside_window: u64,
    /// Requests of no length, left out by `zero_length = "skip"`.
    pub zero_length: u64,
    /// Trims smaller than one alignment unit, which free nothing; where `fold` compacts,
    /// trims and writes of zeros of what is neither read nor written, too.
    pub trims_dropped: u64,
    /// Requests whose range was rounded to the alignment.
    pub aligned: u64,
    /// Requests whose address was changed by `fold`.
    pub folded: u64,
    /// Wrapped requests cut off at the end of the device.
    pub clipped: u64,
    /// Requests found out of order and put right by the `reorder` window.
    pub reordered: u64,
}

impl Counts {
    /// Adds the counts of another input.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.read += other.read;
        self.delivered += other.delivered;
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.flushes += other.flushes;
        self.write_zeroes += other.write_zeroes;
        self.not_io += other.not_io;
        self.bad_lines += other.bad_lines;
        self.other_device += other.other_device;
        self.outside_window += other.outside_window;
        self.zero_length += other.zero_length;
        self.trims_dropped += other.trims_dropped;
        self.aligned += other.aligned;
        self.folded += other.folded;
        self.clipped += other.clipped;
        self.reordered += other.reordered;
    }

    #[inline]
    pub(crate) fn deliver(&mut self, operation: Operation) {
        self.delivered += 1;
        match operation {
            Operation::Read => self.reads += 1,
            Operation::Write => self.writes += 1,
            Operation::Trim => self.trims += 1,
            Operation::Flush => self.flushes += 1,
            Operation::WriteZeroes => self.write_zeroes += 1,
            Operation::Demote => unreachable!("no source of requests has a copy to give up"),
        }
    }
}
