//! The windows as a stage over the device.

use std::collections::VecDeque;

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Event, LOGICAL_PAGE_BYTES, Ledger, Limits, Operation, Outbox,
    Refusal, Request, RequestId, SECTOR_BYTES, Span, Stage, Status, Submit, Time, Wake, Window, WindowEnd,
    WindowLimit,
};

use super::{WindowSettings, WindowedReport};
use crate::flight::Flights;

/// Obeys windows on behalf of the only child, which knows none.
///
/// In a deterministic window writes, trims and the like are held back, in order, but for
/// large writes, and given to the child all at once behind it. They are not acknowledged
/// before, so that what is read and what a flush is for is with the child at any time.
#[derive(Clone)]
pub struct Windowed {
    limits: Limits,
    settings: WindowSettings,
    phase: Phase,
    /// Pages of 4 KiB that may still be written at once in this window, if there is a limit.
    writes_left: Option<u64>,
    /// Warnings that have been given in this window, a bit each.
    warned: u8,
    flights: Flights<Flight>,
    /// Changes that the child has not got, oldest first.
    held: VecDeque<Held>,
    held_bytes: u64,
    /// Changes that the child has, and when the last one ended.
    changing: u32,
    last_change: Option<Time>,
    report: WindowedReport,
    /// When what it reports begins.
    counted_from: Time,
}

/// What the device is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Everything goes to the child.
    NonDeterministic,
    /// A deterministic window is to begin as soon as the child is at rest.
    Preparing,
    /// Since then changes are held back.
    Deterministic(Time),
}

/// A request that is held back or with the child.
#[derive(Clone, Debug)]
struct Flight {
    request: Request,
    submitted: Time,
    /// When the child got it, if it has.
    given: Option<Time>,
}

/// A change that is held back, and its sectors.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: RequestId,
    from: u64,
    to: u64,
    /// Whether it is a large write, which may pass.
    is_direct: bool,
    bytes: u64,
}

impl Held {
    fn overlaps(&self, other: &Held) -> bool {
        self.from < other.to && other.from < self.to
    }
}

impl Windowed {
    /// Over a device with such limits. The settings have been checked.
    pub fn new(settings: &WindowSettings, limits: Limits) -> Windowed {
        Windowed {
            limits,
            settings: settings.clone(),
            phase: Phase::NonDeterministic,
            writes_left: settings.writes,
            warned: 0,
            flights: Flights::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            changing: 0,
            last_change: None,
            report: WindowedReport::default(),
            counted_from: Time::ZERO,
        }
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> &WindowedReport {
        &self.report
    }

    /// Starts counting anew, as at the end of a warm-up. A window that is on counts from now on.
    pub fn reset_counters(&mut self, now: Time) {
        self.report = WindowedReport::default();
        self.counted_from = now;
        self.report.windows_begun = u64::from(self.is_deterministic());
    }

    /// Changes that are held back, and their bytes.
    pub fn held(&self) -> (usize, u64) {
        (self.held.len(), self.held_bytes)
    }

    /// Whether it is in a deterministic window.
    pub fn is_deterministic(&self) -> bool {
        matches!(self.phase, Phase::Deterministic(_))
    }

    fn held_as(&self, id: RequestId, request: &Request) -> Held {
        let is_write = request.operation == Operation::Write;
        Held {
            id,
            from: request.lba.0,
            to: request.lba.0 + u64::from(request.sectors),
            is_direct: is_write && request.bytes() > self.settings.direct_above.0,
            bytes: if is_write { request.bytes() } else { LOGICAL_PAGE_BYTES },
        }
    }

    /// A change has come while they may have to be held back.
    fn change(&mut self, now: Time, change: Held, outbox: &mut Outbox) {
        let is_behind = |windowed: &Self| windowed.held.iter().any(|held| held.overlaps(&change));
        if self.is_deterministic() && change.is_direct && !is_behind(self) {
            if self.take(change.bytes) {
                self.report.direct_writes += 1;
                self.give(now, change.id, outbox);
                self.warn(now, outbox);
                return;
            }
            self.leave(now, Some(WindowEnd::TypicalExceeded), outbox);
        } else if self.held_bytes + change.bytes > self.settings.held.0 {
            self.leave(now, Some(WindowEnd::Urgent), outbox);
        }
        if self.phase == Phase::NonDeterministic {
            return self.give(now, change.id, outbox);
        }
        self.held.push_back(change);
        self.held_bytes += change.bytes;
        self.report.changes_held += 1;
        self.report.held_bytes_max = self.report.held_bytes_max.max(self.held_bytes);
    }

    /// Takes so many bytes of what may be written at once, if they are left.
    fn take(&mut self, bytes: u64) -> bool {
        let pages = bytes.div_ceil(LOGICAL_PAGE_BYTES);
        match &mut self.writes_left {
            Some(left) if *left < pages => return false,
            Some(left) => *left -= pages,
            None => {}
        }
        true
    }

    fn give(&mut self, now: Time, id: RequestId, outbox: &mut Outbox) {
        let flight = self.flights.get_mut(id).expect("it has not ended");
        flight.given = Some(now);
        self.changing += u32::from(flight.request.operation.is_change());
        outbox.requests.push((0, Request { id, ..flight.request }));
    }

    /// Gives the child all that is held back.
    fn release(&mut self, now: Time, outbox: &mut Outbox) {
        self.held_bytes = 0;
        while let Some(held) = self.held.pop_front() {
            self.give(now, held.id, outbox);
        }
    }

    /// When the window that is being prepared may begin, as far as is known.
    fn begins_at(&self) -> Option<Time> {
        let is_next = self.phase == Phase::Preparing && self.changing == 0;
        is_next.then(|| self.last_change.map_or(Time::ZERO, |last| last + self.settings.settle))
    }

    /// Begins the window that is being prepared if the child is at rest.
    fn prepare(&mut self, now: Time, outbox: &mut Outbox) {
        if self.begins_at().is_none_or(|begins_at| begins_at > now) {
            return;
        }
        self.phase = Phase::Deterministic(now);
        (self.writes_left, self.warned) = (self.settings.writes, 0);
        self.report.windows_begun += 1;
        outbox.events.push(Event::WindowBegan(0));
        // Large writes that came while it was being prepared; those that it has no room for
        // came before it, and do not end it.
        let mut index = 0;
        while let Some(&held) = self.held.get(index) {
            let is_behind = || self.held.range(..index).any(|earlier| earlier.overlaps(&held));
            if !held.is_direct || is_behind() || !self.take(held.bytes) {
                index += 1;
                continue;
            }
            let _ = self.held.remove(index);
            self.held_bytes -= held.bytes;
            self.report.direct_writes += 1;
            self.give(now, held.id, outbox);
        }
        self.warn(now, outbox);
    }

    /// Ends the deterministic window, or gives it up before it has begun.
    fn leave(&mut self, now: Time, why: Option<WindowEnd>, outbox: &mut Outbox) {
        self.end_window(now);
        if let Some(why) = why {
            let ended = match why {
                WindowEnd::Urgent => &mut self.report.windows_ended_urgent,
                WindowEnd::TypicalExceeded => &mut self.report.windows_ended_typical_exceeded,
                WindowEnd::TimeExceeded => &mut self.report.windows_ended_time_exceeded,
            };
            *ended += 1;
            outbox.events.push(Event::WindowEnded(0, why));
        }
        self.release(now, outbox);
    }

    /// Counts the deterministic window that ends now, if one does.
    fn end_window(&mut self, now: Time) {
        if let Phase::Deterministic(since) = self.phase {
            self.report.deterministic_ns += now.since(since.max(self.counted_from)).0;
        }
        self.phase = Phase::NonDeterministic;
    }

    /// How much longer the window lasts at most; before one, how long it will.
    fn time_left(&self, now: Time) -> Span {
        match self.phase {
            Phase::Deterministic(since) => {
                Span(self.settings.time_maximum.0.saturating_sub(now.since(since).0))
            }
            _ => self.settings.time_maximum,
        }
    }

    /// Raises what the window was to warn of, once each.
    fn warn(&mut self, now: Time, outbox: &mut Outbox) {
        let WindowSettings { writes_warning, time_warning, .. } = self.settings;
        let is_short = [
            (
                WindowLimit::Writes,
                writes_warning.is_some_and(|few| self.writes_left.is_some_and(|it| it <= few)),
            ),
            (WindowLimit::Time, time_warning.is_some_and(|few| self.time_left(now) <= few)),
        ];
        for (limit, is_short) in is_short {
            if is_short && self.warned >> limit as u8 & 1 == 0 {
                self.warned |= 1 << limit as u8;
                outbox.events.push(Event::WindowWarning(0, limit));
            }
        }
    }

    /// When something is to be said or done about the time of the present window.
    fn due(&self) -> Option<Time> {
        let Phase::Deterministic(since) = self.phase else { return None };
        let end = since + self.settings.time_maximum;
        let warning = self.settings.time_warning.filter(|_| self.warned >> WindowLimit::Time as u8 & 1 == 0);
        Some(Time(end.0 - warning.map_or(0, |warning| warning.0)))
    }

    fn enter(&mut self, now: Time, window: Window, outbox: &mut Outbox) {
        match (window, self.phase) {
            (Window::Deterministic, Phase::NonDeterministic) => {
                self.phase = Phase::Preparing;
                self.prepare(now, outbox);
            }
            (Window::NonDeterministic, Phase::Preparing | Phase::Deterministic(_)) => {
                self.leave(now, None, outbox);
            }
            _ => {}
        }
    }

    /// What a host reads back, as of an SSD whose windows are commanded: `writes` is what may
    /// be given to it without an end of the window, in pages as the device prefers them, but
    /// for writes of more than `direct_above`: these are `direct`, in pages of 4 KiB.
    fn readings(&self, now: Time) -> Vec<(String, u64)> {
        let unit = u64::from(self.limits.preferred_sectors) * SECTOR_BYTES;
        let WindowSettings { held, writes, time_maximum, direct_above, .. } = self.settings;
        let is_deterministic = self.is_deterministic();
        let readings = [
            ("deterministic", Some(u64::from(is_deterministic))),
            ("set0_status", Some(if is_deterministic { 1 } else { 2 })),
            ("set0_writes_typical", Some(held.0 / unit)),
            ("set0_writes_estimate", Some((held.0 - self.held_bytes) / unit)),
            ("set0_held_typical_bytes", Some(held.0)),
            ("set0_held_estimate_bytes", Some(held.0 - self.held_bytes)),
            ("set0_direct_above_bytes", Some(direct_above.0)),
            ("set0_direct_typical", writes),
            ("set0_direct_estimate", if is_deterministic { self.writes_left } else { writes }),
            ("set0_time_maximum_ns", Some(time_maximum.0)),
            ("set0_time_estimate_ns", Some(self.time_left(now).0)),
            ("held", Some(self.held.len() as u64)),
            ("held_bytes", Some(self.held_bytes)),
            ("changing", Some(u64::from(self.changing))),
        ];
        readings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

impl Stage for Windowed {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        if request.operation != Operation::Flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        let id = self.flights.take_off(Flight { request: *request, submitted: now, given: None });
        if request.operation.is_change() && self.phase != Phase::NonDeterministic {
            let change = self.held_as(id, request);
            self.change(now, change, outbox);
        } else {
            self.give(now, id, outbox);
        }
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        Some(0)
    }

    fn next_event(&self) -> Wake {
        self.begins_at().or(self.due()).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.prepare(now, outbox);
        if self.is_deterministic() {
            if self.time_left(now) == Span::ZERO {
                self.leave(now, Some(WindowEnd::TimeExceeded), outbox);
            } else {
                self.warn(now, outbox);
            }
        }
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let Flight { request, submitted, given } = self.flights.land(completion.id);
        let given = given.expect("the child has it");
        if request.operation.is_change() {
            self.changing -= 1;
            self.last_change = Some(now);
        }
        if matches!(completion.status, Status::Gone | Status::ReadOnly) {
            // There is nothing that could be spared.
            self.release(now, outbox);
        }
        self.prepare(now, outbox);
        completion.id = request.id;
        // What the child's ledger does not cover was spent before its door.
        let at_door = completion.time.since(given) - completion.ledger.total();
        completion.ledger.charge(Cause::HostQueue, at_door);
        completion.ledger.charge_between(Cause::Window, submitted, given);
        true
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.end_window(now);
        self.held.clear();
        (self.held_bytes, self.changing, self.last_change) = (0, 0, None);
        for (_, Flight { request, submitted, given }) in self.flights.take_all() {
            let given = given.unwrap_or(now);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Window, submitted, given);
            ledger.charge_between(Cause::HostQueue, given, now);
            outbox.completions.push(Completion {
                id: request.id,
                time: now,
                status: Status::Aborted,
                ledger,
            });
        }
    }

    fn command(&mut self, now: Time, command: &Command, outbox: &mut Outbox) -> Result<Answer, Refusal> {
        match *command {
            Command::Window(0, window) => {
                self.enter(now, window, outbox);
                Ok(Answer::Done)
            }
            Command::State => Ok(Answer::State(self.readings(now))),
            _ => Err(Refusal::Unknown),
        }
    }
}
