//! Traces of lines that have a column for what each request took.

use flashkeel_engine::Operation;

use super::{LatencyLog, LatencyLogOptions, of_chosen, served};
use crate::error::Pulse;
use crate::input::Input;
use crate::readers::{Devices, Record, Table};
use crate::{Location, Stopped, WorkloadError};

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
    Ok(LatencyLog { file, format, requests, passed_over, notes: Vec::new() })
}
