//! Traces of Windows' events, which say when each request completed and what it took.

use std::path::Path;

use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, of_chosen, served};
use crate::error::Pulse;
use crate::readers::{self, FormatName, ReaderOptions, Record, Times};
use crate::{Counts, Location, Stopped, WorkloadError};

/// Reads the reads and writes of an ETW trace.
pub(super) fn read(
    path: &Path,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let format = FormatName::parse("etw").expect("it is one of ours");
    let reader_options = ReaderOptions {
        time_unit: options.time_unit,
        action: None,
        columns: None,
        is_forced: true,
        times: Times::Issued,
        responses: true,
    };
    let mut issued = readers::open(path, Some(format), &reader_options)?;
    let (mut all, mut counts, mut passed_over) = (Vec::new(), Counts::default(), 0);
    let mut issue = Record::EMPTY;
    while issued.reader.next(&mut issue, &mut counts)? {
        pulse.step(|| issued.progress.fraction())?;
        if !matches!(issue.operation, Operation::Read | Operation::Write) || issue.bytes == 0 {
            passed_over += 1;
            continue;
        }
        let range = (issue.offset, issue.bytes);
        let refuse = |why| WorkloadError::at(&issued.file, Location::Line(issue.item), why);
        let request =
            served(issue.time_ns, issue.response_ns, issue.operation, range, issue.item).map_err(refuse)?;
        all.push((issue.device, request));
    }
    let (requests, others) = of_chosen(&issued.file, issued.reader.devices(), options, all)?;
    let passed_over = passed_over + others;
    Ok(LatencyLog { file: issued.file, format: "etw", requests, passed_over, notes: issued.reader.notes() })
}
