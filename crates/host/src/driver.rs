//! The driver in virtual time.

use std::ops::ControlFlow;

use flashkeel_engine::{Cause, Completion, Request, Submit, TenantId, Time};
use flashkeel_stats::{Measurement, Recorder};
use flashkeel_workload::{Arrival, Pacing, Source, WorkloadConfig, WorkloadError};

use crate::Measured;
use crate::flight::Flights;

/// Arrivals taken from the source at a time.
const BATCH: usize = 1024;
/// How many arrivals ahead the leaf is told of one: long enough for memory to
/// answer, short enough for the answer to stay in the cache.
const AHEAD: usize = 8;

/// Why a run ended early.
#[derive(Debug)]
pub enum DriveError {
    /// The workload is wrong.
    Workload(WorkloadError),
    /// `progress` asked for it.
    Interrupted,
}

impl From<WorkloadError> for DriveError {
    fn from(error: WorkloadError) -> Self {
        DriveError::Workload(error)
    }
}

/// Feeds a workload to a leaf until the workload ends and everything has
/// completed, and returns what `recorder` has measured.
///
/// `progress` is told the fraction done.
///
/// # Errors
/// If the workload is wrong, or `progress` breaks off.
pub fn drive<L: Measured>(
    leaf: &mut L,
    source: &mut dyn Source,
    workload: &WorkloadConfig,
    recorder: Recorder,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Measurement, DriveError> {
    let mut driver = Driver {
        warm: (workload.warm_up.as_ns() > 0).then_some(Time::ZERO + workload.warm_up),
        leaf,
        recorder,
        flights: Flights::default(),
        completions: Vec::new(),
        gauges: Vec::new(),
        latest: Time::ZERO,
    };
    let mut queue = Queue { source, batch: Vec::new(), at: 0 };
    let end = workload.duration.map(|duration| Time::ZERO + duration);
    let mut now = Time::ZERO;
    // The next arrival was refused by a busy device.
    let mut blocked = false;
    let mut previous_arrival = Time::ZERO;
    loop {
        let arrival = queue.peek()?;
        let due = arrival.and_then(|arrival| match &workload.pacing {
            Pacing::Open(_) => Some(arrival.time),
            Pacing::Closed(closed) => (driver.flights.len() < closed.depth as usize).then_some(now),
            Pacing::Think(_) => {
                let gap = arrival.time.since(previous_arrival);
                (driver.flights.len() == 0).then(|| driver.latest + gap)
            }
        });
        let due = due.filter(|&due| end.is_none_or(|end| due < end || workload.pacing.policy().is_open()));
        if due.is_none() && driver.flights.len() == 0 {
            break;
        }
        let Some((due, arrival)) = due.zip(arrival).filter(|_| !blocked) else {
            now = driver.advance_to_completion();
            blocked = false;
            continue;
        };
        now = due.max(now);
        driver.advance(now);
        if driver.submit(now, due, &arrival) == Submit::Busy {
            blocked = true;
            continue;
        }
        previous_arrival = arrival.time;
        queue.at += 1;
        if let Some(soon) = queue.batch.get(queue.at + AHEAD) {
            driver.leaf.expect(soon.lba);
        }
        if queue.at == queue.batch.len() && progress(fraction(workload, queue.source, now)).is_break() {
            return Err(DriveError::Interrupted);
        }
    }
    Ok(driver.finish(now))
}

/// The fraction of the workload that is done: whatever will end it first is
/// nearest to its end.
fn fraction(workload: &WorkloadConfig, source: &dyn Source, now: Time) -> f64 {
    let by_count = workload.requests.map(|requests| source.counts().delivered as f64 / requests as f64);
    let by_time = workload.duration.map(|duration| now.as_secs_f64() / duration.as_secs_f64());
    by_count.into_iter().chain(by_time).chain(source.progress()).fold(0.0, f64::max).min(1.0)
}

/// The arrivals to come.
struct Queue<'a> {
    source: &'a mut dyn Source,
    batch: Vec<Arrival>,
    at: usize,
}

impl Queue<'_> {
    #[inline]
    fn peek(&mut self) -> Result<Option<Arrival>, WorkloadError> {
        if self.at == self.batch.len() {
            self.source.fill(&mut self.batch, BATCH)?;
            self.at = 0;
        }
        Ok(self.batch.get(self.at).copied())
    }
}

struct Driver<'a, L> {
    leaf: &'a mut L,
    recorder: Recorder,
    flights: Flights,
    completions: Vec<Completion>,
    gauges: Vec<u64>,
    /// The end of the warm-up, while it lasts.
    warm: Option<Time>,
    /// The latest completion.
    latest: Time,
}

impl<L: Measured> Driver<'_, L> {
    /// Offers an arrival that was due at `due`.
    #[inline]
    fn submit(&mut self, now: Time, due: Time, arrival: &Arrival) -> Submit {
        let Arrival { operation, lba, sectors, .. } = *arrival;
        let request = Request { id: self.flights.next_id(), operation, tenant: TenantId(0), lba, sectors };
        let answer = self.leaf.submit(now, &request);
        if answer == Submit::Accepted {
            self.flights.take_off(request, arrival.asked_sectors, due.min(now), now);
        }
        answer
    }

    /// Runs the leaf up to `target`.
    #[inline]
    fn advance(&mut self, target: Time) {
        loop {
            let stop = self.next_stop();
            if stop > target {
                break;
            }
            self.leaf.advance(Time(stop.0 - 1), &mut self.completions);
            self.record();
            self.stop(stop);
        }
        self.leaf.advance(target, &mut self.completions);
        self.record();
    }

    /// Runs the leaf from event to event until something has completed;
    /// returns when.
    #[inline]
    fn advance_to_completion(&mut self) -> Time {
        loop {
            let stop = self.next_stop();
            if let Some(now) = self.leaf.advance_to_completion(Time(stop.0 - 1), &mut self.completions) {
                self.record();
                return now;
            }
            assert!(self.leaf.next_event().is_some(), "a request in flight has an event to come");
            self.stop(stop);
        }
    }

    /// The next time at which something is read off the leaf: what happens at
    /// that very time comes after it.
    #[inline]
    fn next_stop(&self) -> Time {
        let window = self.recorder.next_window_end();
        self.warm.map_or(window, |warm| warm.min(window))
    }

    #[cold]
    fn stop(&mut self, stop: Time) {
        if self.warm == Some(stop) {
            self.warm = None;
            self.leaf.start_measuring();
        }
        if stop == self.recorder.next_window_end() {
            self.leaf.gauges(&mut self.gauges);
            self.recorder.close_windows(stop, &self.gauges);
        }
    }

    /// Hands what has completed to the statistics.
    #[inline]
    fn record(&mut self) {
        for completion in &mut self.completions {
            let flight = self.flights.land(completion.id);
            if flight.arrived != flight.accepted {
                completion.ledger.charge_between(Cause::HostQueue, flight.arrived, flight.accepted);
            }
            self.latest = self.latest.max(completion.time);
            self.recorder.record(&flight.request, flight.asked_sectors, flight.arrived, completion);
        }
        self.completions.clear();
    }

    fn finish(mut self, now: Time) -> Measurement {
        for value in self.leaf.final_counters() {
            self.recorder.absorb(value);
        }
        self.leaf.gauges(&mut self.gauges);
        self.recorder.finish(now.max(self.latest), &self.gauges)
    }
}
