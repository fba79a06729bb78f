//! The driver in virtual time.

use std::ops::ControlFlow;

use flashkeel_engine::{
    Arena, Cause, Completion, Ledger, Outside, Request, RequestId, Span, Status, Submit, TenantId, Time,
};
use flashkeel_stats::{Asked, Measurement, Recorder};
use flashkeel_workload::WorkloadError;
use flashkeel_workload::pacing::Due;

use crate::Measured;
use crate::feed::{Feed, Tenant};
use crate::flight::{Flights, nth};
use crate::turns::Turns;

/// How long a completion, or what is outside, is waited for before whoever watches is told,
/// and may break off.
const PATIENCE: Span = Span::from_us(100_000);
/// Completions of a backlog after which whoever watches is told, and may break off.
const MOST_UNTOLD: u32 = 256;
/// For how long no request has ended where a run that is broken off says so.
const LONG: Span = Span::from_us(1_000_000);

/// Why a run ended early.
#[derive(Debug)]
pub enum DriveError {
    /// The workload is wrong.
    Workload(WorkloadError),
    /// `progress` asked for it.
    Interrupted,
    /// The same, when for this long no request had ended.
    Stuck(Span),
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
    let feeds = (0..).map(TenantId).zip(tenants).map(|(id, tenant)| Feed::new(id, tenant)).collect();
    let mut driver = Driver::new(leaf, outside, feeds, recorder);
    driver.run(progress)?;
    Ok(driver.finish())
}

/// A request with the leaf.
#[derive(Clone, Copy, Debug)]
struct Flight {
    asked: Asked,
    /// When the leaf took it, which may be after it arrived.
    accepted: Time,
}

struct Driver<'a, 'l, 'o, L: ?Sized> {
    leaf: &'l mut L,
    outside: Option<&'o mut dyn Outside>,
    feeds: Vec<Feed<'a>>,
    /// Of several feeds.
    turns: Turns,
    recorder: Recorder,
    flights: Flights<Flight>,
    data: Arena,
    completions: Vec<Completion>,
    gauges: Vec<u64>,
    now: Time,
    /// Whether the leaf has been run up to now, and been given nothing since.
    is_settled: bool,
    /// The end of the warm-up, while it lasts.
    warm: Option<Time>,
    /// The next time at which something is read off the leaf: what happens at that
    /// very time comes after it.
    stop: Time,
    /// When whoever watches was last told while something outside was waited for.
    told: Time,
    /// Completions waited for since whoever watches was told of a backlog.
    untold: u32,
}

impl<'a, 'l, 'o, L: Measured + ?Sized> Driver<'a, 'l, 'o, L> {
    fn new(
        leaf: &'l mut L,
        outside: Option<&'o mut dyn Outside>,
        feeds: Vec<Feed<'a>>,
        recorder: Recorder,
    ) -> Self {
        let warm_up = feeds.iter().map(|feed| feed.workload.warm_up).max().unwrap_or_default();
        let mut driver = Driver {
            warm: (warm_up.as_ns() > 0).then_some(Time::ZERO + warm_up),
            leaf,
            outside,
            turns: Turns::of(feeds.len()),
            feeds,
            recorder,
            flights: Flights::default(),
            data: Arena::new(),
            completions: Vec::new(),
            gauges: Vec::new(),
            now: Time::ZERO,
            is_settled: false,
            stop: Time::ZERO,
            told: Time::ZERO,
            untold: 0,
        };
        driver.look_ahead();
        driver
    }

    fn run(&mut self, progress: &mut dyn FnMut(f64) -> ControlFlow<()>) -> Result<(), DriveError> {
        loop {
            let (due, tenant) = self.next_due()?;
            if due < Time::MAX {
                // A completion on the way may let another tenant submit first. (What the
                // outside has a say in does not run ahead of it.)
                if self.feeds.len() > 1
                    && !self.leaf.next_event().hears_outside()
                    && let Some(now) = self.advance_to_completion(due.max(self.now), progress)?
                {
                    self.now = now;
                    continue;
                }
                if !self.reach(due)? {
                    self.tell(progress)?;
                    continue;
                }
                if self.submit(due, tenant) != Submit::Busy {
                    self.go_on(tenant, progress)?;
                    continue;
                }
            } else if self.flights.len() == 0 {
                return Ok(());
            } else {
                self.tell_of_backlog(progress)?;
            }
            self.now = self.await_completion(progress)?;
        }
    }

    /// A tenant's request has been submitted: sees what comes after it.
    #[inline]
    fn go_on(
        &mut self,
        tenant: usize,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<(), DriveError> {
        let feed = &mut self.feeds[tenant];
        feed.announce(self.leaf);
        if feed.is_drained() {
            if feed.stands_still(self.now) {
                return Err(DriveError::Standstill(self.now));
            }
            if progress(self.fraction()).is_break() {
                return Err(DriveError::Interrupted);
            }
        }
        Ok(())
    }

    /// Nothing is due before something completes, for long where a backlog is left at the end:
    /// tells whoever watches, once in a while.
    #[inline]
    fn tell_of_backlog(
        &mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<(), DriveError> {
        self.untold += 1;
        if self.untold == MOST_UNTOLD {
            self.untold = 0;
            if progress(self.fraction()).is_break() {
                return Err(DriveError::Interrupted);
            }
        }
        Ok(())
    }

    /// When the next request is due and whose it is; at equal times the first
    /// tenant's. [`Time::MAX`] if none is before something completes.
    #[inline]
    fn next_due(&mut self) -> Result<(Time, usize), WorkloadError> {
        if let [feed] = &mut self.feeds[..] {
            let due = match feed.due(self.now)? {
                Due::At(time) => time,
                Due::AtOnce => self.now,
                Due::Later => Time::MAX,
            };
            return Ok((due, 0));
        }
        loop {
            while let Some(tenant) = self.turns.changed.pop() {
                self.turns.set(tenant, self.feeds[tenant].due(self.now)?);
            }
            let (due, tenant) = self.turns.next(self.now);
            if due < self.feeds[tenant].end || due == Time::MAX {
                return Ok((due, tenant));
            }
            // Its end has come since it said that it is due at once.
            self.turns.changed.push(tenant);
        }
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
            origin: nth(id),
            tenant: TenantId(tenant as u16),
            ..Request::new(id, arrival.operation, arrival.lba, arrival.sectors)
        };
        if feed.is_marked {
            feed.mark(&mut request);
        }
        let answer = self.leaf.submit(self.now, &request, &mut self.data);
        if answer == Submit::Busy {
            return answer;
        }
        feed.pass(&arrival);
        if self.feeds.len() > 1 {
            self.turns.changed.push(tenant);
        }
        self.is_settled = false;
        let asked = Asked {
            operation: arrival.operation,
            lba: arrival.lba,
            sectors: arrival.sectors,
            asked_sectors: arrival.asked_sectors,
            arrived: due.min(self.now),
            tenant: request.tenant,
        };
        self.flights.take_off(Flight { asked, accepted: self.now });
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
    fn advance(&mut self, target: Time) {
        while self.stop <= target {
            self.leaf.advance(Time(self.stop.0 - 1), &mut self.data, &mut self.completions);
            self.record();
            self.read_off();
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
        // In a closed loop most requests come at the instant of a completion.
        if self.is_settled && due <= self.now {
            return Ok(true);
        }
        let due = due.max(self.now);
        let wake = self.leaf.next_event();
        if !wake.hears_outside() && !wake.is_due(due) && self.stop > due {
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
    #[inline]
    fn await_completion(
        &mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Time, DriveError> {
        if self.outside.is_some()
            && let Some(now) = self.listen(progress)?
        {
            return Ok(now);
        }
        match self.advance_to_completion(Time::MAX, progress)? {
            Some(now) => {
                self.is_settled = self.outside.is_none();
                Ok(now)
            }
            None if self.leaf.next_event().hears_outside() => Err(DriveError::Unheard),
            None => panic!("what is in flight completes"),
        }
    }

    /// Follows what happens outside for as long as it has a say, until something has
    /// completed; returns when, if it has.
    #[cold]
    fn listen(
        &mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Time>, DriveError> {
        loop {
            let (wake, in_flight) = (self.leaf.next_event(), self.flights.len());
            let Some(outside) = self.outside.as_mut().filter(|_| wake.hears_outside()) else {
                return Ok(None);
            };
            let until = wake.time().unwrap_or(Time::MAX).min(self.now + PATIENCE);
            self.now = outside.wait(Some(until)).max(self.now);
            self.advance(self.now);
            self.tell(progress)?;
            if self.flights.len() < in_flight {
                return Ok(Some(self.now));
            }
        }
    }

    /// Runs the leaf from event to event, at most up to `limit`, until
    /// something has completed; returns when. A leaf that is busy with itself may leave
    /// whoever watches to wait for long: they are told on the way.
    #[inline]
    fn advance_to_completion(
        &mut self,
        limit: Time,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Time>, DriveError> {
        let mut patient = self.now + PATIENCE;
        loop {
            let bound = limit.min(Time(self.stop.0 - 1)).min(patient);
            if let Some(now) = self.leaf.advance_to_completion(bound, &mut self.data, &mut self.completions) {
                self.record();
                return Ok(Some(now));
            }
            if bound == limit || self.leaf.next_event().time().is_none() {
                return Ok(None);
            }
            if bound == patient {
                patient = self.wait_on(bound, progress)?;
            } else {
                self.read_off();
            }
        }
    }

    /// Nothing has completed up to `now`: tells whoever watches; returns how far to go on.
    #[cold]
    fn wait_on(
        &mut self,
        now: Time,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Time, DriveError> {
        if progress(self.fraction()).is_break() {
            let waited = now.since(self.now);
            return Err(if waited < LONG { DriveError::Interrupted } else { DriveError::Stuck(waited) });
        }
        Ok(now + PATIENCE)
    }

    /// Reads off the leaf what is due at the stop, and goes on to the next one.
    #[cold]
    fn read_off(&mut self) {
        if self.warm == Some(self.stop) {
            self.warm = None;
            self.leaf.start_measuring(self.stop);
        }
        if self.stop == self.recorder.next_window_end() {
            self.leaf.gauges(&mut self.gauges);
            self.recorder.close_windows(self.stop, &self.gauges);
        }
        self.look_ahead();
    }

    /// Sees when something is next read off the leaf.
    fn look_ahead(&mut self) {
        let window = self.recorder.next_window_end();
        self.stop = self.warm.map_or(window, |warm| warm.min(window));
    }

    /// Hands what has completed to the statistics. Nobody here listens to events.
    #[inline]
    fn record(&mut self) {
        if self.completions.is_empty() {
            while self.leaf.notice().is_some() {}
            return;
        }
        for completion in &mut self.completions {
            let Flight { asked, accepted } = self.flights.land(completion.id);
            if asked.arrived != accepted {
                completion.ledger.charge_between(Cause::HostQueue, asked.arrived, accepted);
            }
            completion.id = nth(completion.id);
            self.recorder.record(&asked, completion);
            let tenant = usize::from(asked.tenant.0);
            self.feeds[tenant].record(&asked, completion);
            if self.feeds.len() > 1 {
                self.turns.changed.push(tenant);
            }
        }
        self.completions.clear();
    }

    fn finish(mut self) -> (Measurement, Vec<Measurement>) {
        if self.warm.is_some() {
            // It has ended within its warm-up, of which nothing counts.
            self.leaf.start_measuring(self.now);
        }
        for value in self.leaf.final_counters() {
            self.recorder.absorb(value);
        }
        self.leaf.gauges(&mut self.gauges);
        let end = self.feeds.iter().map(Feed::completed).fold(self.now, Time::max);
        let tenants = self.feeds.into_iter().filter_map(|feed| feed.finish(end)).collect();
        (self.recorder.finish(end, &self.gauges), tenants)
    }
}
