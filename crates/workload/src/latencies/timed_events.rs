//! Traces of Windows' events, which say when each request was issued and when it
//! completed: they are read once by each time.

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
    let open = |times| {
        let options = ReaderOptions {
            time_unit: None,
            action: None,
            columns: None,
            is_forced: true,
            times,
            responses: false,
        };
        readers::open(path, Some(format), &options)
    };
    let (mut issued, mut completed) = (open(Times::Issued)?, open(Times::Recorded)?);
    let (mut all, mut counts, mut passed_over) = (Vec::new(), Counts::default(), 0);
    let (mut issue, mut completion) = (Record::EMPTY, Record::EMPTY);
    // Both have the same lines, so that what is wrong with one is wrong with both.
    while issued.reader.next(&mut issue, &mut counts)?
        && completed.reader.next(&mut completion, &mut counts)?
    {
        pulse.step(|| issued.progress.fraction())?;
        if !matches!(issue.operation, Operation::Read | Operation::Write) || issue.bytes == 0 {
            passed_over += 1;
            continue;
        }
        // Times of issue begin to count earlier.
        let latency_ns = completion.time_ns + readers::ISSUED_BEFORE_NS - issue.time_ns;
        let range = (issue.offset, issue.bytes);
        let refuse = |why| WorkloadError::at(&issued.file, Location::Line(issue.item), why);
        let request =
            served(issue.time_ns, latency_ns, issue.operation, range, issue.item).map_err(refuse)?;
        all.push((issue.device, request));
    }
    let (requests, others) = of_chosen(&issued.file, issued.reader.devices(), options, all)?;
    let passed_over = passed_over + others;
    Ok(LatencyLog { file: issued.file, format: "etw", requests, passed_over, notes: issued.reader.notes() })
}
