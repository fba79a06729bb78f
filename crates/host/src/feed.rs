//! One tenant's arrivals, as the driver takes them.

use flashkeel_engine::{Coming, Completion, Hint, Leaf, Operation, Request, TenantId, Time};
use flashkeel_stats::{Asked, Measurement, Recorder};
use flashkeel_workload::pacing::{Due, Pacer, Progress};
use flashkeel_workload::{Arrival, Source, WorkloadConfig, WorkloadError};

/// Arrivals taken from the source at a time.
const BATCH: usize = 1024;
/// Arrivals that a leaf is told of at a time. The memory serves several
/// fetches at once, but stalls the program for each that stands alone.
const BURST: usize = 16;
/// Batches of which none takes time before a workload that only time can end is
/// given up: 16 million requests, which no device takes at once.
const BATCHES_AT_ONCE: u32 = 1 << 14;
/// How far ahead of an arrival a leaf is told that it comes soon.
const SOON: usize = BURST / 2;

/// One of those who share the device: what it asks, and what is measured of it.
pub struct Tenant<'a> {
    /// Where its requests come from.
    pub source: &'a mut dyn Source,
    /// How they are paced and when they end.
    pub workload: &'a WorkloadConfig,
    /// Takes this tenant's completions, where they are measured apart from the
    /// others'; without gauges.
    pub recorder: Option<Recorder>,
}

/// A source and where the driver is in it.
pub(crate) struct Feed<'a> {
    id: TenantId,
    source: &'a mut dyn Source,
    pub workload: &'a WorkloadConfig,
    batch: Vec<Arrival>,
    /// The same as a leaf is told of them before they come.
    coming: Vec<Coming>,
    at: usize,
    /// When a batch was last used up, and how many before it at that very instant.
    drained: (Time, u32),
    /// The time from which nothing more is submitted; [`Time::MAX`] if there is none.
    pub end: Time,
    pacer: Box<dyn Pacer>,
    pub progress: Progress,
    /// Whether its requests carry a hint or a flag.
    pub is_marked: bool,
    recorder: Option<Recorder>,
}

impl<'a> Feed<'a> {
    /// That of a tenant, as `id`.
    pub fn new(id: TenantId, tenant: Tenant<'a>) -> Feed<'a> {
        let Tenant { source, workload, recorder } = tenant;
        // An open source ends by itself.
        let is_open = workload.pacing.policy().is_open();
        let duration = workload.duration.filter(|_| !is_open);
        Feed {
            id,
            source,
            workload,
            batch: Vec::new(),
            coming: Vec::new(),
            at: 0,
            drained: (Time::ZERO, 0),
            end: duration.map_or(Time::MAX, |duration| Time::ZERO + duration),
            pacer: workload.pacing.policy().pacer(),
            is_marked: workload.hint != 0 || workload.fua,
            progress: Progress { in_flight: 0, completed: Time::ZERO, arrived: Time::ZERO },
            recorder,
        }
    }

    /// When the next arrival is due, seen at `now`; at once only if that is before the
    /// workload's end.
    #[inline]
    pub fn due(&mut self, now: Time) -> Result<Due, WorkloadError> {
        let arrives = match self.batch.get(self.at) {
            Some(arrival) => arrival.time,
            None => match self.refill()? {
                Some(arrival) => arrival.time,
                None => return Ok(Due::Later),
            },
        };
        let due = self.pacer.due(arrives, &self.progress);
        let ends = match due {
            Due::At(time) => time >= self.end,
            Due::AtOnce => now >= self.end,
            Due::Later => false,
        };
        Ok(if ends { Due::Later } else { due })
    }

    /// Takes the next batch from the source, and looks at its first arrival.
    #[cold]
    fn refill(&mut self) -> Result<Option<&Arrival>, WorkloadError> {
        self.source.fill(&mut self.batch, BATCH)?;
        self.at = 0;
        let coming = |&Arrival { operation, lba, .. }: &Arrival| Coming { operation, tenant: self.id, lba };
        self.coming.clear();
        self.coming.extend(self.batch.iter().map(coming));
        Ok(self.batch.first())
    }

    /// The arrival that [`due`](Self::due) has spoken of.
    #[inline]
    pub fn next(&self) -> Arrival {
        self.batch[self.at]
    }

    /// Puts the workload's hint and flag on one of its requests.
    #[cold]
    pub fn mark(&self, request: &mut Request) {
        request.hint = Hint(self.workload.hint);
        request.fua =
            self.workload.fua && matches!(request.operation, Operation::Write | Operation::WriteZeroes);
    }

    /// It has been submitted: goes on to the arrival after it.
    #[inline]
    pub fn pass(&mut self, arrival: &Arrival) {
        self.progress.in_flight += 1;
        self.progress.arrived = arrival.time;
        self.at += 1;
    }

    /// Tells a leaf what is coming, a burst at a time.
    #[inline]
    pub fn announce(&self, leaf: &(impl Leaf + ?Sized)) {
        if !self.at.is_multiple_of(BURST) {
            return;
        }
        let coming = self.coming.get(self.at + SOON..).unwrap_or_default();
        let (soon, later) = coming.split_at(coming.len().min(BURST));
        leaf.expect_soon(soon);
        leaf.expect(&later[..later.len().min(BURST)]);
    }

    /// Whether a batch has just been used up.
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.at == self.batch.len()
    }

    /// A batch has been used up: whether so many have at this instant that the
    /// workload will never end, as nothing but time ends it.
    #[cold]
    pub fn stands_still(&mut self, now: Time) -> bool {
        let at_once = if self.drained.0 == now { self.drained.1 + 1 } else { 0 };
        self.drained = (now, at_once);
        let is_endless = self.workload.requests.is_none() && !self.workload.source.policy().is_finite();
        is_endless && at_once >= BATCHES_AT_ONCE
    }

    /// The fraction of the workload that is done: whatever will end it first is
    /// nearest to its end.
    pub fn fraction(&self, now: Time) -> f64 {
        let WorkloadConfig { requests, duration, .. } = *self.workload;
        let by_count = requests.map(|requests| self.source.counts().delivered as f64 / requests as f64);
        let by_time = duration.map(|duration| now.as_secs_f64() / duration.as_secs_f64());
        by_count.into_iter().chain(by_time).chain(self.source.progress()).fold(0.0, f64::max).min(1.0)
    }

    /// One of its requests has completed.
    #[inline]
    pub fn record(&mut self, asked: &Asked, completion: &Completion) {
        self.progress.in_flight -= 1;
        self.progress.completed = self.progress.completed.max(completion.time);
        if let Some(recorder) = &mut self.recorder {
            recorder.record(asked, completion);
        }
    }

    /// When the latest of its requests completed.
    pub fn completed(&self) -> Time {
        self.progress.completed
    }

    /// What has been measured of this tenant alone, if anything was to be.
    pub fn finish(self, end: Time) -> Option<Measurement> {
        self.recorder.map(|recorder| recorder.finish(end, &[]))
    }
}
