//! Traces of lines that have a column for what each request took.

use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::{LatencyLog, LatencyLogOptions, Served, of_chosen, served};
use crate::error::Pulse;
use crate::input::Input;
use crate::readers::{Devices, Record, Table};
use crate::trace::Pace;
use crate::{Location, Stopped, WorkloadError};

/// When 1970 began, by the clock of Windows that `msr` has: what was recorded by that is later.
const IN_1970_NS: u64 = 11_644_473_600 * 1_000_000_000;
const UNSURE: &str = "its times, which are not those of Windows' calendar, and its response times are taken \
                      for ticks of 100ns; --time-unit says what they are";

/// Reads the reads and writes of such a trace. Times count from the first of them: they
/// are those of calendars that begin in 1601 or 1970.
pub(super) fn read(
    mut input: Input,
    format: &'static str,
    table: &Table,
    options: &LatencyLogOptions,
    pulse: &mut Pulse<'_, '_>,
) -> Result<LatencyLog, Stopped> {
    let (file, progress) = (input.file.clone(), input.progress());
    let refuse = |item, message| WorkloadError::at(&file, Location::Line(item), message);
    let (mut devices, mut record) = (Devices::default(), Record::EMPTY);
    let has_ticks = !table.is_calendar(input.head());
    let (mut all, mut passed_over) = (Vec::new(), 0);
    while let Some((item, line)) = input.line()? {
        pulse.step(|| progress.fraction())?;
        if line.is_empty() || item == 1 && table.is_header(line) {
            continue;
        }
        let is_request =
            table.parse(line, item, &mut record, &mut devices).map_err(|message| refuse(item, message))?;
        if !is_request || !matches!(record.operation, Operation::Read | Operation::Write) {
            passed_over += 1;
            continue;
        }
        if let Some(latency_ns) =
            table.latency_ns(line, record.time_ns).map_err(|message| refuse(item, message))?
        {
            all.push((record.device, (record, latency_ns)));
        }
    }
    let (all, others) = of_chosen(&file, &devices, options, all)?;
    let began_ns = all.iter().map(|(record, _): &(Record, u64)| record.time_ns).min().unwrap_or(0);
    let mut requests = Vec::with_capacity(all.len());
    for (Record { time_ns, item, operation, offset, bytes, .. }, latency_ns) in all {
        let request = served(time_ns - began_ns, latency_ns, operation, (offset, bytes), item);
        requests.push(request.map_err(|message| refuse(item, message))?);
    }
    let passed_over = passed_over + others;
    let tick_ns = has_ticks.then_some(table.tick_ns);
    let pace = pace(&requests, began_ns);
    let notes = pace.note(tick_ns, |unit| format!("--time-unit {unit}")).or_else(|| {
        let is_told = options.time_unit.is_some() || format != "msr" || !has_ticks || began_ns >= IN_1970_NS;
        (!is_told).then(|| UNSURE.to_owned())
    });
    Ok(LatencyLog { file, format, requests, passed_over, notes: notes.into_iter().collect() })
}

/// How fast they came; the first of them at `began_ns` of the log's own clock.
fn pace(requests: &[Served], began_ns: u64) -> Pace {
    let latest_ns = requests.iter().map(|served| served.submitted.0).max().unwrap_or(0);
    Pace {
        requests: requests.len() as u64,
        bytes: requests.iter().map(|served| u64::from(served.sectors) * SECTOR_BYTES).sum(),
        span_ns: latest_ns,
        latest_ns: began_ns + latest_ns,
    }
}
