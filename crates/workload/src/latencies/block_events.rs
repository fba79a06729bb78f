//! Events of the block layer: a request's `D` (issued to the driver) and the `C`
//! (completed) of the same device, operation and first sector, in blkparse's text or
//! blktrace's binary files. A completion is that of the latest submission still open.

use std::collections::BTreeMap;
use std::path::Path;

use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, chosen, served};
use crate::error::Pulse;
use crate::readers::{self, FormatName, ReaderOptions, Record, Times};
use crate::{Counts, Location, Stopped, WorkloadError};

/// Reads the requests of which both events are there.
pub(super) fn read(
    path: &Path,
    format: &'static str,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let issued = Events::read(path, format, "D", options, pulse)?;
    let completed = Events::read(path, format, "C", options, pulse)?;
    let (file, is_text) = (issued.file, format == "blkparse");
    if issued.records.is_empty() || completed.records.is_empty() {
        let message = format!(
            "{} D events and {} C events of reads and writes; both say what a request took \
             (blktrace -a issue -a complete records them)",
            issued.records.len(),
            completed.records.len()
        );
        return Err(WorkloadError::file(&file, message).into());
    }
    // Lines are in order of time; a line that is not shows that it is wrong.
    let key = |record: &Record| if is_text { record.item } else { record.time_ns };
    let mut open: BTreeMap<(Operation, u64), Vec<Record>> = BTreeMap::new();
    let (mut next, mut requests, mut unmatched) = (issued.records.iter().peekable(), Vec::new(), 0);
    for end in &completed.records {
        while let Some(begin) = next.next_if(|begin| key(begin) <= key(end)) {
            open.entry((begin.operation, begin.offset)).or_default().push(*begin);
        }
        let entry = open.get_mut(&(end.operation, end.offset));
        // The latest: an earlier one whose completion was lost stays behind, and moves no other.
        // Of several at a time the sum of the latencies is the same.
        let Some(begin) = entry.and_then(Vec::pop) else {
            unmatched += 1;
            continue;
        };
        let place = if is_text { Location::Line(end.item) } else { Location::File };
        let refuse = |message: String| WorkloadError::at(&file, place, message);
        let latency_ns = end.time_ns.checked_sub(begin.time_ns).ok_or_else(|| {
            refuse(format!("the completion is {} ns before its submission", begin.time_ns - end.time_ns))
        })?;
        let range = (begin.offset, begin.bytes);
        requests.push(served(begin.time_ns, latency_ns, begin.operation, range, end.item).map_err(refuse)?);
    }
    let unended = next.count() as u64 + open.values().map(|begun| begun.len() as u64).sum::<u64>();
    let mut notes = Vec::new();
    if requests.is_empty() {
        let message = "no D event has a C event of the same operation and first sector after it";
        return Err(WorkloadError::file(&file, message).into());
    }
    if unmatched + unended > 0 {
        notes.push(format!(
            "{unmatched} completions without a submission and {unended} submissions without a completion \
             are left out"
        ));
    }
    Ok(LatencyLog { file, format, requests, passed_over: issued.passed_over + unmatched + unended, notes })
}

/// The events of one action, of reads and writes to one device.
struct Events {
    file: String,
    records: Vec<Record>,
    passed_over: u64,
}

impl Events {
    fn read(
        path: &Path,
        format: &str,
        action: &str,
        options: &LatencyLogOptions,
        pulse: &mut Pulse<'_, '_>,
    ) -> Result<Events, Stopped> {
        let reader_options = ReaderOptions {
            time_unit: None,
            action: Some(action.to_owned()),
            columns: None,
            is_forced: true,
            times: Times::Recorded,
            responses: false,
        };
        let name = FormatName::parse(format).expect("it is one of ours");
        let mut opened = readers::open(path, Some(name), &reader_options)?;
        let (mut all, mut record, mut counts) = (Vec::new(), Record::EMPTY, Counts::default());
        while opened.reader.next(&mut record, &mut counts)? {
            pulse.step(|| opened.progress.fraction())?;
            all.push(record);
        }
        let file = opened.file;
        let devices = opened.reader.devices();
        let device = chosen(&file, &devices.names(), options.device.as_deref())?;
        let before = all.len();
        all.retain(|record| {
            record.device == device
                && matches!(record.operation, Operation::Read | Operation::Write)
                && record.bytes > 0
        });
        Ok(Events { file, passed_over: (before - all.len()) as u64, records: all })
    }
}
