//! The requests of a trace in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use flashkeel_engine::{Operation, Span};

use super::{Trace, ZeroLength};
use crate::readers::{Opened, Reader, Record, says_synthetic};
use crate::{Basis, Counts, Location, WorkloadError};

/// Longest request there may be: any in use is far shorter, and one that is
/// not comes from a misread field.
pub(super) const LONGEST_BYTES: u64 = 1 << 40;

/// Longest window that is advised; no recorder holds requests back for longer.
const LONGEST_WINDOW_NS: u64 = 60 * 1_000_000_000;

/// A reader whose requests come by time, those at equal times as recorded.
///
/// Without a reorder window a time that goes backwards is an error; with one,
/// requests wait until no earlier one can come, and only going backwards by
/// more than the window is an error.
pub(crate) struct Ordered {
    file: String,
    notes: Vec<String>,
    reader: Box<dyn Reader>,
    window_ns: Option<u64>,
    zero_length: ZeroLength,
    /// Lines that may be wrong, those among them that were, and where the last was.
    bad_lines: u64,
    left_out: u64,
    last_bad: Location,
    newest_ns: u64,
    // Items are numbered in the order of the file, so ties keep it.
    waiting: BinaryHeap<Reverse<Record>>,
    is_ended: bool,
}

impl Ordered {
    /// The requests of a trace that has been opened with these settings.
    pub(crate) fn new(opened: Opened, trace: &Trace) -> Self {
        Ordered {
            file: opened.file,
            notes: opened.notes,
            reader: opened.reader,
            window_ns: trace.reorder.map(Span::as_ns),
            zero_length: trace.zero_length,
            bad_lines: trace.bad_lines,
            left_out: 0,
            last_bad: Location::File,
            newest_ns: 0,
            waiting: BinaryHeap::new(),
            is_ended: false,
        }
    }

    pub(crate) fn reader(&self) -> &dyn Reader {
        &*self.reader
    }

    /// The error of a line or record.
    #[cold]
    pub(crate) fn refuse(&self, item: u64, message: impl Into<String>) -> WorkloadError {
        let file = self.reader.file(item).unwrap_or(&self.file);
        WorkloadError::at(file, self.reader.place(item), message)
    }

    /// Assumptions that a result must show.
    pub(crate) fn notes(&self) -> Vec<String> {
        [&self.notes[..], &self.reader.notes()].concat()
    }

    /// Whether the trace says by now that it was synthesised: in the name of its
    /// file, or by its devices.
    pub(crate) fn basis(&self) -> Basis {
        if says_synthetic(Path::new(&self.file)) { Basis::Synthetic } else { self.reader.devices().basis() }
    }

    /// Puts the next request into `next`; whether there was one.
    #[inline]
    pub(crate) fn next(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        let Some(window_ns) = self.window_ns else {
            let is_read = self.read(next, counts)?;
            if is_read {
                if next.time_ns < self.newest_ns {
                    return Err(self.backwards(next, None));
                }
                self.newest_ns = next.time_ns;
            }
            return Ok(is_read);
        };
        loop {
            if let Some(Reverse(first)) = self.waiting.peek()
                && (self.is_ended || self.newest_ns - first.time_ns >= window_ns)
            {
                *next = *first;
                self.waiting.pop();
                return Ok(true);
            }
            if self.is_ended {
                return Ok(false);
            }
            if self.read(next, counts)? {
                let back_ns = self.newest_ns.saturating_sub(next.time_ns);
                if back_ns > window_ns {
                    return Err(self.backwards(next, Some(window_ns)));
                }
                counts.reordered += u64::from(back_ns > 0);
                self.newest_ns = self.newest_ns.max(next.time_ns);
                self.waiting.push(Reverse(*next));
            } else {
                self.is_ended = true;
            }
        }
    }

    /// Puts the next request as recorded into `record`, if it has a length.
    #[inline]
    fn read(&mut self, record: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        loop {
            match self.reader.next(record, counts) {
                Ok(true) if record.bytes > LONGEST_BYTES => {
                    let message = format!("a request of {} bytes; none is longer than 1TiB", record.bytes);
                    let error = self.refuse(record.item, message);
                    self.leave_out(error, counts)?;
                    continue;
                }
                Ok(true) => counts.read += 1,
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.leave_out(error, counts)?;
                    continue;
                }
            }
            if record.bytes > 0 || record.operation == Operation::Flush {
                return Ok(true);
            }
            if self.zero_length == ZeroLength::Refuse {
                return Err(self.refuse(
                    record.item,
                    "a request of no length; zero_length = \"skip\" leaves such requests out",
                ));
            }
            counts.zero_length += 1;
        }
    }

    /// Passes over what is wrong with a line, if so many may be.
    #[cold]
    fn leave_out(&mut self, error: WorkloadError, counts: &mut Counts) -> Result<(), WorkloadError> {
        // A reader that does not get past it would find it wrong for ever.
        let is_stuck = error.place == self.last_bad;
        if self.bad_lines == 0 || is_stuck || !matches!(error.place, Location::Line(_)) {
            return Err(error);
        }
        if self.left_out == self.bad_lines {
            let message = format!("{}; bad_lines = {} were left out before it", error.message, self.left_out);
            return Err(WorkloadError { message, ..error });
        }
        (self.left_out, self.last_bad) = (self.left_out + 1, error.place);
        counts.bad_lines += 1;
        Ok(())
    }

    #[cold]
    fn backwards(&self, record: &Record, window_ns: Option<u64>) -> WorkloadError {
        let back_ns = self.newest_ns - record.time_ns;
        let back = Span(back_ns);
        let message = match window_ns {
            None if back_ns > LONGEST_WINDOW_NS => format!(
                "the time goes back by {}, too far to put requests in order: is this the time, and are these not two \
                 traces joined?",
                length(back_ns)
            ),
            None => format!(
                "the time goes back by {back}; reorder = \"{back}\" or more puts requests in order within such a window"
            ),
            Some(window_ns) => {
                format!("the time goes back by {back}; more than the reorder window of {}", Span(window_ns))
            }
        };
        self.refuse(record.item, message)
    }
}

/// A long time in words.
fn length(ns: u64) -> String {
    let hours = ns as f64 / 3.6e12;
    match hours {
        0.0..1.0 => format!("{:.1} minutes", hours * 60.0),
        1.0..48.0 => format!("{hours:.1} hours"),
        48.0..8766.0 => format!("{:.1} days", hours / 24.0),
        _ => format!("{:.1} years", hours / 8766.0),
    }
}
