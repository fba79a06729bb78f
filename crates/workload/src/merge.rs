//! Several traces as one.

use std::path::Path;

use flashkeel_engine::{Operation, Time};

use crate::trace::DeviceSpaces;
use crate::writers::{ALTERED, WriterName, Written, conversion, refuse_overwriting, save_measured};
use crate::{Arrival, Basis, Counts, Source, Stopped, Trace, Watch, WorkloadError};

const BATCH: usize = 1024;
const NS_PER_S: u64 = 1_000_000_000;
/// Address spaces begin at multiples of this, as those of a trace's devices do.
const LAYOUT_SECTORS: u64 = (1 << 20) / 512;

/// When the traces that are merged begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginnings {
    /// All together, at the beginning of the merged trace.
    Together,
    /// As recorded: for traces of one recording, whose clocks are the same.
    Recorded,
}

/// Writes several traces to `out` as one, by time and at equal times in their
/// order. Their address spaces lie one after the other, or on the same
/// addresses. `watch` is told how much is done; each is read once for each of
/// these: to lay out its own devices, to find how far it reaches, to convert it.
///
/// # Errors
/// As for [`convert`](crate::convert) of each trace.
pub fn merge(
    traces: &[Trace],
    beginnings: Beginnings,
    spaces: DeviceSpaces,
    format: WriterName,
    out: &Path,
    watch: &mut Watch<'_>,
) -> Result<Written, Stopped> {
    let mut parts = Vec::new();
    let (mut base, mut origins) = (0, Vec::new());
    for trace in traces {
        refuse_overwriting(trace, out)?;
        if crate::input::is_read_once(&trace.path) {
            let message = "traces that are merged are read more than once, and a pipe cannot be; save it to a file first";
            return Err(WorkloadError::file(&trace.path.display().to_string(), message).into());
        }
        if beginnings == Beginnings::Recorded {
            origins.push(trace.origin_ns(&conversion())?);
        }
        let reach = if spaces == DeviceSpaces::Separate { reach(trace, watch)? } else { 0 };
        parts.push(Part {
            source: trace.open_whole(&conversion(), true, watch)?,
            batch: Vec::new(),
            at: 0,
            base,
            delay_ns: 0,
        });
        if base > conversion().device_sectors.saturating_sub(reach) {
            let message = "behind the traces before it, it reaches beyond 2^64 bytes; --addresses merge puts them onto \
                           the same addresses";
            return Err(WorkloadError::file(&trace.path.display().to_string(), message).into());
        }
        base += reach.next_multiple_of(LAYOUT_SECTORS);
    }
    let first = origins.iter().copied().min().unwrap_or(0);
    for ((part, trace), origin) in parts.iter_mut().zip(traces).zip(&origins) {
        part.delay_ns = trace.scaled_ns(origin - first, &conversion())?;
    }
    if parts.iter().any(|part| WorkloadError::unless_countable(part.delay_ns).is_err()) {
        return Err(of_different_clocks(traces, &origins).into());
    }
    for part in &mut parts {
        part.refill()?;
    }
    let is_measured = |part: &Part| part.source.responses().iter().any(|ns| *ns > 0);
    let left_out = if traces.iter().any(Trace::is_altered) {
        Some(ALTERED)
    } else if !parts.iter().all(is_measured) {
        Some("not all of the traces have them")
    } else {
        None
    };
    let (counts, notes, responses) = (Counts::default(), Vec::new(), Vec::new());
    save_measured(&mut Merged { parts, counts, notes, responses }, format, left_out, out, watch)
}

/// Why traces cannot be merged as recorded that lie further apart than can be simulated.
fn of_different_clocks(traces: &[Trace], origins: &[u64]) -> WorkloadError {
    let begins = traces.iter().zip(origins).map(|(trace, origin_ns)| {
        let (whole_s, part_ns) = (origin_ns / NS_PER_S, origin_ns % NS_PER_S);
        format!("{} at {whole_s}.{part_ns:09}s", trace.path.display())
    });
    let begins: Vec<String> = begins.collect();
    let message = format!(
        "the traces are not of one clock: by their own, they begin more than 292 years apart ({}); --times \
         together lets them begin together",
        begins.join(", ")
    );
    WorkloadError::key("--times recorded", message)
}

/// How far a trace reaches, in sectors.
fn reach(trace: &Trace, watch: &mut Watch<'_>) -> Result<u64, Stopped> {
    let mut source = trace.open_whole(&conversion(), false, watch)?;
    let (mut batch, mut reach) = (Vec::new(), 0);
    loop {
        source.fill(&mut batch, BATCH)?;
        if batch.is_empty() {
            return Ok(reach);
        }
        let ends = batch.iter().map(|arrival| arrival.lba.0 + u64::from(arrival.sectors));
        reach = ends.fold(reach, u64::max);
        if watch(source.progress().unwrap_or(0.0)).is_break() {
            return Err(Stopped::Interrupted);
        }
    }
}

/// One of the traces.
struct Part {
    source: Box<dyn Source>,
    batch: Vec<Arrival>,
    /// Its next arrival in `batch`.
    at: usize,
    /// First sector of its address space.
    base: u64,
    /// Its beginning.
    delay_ns: u64,
}

impl Part {
    fn refill(&mut self) -> Result<(), WorkloadError> {
        if self.at == self.batch.len() {
            self.source.fill(&mut self.batch, BATCH)?;
            self.at = 0;
        }
        Ok(())
    }

    fn time_ns(&self) -> Option<u64> {
        self.batch.get(self.at).map(|arrival| arrival.time.0.saturating_add(self.delay_ns))
    }
}

struct Merged {
    parts: Vec<Part>,
    counts: Counts,
    notes: Vec<String>,
    /// What each arrival of the last batch took.
    responses: Vec<u64>,
}

impl Source for Merged {
    fn fill(&mut self, batch: &mut Vec<Arrival>, limit: usize) -> Result<(), WorkloadError> {
        batch.clear();
        self.responses.clear();
        while batch.len() < limit {
            let times =
                self.parts.iter().enumerate().filter_map(|(index, part)| Some((part.time_ns()?, index)));
            let Some((time_ns, index)) = times.min() else { break };
            WorkloadError::unless_countable(time_ns)?;
            let part = &mut self.parts[index];
            let mut arrival = part.batch[part.at];
            arrival.time = Time(time_ns);
            // A flush has no address.
            if arrival.operation != Operation::Flush {
                arrival.lba.0 += part.base;
            }
            self.responses.push(part.source.responses().get(part.at).copied().unwrap_or(0));
            part.at += 1;
            part.refill()?;
            batch.push(arrival);
        }
        let mut counts = Counts::default();
        for part in &self.parts {
            counts.add(part.source.counts());
        }
        self.counts = counts;
        self.notes = self.parts.iter().flat_map(|part| part.source.notes().to_vec()).collect();
        Ok(())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn progress(&self) -> Option<f64> {
        let done = self.parts.iter().filter_map(|part| part.source.progress());
        Some(done.sum::<f64>() / self.parts.len() as f64)
    }

    fn basis(&self) -> Basis {
        let is_synthetic = self.parts.iter().any(|part| part.source.basis() == Basis::Synthetic);
        if is_synthetic { Basis::Synthetic } else { Basis::Trace }
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn responses(&self) -> &[u64] {
        &self.responses
    }
}
