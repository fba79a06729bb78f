//! The coordinator, and the hosts' side of it, as a stage over the device that they share.

use std::collections::VecDeque;

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Event, LOGICAL_PAGE_SECTORS, Ledger, Limits, Notice,
    Operation, Outbox, Place, Refusal, Request, RequestId, Span, Stage, Status, Submit, TenantId, Time, Wake,
    Window,
};

use super::allocation::CountAllocationConfig;
use super::control::Control;
use super::counts::Counts;
use super::demand::Demand;
use super::report::Tally;
use super::tails::Tails;
use super::{CoordinationConfig, CoordinatorReport, Foresight};
use crate::claim::{Claim, Priority};
use crate::flight::Flights;

/// Whose windows the counts are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Those of a device, which are commanded.
    Commanded,
    /// Those of copies in turn, which come by themselves.
    InTurn,
    /// The clock's, in which nobody is held to anything.
    Clock,
}

/// Lets reads into deterministic windows as far as their hosts have been given counts.
///
/// Counts are decided off the data path: a host's read goes on at once if it has some
/// left, and is otherwise held, or sent on as one that may wait.
#[derive(Clone)]
pub struct Coordinator {
    limits: Limits,
    counts: Counts,
    demand: Box<dyn Demand>,
    foresight: Foresight,
    top_ups: bool,
    bounds: bool,
    message_delay: Span,
    windows: Windows,
    /// Of windows that are commanded.
    control: Option<Control>,
    /// Since when a window lasts whose reads are counted.
    since: Option<Time>,
    /// Until when reads were taken into it, if no more are.
    closed: Option<Time>,
    /// How long one is expected to last.
    length: Span,
    /// When hosts hear what they are given in it, if they have not.
    answer_due: Option<Time>,
    /// Reads that wait for that, oldest first.
    unanswered: VecDeque<RequestId>,
    /// Those that wait for more than they were given, and until when.
    asking: VecDeque<(Time, RequestId)>,
    /// Those that wait for background work.
    held: VecDeque<RequestId>,
    /// Reads on their way in the present window.
    inside: u64,
    flights: Flights<Flight>,
    tails: Tails,
    tally: Tally,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    host: usize,
    since: Time,
    /// How long it was held here.
    held: Span,
    /// The deterministic window that it came in, if in any.
    window: Option<u64>,
    /// It is in the device, within a count.
    is_inside: bool,
}

impl Flight {
    fn pages(&self) -> u64 {
        u64::from(self.request.sectors).div_ceil(LOGICAL_PAGE_SECTORS)
    }
}

impl Coordinator {
    /// Over a device with such limits and windows, for hosts with such claims. The settings
    /// have been checked.
    pub fn new(config: &CoordinationConfig, claims: &[Claim], windows: Windows, limits: Limits) -> Self {
        let (window, rest) = config.windows();
        let allocation: &CountAllocationConfig = &config.allocation;
        let minimum = |class: Priority| config.minimum.of(class);
        Coordinator {
            limits,
            counts: Counts::new(config.count.unwrap_or(0), allocation.policy().build(), claims, minimum),
            demand: config.demand.policy().build(claims.len()),
            foresight: Foresight::default(),
            top_ups: config.top_ups,
            bounds: config.bounds,
            message_delay: config.message_delay,
            windows,
            control: (windows == Windows::Commanded).then(|| Control::new(window, rest)),
            since: None,
            closed: None,
            length: window,
            answer_due: None,
            unanswered: VecDeque::new(),
            asking: VecDeque::new(),
            held: VecDeque::new(),
            inside: 0,
            flights: Flights::default(),
            tails: Tails::new(claims.len()),
            tally: Tally::new(claims.len()),
        }
    }

    /// What hosts will read, for a demand that goes by it.
    pub fn foresee(&mut self, foresight: &Foresight) {
        self.foresight = foresight.clone();
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> CoordinatorReport {
        self.tally.report(&self.counts, &self.tails)
    }

    /// Counters for the digest.
    pub fn counters(&self) -> Vec<u64> {
        self.tally.counters()
    }

    /// Reads that wait here.
    pub fn waiting(&self) -> usize {
        self.held.len() + self.asking.len() + self.unanswered.len()
    }

    /// Classes of the hosts, in order, each with what its hosts have been given in the
    /// present window, and have used.
    pub fn by_class(&self) -> impl Iterator<Item = (Priority, [u64; 2])> + '_ {
        let mut classes: Vec<Priority> = self.counts.hosts.iter().map(|host| host.class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes.into_iter().map(|class| {
            let hosts = self.counts.hosts.iter().filter(|host| host.class == class);
            (class, hosts.fold([0, 0], |sum, host| [sum[0] + host.given, sum[1] + host.used]))
        })
    }

    /// Starts counting anew, as at the end of a warm-up: from the next window on.
    pub fn reset_counters(&mut self) {
        self.tally.reset();
        self.tails.reset();
    }

    fn host(&self, tenant: TenantId) -> usize {
        usize::from(tenant.0).min(self.counts.hosts.len() - 1)
    }

    /// Sends a request on.
    fn give(&mut self, now: Time, id: RequestId, outbox: &mut Outbox) {
        let flight = self.flights.get_mut(id).expect("it has not ended");
        flight.held = now.since(flight.since);
        outbox.requests.push((0, Request { id, ..flight.request }));
    }

    /// A read that came in the present window goes on if its host has counts left.
    fn admit(&mut self, now: Time, id: RequestId, outbox: &mut Outbox) {
        let flight = self.flights.get_mut(id).expect("it has not ended");
        let (host, pages) = (flight.host, flight.pages());
        if self.windows == Windows::Clock {
            self.counts.hosts[host].used += pages;
            self.enter(now, id, outbox);
        } else if self.counts.take(host, pages) {
            self.enter(now, id, outbox);
        } else if self.answer_due.is_some() {
            self.unanswered.push_back(id);
        } else if self.counts.hosts[host].overtakes {
            self.tally.overtook(host, pages);
            if self.bounds { self.hold(now, id, outbox) } else { self.enter(now, id, outbox) }
        } else if self.top_ups && self.counts.pool >= pages {
            self.tally.messages += 2;
            self.asking.push_back((now + self.message_delay + self.message_delay, id));
        } else {
            self.hold(now, id, outbox);
        }
    }

    fn enter(&mut self, now: Time, id: RequestId, outbox: &mut Outbox) {
        self.flights.get_mut(id).expect("it has not ended").is_inside = true;
        self.inside += 1;
        self.give(now, id, outbox);
    }

    /// A read is not for the present window.
    fn hold(&mut self, now: Time, id: RequestId, outbox: &mut Outbox) {
        if self.control.is_some() {
            self.held.push_back(id);
        } else {
            self.flights.get_mut(id).expect("it has not ended").request.is_unhurried = true;
            self.give(now, id, outbox);
        }
    }

    /// A deterministic window has begun.
    fn begin(&mut self, now: Time, outbox: &mut Outbox) {
        self.end(now, outbox);
        self.since = Some(now);
        self.tails.begin();
        self.tally.began();
        self.counts.begin();
        if self.windows == Windows::Clock {
            return;
        }
        // Each host asks the coordinator, and hears of it.
        self.tally.messages += 2 * self.counts.hosts.len() as u64;
        self.answer_due = Some(now + self.message_delay + self.message_delay);
        self.hear(now, outbox);
    }

    /// Hosts hear what they are given, if it is time.
    fn hear(&mut self, now: Time, outbox: &mut Outbox) {
        let (Some(since), Some(_)) = (self.since, self.answer_due.filter(|&due| due <= now)) else { return };
        self.answer_due = None;
        let Coordinator { counts, demand, foresight, length, .. } = self;
        counts.give(demand.is_exact(), |host| demand.need(since, host, *length, foresight));
        for _ in 0..self.unanswered.len() {
            let id = self.unanswered.pop_front().expect("so many wait");
            self.admit(now, id, outbox);
        }
    }

    /// Hosts that asked for more hear whether they get it.
    fn top_up(&mut self, now: Time, outbox: &mut Outbox) {
        while let Some(&(due, id)) = self.asking.front()
            && due <= now
        {
            self.asking.pop_front();
            let flight = *self.flights.get_mut(id).expect("it has not ended");
            let is_given = self.counts.top_up(flight.host, flight.pages());
            self.tally.top_ups += u64::from(is_given);
            if is_given && self.counts.take(flight.host, flight.pages()) {
                self.enter(now, id, outbox);
            } else {
                self.hold(now, id, outbox);
            }
        }
    }

    /// The present window, if there is one, is over: what waits in it waits no longer.
    fn end(&mut self, now: Time, outbox: &mut Outbox) {
        let Some(since) = self.since.take() else { return };
        self.tails.end();
        self.tally.ended(&self.counts);
        // Reads that came after that were not asked for in it.
        let lasted = self.closed.take().unwrap_or(now).since(since);
        if lasted > Span::ZERO {
            if self.windows == Windows::InTurn {
                self.length = lasted;
            }
            self.counts.tell(&mut *self.demand, (lasted.as_secs_f64() / self.length.as_secs_f64()).min(1.0));
        }
        self.answer_due = None;
        let others = self.unanswered.drain(..).chain(self.asking.drain(..).map(|(_, id)| id));
        self.held.extend(others);
        if self.control.is_none() {
            for id in std::mem::take(&mut self.held) {
                self.hold(now, id, outbox);
            }
        }
    }

    /// When the next window by the clock begins.
    fn tick(&self) -> Option<Time> {
        (self.windows == Windows::Clock).then(|| self.since.map_or(Time::ZERO, |since| since + self.length))
    }

    /// Reads that waited for background work go on.
    fn release(&mut self, now: Time, outbox: &mut Outbox) {
        for id in std::mem::take(&mut self.held) {
            self.give(now, id, outbox);
        }
    }

    /// Decides about windows, after whatever a decision may follow from.
    fn wind_up(&mut self, now: Time, outbox: &mut Outbox) {
        let Some(control) = &mut self.control else { return };
        let is_answered = self.answer_due.is_none() && self.asking.is_empty();
        if control.is_deterministic() && is_answered && self.counts.are_used_up(self.top_ups) {
            self.tally.used_up();
            control.drain();
        }
        let said = control.decide(now, self.inside);
        if control.is_draining() && self.closed.is_none() {
            self.closed = Some(now);
        }
        if let Some(window) = said {
            outbox.commands.push((0, Command::Window(0, window)));
        }
        if said == Some(Window::NonDeterministic) {
            self.end(now, outbox);
            self.release(now, outbox);
        }
    }
}

impl Stage for Coordinator {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        if request.operation != Operation::Flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        let host = self.host(request.tenant);
        let is_read = request.operation == Operation::Read;
        let is_draining = is_read && self.control.as_ref().is_some_and(Control::is_draining);
        let window = (is_read && !is_draining && self.since.is_some()).then(|| self.tails.came());
        let flight =
            Flight { request: *request, host, since: now, held: Span::ZERO, window, is_inside: false };
        let id = self.flights.take_off(flight);
        if window.is_some() {
            self.counts.hosts[host].asked += flight.pages();
            self.admit(now, id, outbox);
            if self.counts.may_be_used_up {
                self.wind_up(now, outbox);
            }
        } else if is_draining {
            self.held.push_back(id);
        } else {
            self.give(now, id, outbox);
        }
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        Some(0)
    }

    fn next_event(&self) -> Wake {
        // Asked after every request.
        let asking = self.asking.front().map_or(Time::MAX, |&(due, _)| due);
        let control = self.control.as_ref().and_then(Control::due).unwrap_or(Time::MAX);
        let clock = self.tick().unwrap_or(Time::MAX);
        let due = asking.min(control).min(clock).min(self.answer_due.unwrap_or(Time::MAX));
        (due < Time::MAX).then_some(due).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        if self.tick().is_some_and(|due| due <= now) {
            self.begin(now, outbox);
        }
        self.hear(now, outbox);
        self.top_up(now, outbox);
        self.wind_up(now, outbox);
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let flight = self.flights.land(completion.id);
        if let Some(window) = flight.window {
            self.tails.answered(window, flight.host, now.since(flight.since));
        }
        completion.id = flight.request.id;
        completion.time = now;
        completion.ledger.charge(Cause::Window, flight.held);
        let covered = completion.ledger.total();
        completion.ledger.charge(Cause::HostQueue, now.since(flight.since) - covered);
        if flight.is_inside {
            self.inside -= 1;
            if self.inside == 0 {
                self.wind_up(now, outbox);
            }
        }
        true
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        for (_, Flight { request, since, .. }) in self.flights.take_all() {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::HostQueue, since, now);
            let status = Status::Aborted;
            outbox.completions.push(Completion { id: request.id, time: now, status, ledger });
        }
        self.unanswered.clear();
        self.asking.clear();
        self.held.clear();
        (self.since, self.closed, self.answer_due, self.inside) = (None, None, None, 0);
        self.tails.cut_power();
        self.demand.cut_power();
        if let Some(control) = &mut self.control {
            control.cut_power(now);
        }
        if self.windows == Windows::Clock {
            self.begin(now, outbox);
        }
    }

    fn refuses(&self, _child: usize, command: &Command) -> Option<Refusal> {
        let is_own = self.control.is_some() && matches!(command, Command::Window(..));
        is_own.then(|| Refusal::NotNow("a coordinator commands these windows".into()))
    }

    fn answered(
        &mut self,
        now: Time,
        _child: usize,
        command: &Command,
        answer: Result<Answer, Refusal>,
        _outbox: &mut Outbox,
    ) {
        if let (Some(control), Command::Window(_, Window::Deterministic), Err(refusal)) =
            (&mut self.control, command, answer)
        {
            control.refused(now, &refusal);
        }
    }

    fn noticed(&mut self, now: Time, child: usize, notice: Notice, outbox: &mut Outbox) -> Option<Notice> {
        let is_own = notice.place == Place::default() && self.windows != Windows::Clock;
        match notice.event {
            Event::WindowBegan(_) | Event::TurnBegan(_) if is_own => {
                if let Some(control) = &mut self.control {
                    control.began(now);
                }
                self.begin(now, outbox);
            }
            Event::WindowEnded(..) if is_own => {
                // One that was given up before it began was none, and one whose time or counts
                // were used up was about to end.
                if self.control.as_ref().is_some_and(|control| control.goes_on(now)) {
                    self.tally.forced();
                }
                if let Some(control) = &mut self.control {
                    control.ended(now);
                    self.end(now, outbox);
                    self.release(now, outbox);
                }
            }
            Event::WindowWarning(..) if is_own => {}
            event => return Some(Notice { place: notice.place.below(child), event }),
        }
        None
    }
}
