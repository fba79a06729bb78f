//! The driver in virtual time.

use std::ops::ControlFlow;

use flashkeel_engine::{
    Arena, Cause, Completion, Ledger, Outside, Request, RequestId, Span, Status, Submit, TenantId, Time,
};
use flashkeel_stats::{Measurement, Recorder};
use flashkeel_workload::WorkloadError;

use crate::Measured;
use crate::feed::{Feed, Tenant};
use crate::flight::Flights;

/// How long what is outside is waited for before whoever watches is told, and may break
/// off.
const PATIENCE: Span = Span::from_us(100_000);

/// Why a run ended early.
#[derive(Debug)]
pub enum DriveError {
    /// The workload is wrong.
    Workload(WorkloadError),
    /// `progress` asked for it.
    Interrupted,
    /// The device waits for something outside the simulation, to which nobody
    /// listens.
    Unheard,
    /// Requests come and end at this instant without end, so that the workload's
    /// duration never passes.
    Standstill(Time),
}

/// There is nothing outside that the driver listens to, but the leaf waits for it.
struct Unheard;

impl From<Unheard> for DriveError {
    fn from(_: Unheard) -> Self {
        DriveError::Unheard
    }
}

impl From<WorkloadError> for DriveError {
    fn from(error: WorkloadError) -> Self {
        DriveError::Workload(error)
    }
}

/// Feeds the tenants' workloads to a leaf at the same time until they end and
/// everything has completed, listening to `outside` where the leaf waits for it;
/// a leaf that is all simulated needs none. Returns what `recorder` has measured of
/// all, and what each tenant's own has of it, for those that have one. What is measured
/// begins after the longest of the warm-ups.
///
/// `progress` is told the fraction done.
///
/// # Errors
/// If a workload is wrong, `progress` breaks off, or the leaf waits for something
/// outside and there is no `outside`.
pub fn drive<L: Measured + ?Sized>(
    leaf: &mut L,
    outside: Option<&mut dyn Outside>,
    tenants: Vec<Tenant<'_>>,
    recorder: Recorder,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<(Measurement, Vec<Measurement>), DriveError> {
    let feeds = tenants.into_iter().map(Feed::new).collect();
    let mut driver = Driver::new(leaf, outside, feeds, recorder);
    driver.run(progress)?;
    Ok(driver.finish())
}

/// A request with the leaf.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    /// Its length in sectors before it was aligned.
    asked_sectors: u32,
    /// When the request arrived, which may be before the leaf took it.
    arrived: Time,
    /// When the leaf took it.
    accepted: Time,
}

struct Driver<'a, 'l, 'o, L: ?Sized> {
    leaf: &'l mut L,
    outside: Option<&'o mut dyn Outside>,
    feeds: Vec<Feed<'a>>,
    recorder: Recorder,
    flights: Flights<Flight>,
    data: Arena,
    completions: Vec<Completion>,
    gauges: Vec<u64>,
    now: Time,
    /// The end of the warm-up, while it lasts.
    warm: Option<Time>,
    /// The latest completion.
    latest: Time,
    /// When whoever watches was last told while something outside was waited for.
    told: Time,
}

impl<'a, 'l, 'o, L: Measured + ?Sized> Driver<'a, 'l, 'o, L> {
    fn new(
        leaf: &'l mut L,
        outside: Option<&'o mut dyn Outside>,
        feeds: Vec<Feed<'a>>,
        recorder: Recorder,
    ) -> Self {
        let warm_up = feeds.iter().map(|feed| feed.workload.warm_up).max().unwrap_or_default();
        Driver {
            warm: (warm_up.as_ns() > 0).then_some(Time::ZERO + warm_up),
            leaf,
            outside,
            feeds,
            recorder,
            flights: Flights::default(),
            data: Arena::new(),
            completions: Vec::new(),
            gauges: Vec::new(),
            now: Time::ZERO,
            latest: Time::ZERO,
            told: Time::ZERO,
        }
    }

    fn run(&mut self, progress: &mut dyn FnMut(f64) -> ControlFlow<()>) -> Result<(), DriveError> {
        // The next arrival was refused by a busy leaf.
        let mut blocked = false;
        loop {
            let next = self.next_due()?;
            if next.is_none() && self.flights.len() == 0 {
                return Ok(());
            }
            let Some((due, tenant)) = next.filter(|_| !blocked) else {
                self.now = self.await_completion(progress)?;
                blocked = false;
                continue;
            };
            // A completion on the way may let another tenant submit first. (What the
            // outside has a say in does not run ahead of it.)
            if self.feeds.len() > 1
                && !self.leaf.next_event().hears_outside()
                && let Some(now) = self.advance_to_completion(due.max(self.now))
            {
                self.now = now;
                continue;
            }
            if !self.reach(due)? {
                self.tell(progress)?;
                continue;
            }
            if self.submit(due, tenant) == Submit::Busy {
                blocked = true;
                continue;
            }
            let feed = &mut self.feeds[tenant];
            feed.pass();
            feed.announce(TenantId(tenant as u16), self.leaf);
            if feed.is_drained() {
                if feed.stands_still(self.now) {
                    return Err(DriveError::Standstill(self.now));
                }
                if progress(self.fraction()).is_break() {
                    return Err(DriveError::Interrupted);
                }
            }
        }
    }

    /// When the next request is due and whose it is; at equal times the first
    /// tenant's.
    #[inline]
    fn next_due(&mut self) -> Result<Option<(Time, usize)>, WorkloadError> {
        if let [feed] = &mut self.feeds[..] {
            return Ok(feed.due(self.now)?.map(|due| (due, 0)));
        }
        let mut next: Option<(Time, usize)> = None;
        for (tenant, feed) in self.feeds.iter_mut().enumerate() {
            if let Some(due) = feed.due(self.now)?
                && next.is_none_or(|(first, _)| due < first)
            {
                next = Some((due, tenant));
            }
        }
        Ok(next)
    }

    /// The fraction that is done of the workload with most left to do.
    fn fraction(&self) -> f64 {
        self.feeds.iter().map(|feed| feed.fraction(self.now)).fold(1.0, f64::min)
    }

    /// Offers the next arrival of a tenant, which was due at `due`.
    #[inline]
    fn submit(&mut self, due: Time, tenant: usize) -> Submit {
        let feed = &mut self.feeds[tenant];
        let arrival = feed.next();
        let id = self.flights.next_id();
        let mut request = Request {
            origin: id,
            tenant: TenantId(tenant as u16),
            ..Request::new(id, arrival.operation, arrival.lba, arrival.sectors)
        };
        if feed.is_marked {
            feed.mark(&mut request);
        }
        let answer = self.leaf.submit(self.now, &request, &mut self.data);
        if answer != Submit::Busy {
            feed.progress.in_flight += 1;
            self.flights.take_off(Flight {
                request,
                asked_sectors: arrival.asked_sectors,
                arrived: due.min(self.now),
                accepted: self.now,
            });
        }
        if let Submit::Refused(status) = answer {
            self.end_at_once(id, status);
        }
        answer
    }

    /// A request was refused: that is how it ended.
    #[cold]
    fn end_at_once(&mut self, id: RequestId, status: Status) {
        self.completions.push(Completion { id, time: self.now, status, ledger: Ledger::ZERO });
        self.record();
    }

    /// Runs the leaf up to `target`.
    #[inline]
    fn advance(&mut self, target: Time) {
        loop {
            let stop = self.next_stop();
            if stop > target {
                break;
            }
            self.leaf.advance(Time(stop.0 - 1), &mut self.data, &mut self.completions);
            self.record();
            self.stop(stop);
        }
        let wake = self.leaf.next_event();
        if wake.is_due(target) || wake.hears_outside() {
            self.leaf.advance(target, &mut self.data, &mut self.completions);
            self.record();
        }
    }

    /// Goes on to `due`, or to what happens outside before that: whether it is
    /// `due` now, and who was to submit then still is.
    #[inline]
    fn reach(&mut self, due: Time) -> Result<bool, Unheard> {
        let due = due.max(self.now);
        let wake = self.leaf.next_event();
        // In a closed loop most requests come at the instant of a completion, up
        // to which the leaf has run already.
        if !wake.hears_outside() && !wake.is_due(due) && self.next_stop() > due {
            self.now = due;
            return Ok(true);
        }
        let in_flight = self.flights.len();
        self.now = if wake.hears_outside() {
            let outside = self.outside.as_mut().ok_or(Unheard)?;
            let until = wake.time().map_or(due, |time| time.min(due)).min(self.now + PATIENCE);
            outside.wait(Some(until)).max(self.now)
        } else {
            due
        };
        self.advance(self.now);
        Ok(self.now >= due && (self.feeds.len() == 1 || self.flights.len() == in_flight))
    }

    /// Tells whoever watches, if that was a while ago: what is outside takes the time that
    /// it takes.
    fn tell(&mut self, progress: &mut dyn FnMut(f64) -> ControlFlow<()>) -> Result<(), DriveError> {
        if self.outside.is_some() && self.now >= self.told + PATIENCE {
            self.told = self.now;
            if progress(self.fraction()).is_break() {
                return Err(DriveError::Interrupted);
            }
        }
        Ok(())
    }

    /// Runs the leaf until something has completed; returns when.
    fn await_completion(
        &mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Time, DriveError> {
        if self.outside.is_none() {
            return match self.advance_to_completion(Time::MAX) {
                Some(now) => Ok(now),
                None if self.leaf.next_event().hears_outside() => Err(DriveError::Unheard),
                None => panic!("what is in flight completes"),
            };
        }
        loop {
            let wake = self.leaf.next_event();
            if !wake.hears_outside() {
                return Ok(self.advance_to_completion(Time::MAX).expect("what is in flight completes"));
            }
            let in_flight = self.flights.len();
            let outside = self.outside.as_mut().expect("there is one");
            let until = wake.time().unwrap_or(Time::MAX).min(self.now + PATIENCE);
            self.now = outside.wait(Some(until)).max(self.now);
            self.advance(self.now);
            self.tell(progress)?;
            if self.flights.len() < in_flight {
                return Ok(self.now);
            }
        }
    }

    /// Runs the leaf from event to event, at most up to `limit`, until
    /// something has completed; returns when.
    #[inline]
    fn advance_to_completion(&mut self, limit: Time) -> Option<Time> {
        loop {
            let stop = self.next_stop();
            let bound = limit.min(Time(stop.0 - 1));
            if let Some(now) = self.leaf.advance_to_completion(bound, &mut self.data, &mut self.completions) {
                self.record();
                return Some(now);
            }
            if stop > limit || self.leaf.next_event().time().is_none() {
                return None;
            }
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

    /// Hands what has completed to the statistics. Nobody here listens to events.
    #[inline]
    fn record(&mut self) {
        if self.completions.is_empty() {
            while self.leaf.notice().is_some() {}
            return;
        }
        for completion in &mut self.completions {
            let flight = self.flights.land(completion.id);
            if flight.arrived != flight.accepted {
                completion.ledger.charge_between(Cause::HostQueue, flight.arrived, flight.accepted);
            }
            self.latest = self.latest.max(completion.time);
            let Flight { ref request, asked_sectors, arrived, .. } = flight;
            self.recorder.record(request, asked_sectors, arrived, completion);
            self.feeds[usize::from(request.tenant.0)].record(request, asked_sectors, arrived, completion);
        }
        self.completions.clear();
    }

    fn finish(mut self) -> (Measurement, Vec<Measurement>) {
        for value in self.leaf.final_counters() {
            self.recorder.absorb(value);
        }
        self.leaf.gauges(&mut self.gauges);
        let end = self.now.max(self.latest);
        let tenants = self.feeds.into_iter().filter_map(|feed| feed.finish(end)).collect();
        (self.recorder.finish(end, &self.gauges), tenants)
    }
}
