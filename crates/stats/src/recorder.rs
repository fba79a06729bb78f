//! The recorder: takes every completion of a run.

use std::sync::mpsc::SyncSender;

use flashkeel_engine::{Completion, Lba, Operation, SECTOR_BYTES, Span, Status, TenantId, Time};

use crate::{
    BlameTable, Latencies, LogRows, MeasureConfig, Series, SizeClass, Summary,
    class::Group,
    digest::Hasher,
    request_log::RequestLog,
    summary::{Detail, Totals},
};

/// Measures a run from its completions.
///
/// Requests submitted before the end of the warm-up count in the digest only.
/// Requests that ended other than [`Status::Ok`] are counted, but enter no
/// distribution.
#[derive(Clone, Debug)]
pub struct Recorder {
    measure_from: Time,
    /// When the last of what is measured arrived and completed.
    last_arrival: Time,
    last_completion: Time,
    hasher: Hasher,
    totals: Totals,
    latencies: Latencies,
    blame: BlameTable,
    series: Series,
    log: Option<RequestLog>,
}

/// What a request asked, as it is recorded once it has completed.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What for.
    pub operation: Operation,
    /// First sector; 0 for a flush.
    pub lba: Lba,
    /// Length in sectors.
    pub sectors: u32,
    /// Length in sectors before it was aligned to the device, by which the request is
    /// classed.
    pub asked_sectors: u32,
    /// When: its latency counts from here.
    pub arrived: Time,
    /// Who asked.
    pub tenant: TenantId,
}

/// What a recorder ends as.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The results of the run.
    pub summary: Summary,
    /// The time series.
    pub series: Series,
}

impl Recorder {
    /// A recorder for one run that starts with `warm_up`; `gauge_names` name
    /// the readings that [`close_windows`](Recorder::close_windows) will get.
    ///
    /// # Panics
    /// If the series window is zero, which a configuration that was read from a
    /// document never has.
    pub fn new(config: &MeasureConfig, warm_up: Span, gauge_names: &[&str]) -> Self {
        let measure_from = Time::ZERO + warm_up;
        Recorder {
            measure_from,
            last_arrival: measure_from,
            last_completion: measure_from,
            hasher: Hasher::EMPTY,
            totals: Totals::default(),
            latencies: Latencies::default(),
            blame: BlameTable::default(),
            series: Series::new(measure_from, config.series_window, gauge_names),
            log: None,
        }
    }

    /// Hands one row for each measured request to `rows`, in order of completion and
    /// [`LogRows::MOST`] at a time, until there are `max_rows`; with the end of the run what
    /// is left comes, even if it is none. Rows of several tenants say whose they are.
    pub fn log_to(&mut self, rows: SyncSender<LogRows>, max_rows: u64, has_tenants: bool) {
        self.log = Some(RequestLog::new(max_rows, rows, has_tenants));
    }

    /// Takes one completion. The latency is the time from the request's arrival to the
    /// completion, and the completion's ledger must sum to it.
    #[inline]
    pub fn record(&mut self, asked: &Asked, completion: &Completion) {
        self.hasher.absorb(completion.id.0);
        self.hasher.absorb(completion.time.0);
        self.hasher.absorb(completion.status as u64);
        if asked.arrived < self.measure_from {
            return;
        }
        self.totals.requests += 1;
        self.last_arrival = self.last_arrival.max(asked.arrived);
        self.last_completion = self.last_completion.max(completion.time);
        if completion.status != Status::Ok {
            self.totals.ends[completion.status as usize] += 1;
            return;
        }
        let latency = completion.time.since(asked.arrived);
        let bytes = u64::from(asked.sectors) * SECTOR_BYTES;
        let size = SizeClass::of(u64::from(asked.asked_sectors) * SECTOR_BYTES);
        let group = Group::of(asked.operation, size);
        self.latencies.record(asked.operation, size, latency, bytes);
        self.series.record(group, completion.time, latency, bytes);
        self.totals.gc_blocked += u64::from(completion.ledger.has_gc());
        self.blame.record(group, latency, &completion.ledger);
        if let Some(log) = &mut self.log {
            log.record(asked, completion);
        }
    }

    /// Takes a final counter of the device or host into the digest.
    pub fn absorb(&mut self, word: u64) {
        self.hasher.absorb(word);
    }

    /// When the open window of the time series ends. The first window starts
    /// with the end of the warm-up.
    #[inline]
    pub fn next_window_end(&self) -> Time {
        self.series.end_of_window()
    }

    /// Closes every window that ends at or before `now`, with these readings.
    /// Call it before recording completions at or after
    /// [`next_window_end`](Recorder::next_window_end); a completion that comes
    /// first closes the windows itself with the readings of the window before.
    ///
    /// # Panics
    /// If `gauges` and the gauge names differ in number.
    pub fn close_windows(&mut self, now: Time, gauges: &[u64]) {
        self.series.close(now, gauges);
    }

    /// Ends the run at `end` with these last readings.
    ///
    /// # Panics
    /// If `gauges` and the gauge names differ in number.
    pub fn finish(mut self, end: Time, gauges: &[u64]) -> Measurement {
        self.series.finish(end, gauges);
        if let Some(log) = &mut self.log {
            log.flush();
            self.totals.not_logged = log.not_logged;
        }
        let detail = Detail {
            measured_ns: end.0.saturating_sub(self.measure_from.0),
            last_arrival_ns: self.last_arrival.since(self.measure_from).0,
            last_completion_ns: self.last_completion.since(self.measure_from).0,
            histograms: self.latencies,
            blame: self.blame,
        };
        let summary = Summary::new(self.hasher.finish(), self.totals, detail);
        Measurement { summary, series: self.series }
    }
}
