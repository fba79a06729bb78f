//! Windows of the copies: commanded so that never all do background work at once, and
//! nobody gives one more writes than its window promises to take.

use flashkeel_engine::{
    Answer, Command, Event, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Limits, Notice, Operation, Outbox,
    Refusal, Request, RequestId, Span, Time, Wake, Window,
};

use super::homes::Home;
use super::stage::Mirror;
use super::windows::{Standing, Turns};
use super::{MOST, each};

/// After such a part of its rest a copy that cannot end it is asked again.
const RETRY: u64 = 8;
/// But not before so long; nor is it looked sooner whether copies may be made to agree.
pub(super) const SHORTEST_RETRY: Span = Span::from_us(100);
/// Writes wait no longer than that for one that refuses to end its rest: it may have been
/// pulled, or never have room for what a window promises.
const PATIENCE: Span = Span::from_secs(1);

/// What a copy is in, as far as it has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It may do background work, since then.
    Resting(Time),
    /// Its deterministic window has been commanded.
    Asked,
    /// In a deterministic window since then.
    Deterministic(Time),
    /// Still, but it is to end as soon as the reads in it have been answered: those before
    /// the request of that number.
    Draining(Time, RequestId),
    /// It takes no such commands, such as one that is gone.
    Deaf,
}

/// What a device takes in a deterministic window, in pages of 4 KiB; `None` for any number.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    left: Option<u64>,
    /// In a whole window.
    promised: Option<u64>,
}

impl Room {
    /// Whether the next window has room for so many pages, and this one has not.
    fn lacks(&self, pages: u64) -> bool {
        self.left.is_some_and(|left| left < pages) && self.promised.is_some_and(|promised| pages <= promised)
    }
}

/// What a copy takes in its deterministic window.
#[derive(Clone, Copy, Debug, Default)]
struct Rooms {
    writes: Room,
    /// For writes of more bytes, where the device counts them apart from others. Such a device
    /// holds the others back, and trims and the like as well.
    large: Room,
    large_above: Option<u64>,
}

impl Rooms {
    /// The pages that a request takes, and of what; `None` where it is not counted.
    fn taken(&mut self, request: &Request) -> Option<(u64, &mut Room)> {
        let bytes = request.bytes();
        match (request.operation, self.large_above) {
            (Operation::Write, Some(above)) if bytes > above => {
                Some((bytes / LOGICAL_PAGE_BYTES, &mut self.large))
            }
            (Operation::Write, _) => Some((bytes / LOGICAL_PAGE_BYTES, &mut self.writes)),
            // Each counts as a page, however long it is.
            (operation, Some(_)) if operation.is_change() => Some((1, &mut self.writes)),
            _ => None,
        }
    }
}

/// The windows of all copies.
#[derive(Clone)]
pub(super) struct Windowing {
    turns: Option<Box<dyn Turns>>,
    /// Pages of 4 KiB of what each device prefers to be written.
    pages_each: Vec<u64>,
    phases: [Phase; MOST],
    /// Reads with each; where it drains, those that it is waited for.
    reads: [u32; MOST],
    waited_for: [u32; MOST],
    /// What may be written in the deterministic window of each.
    rooms: [Rooms; MOST],
    /// When something is to be decided.
    due: Time,
    /// Not before this is a copy that could not end its rest asked again.
    retry_at: Time,
    /// Since when copies have refused to end their rests, and none has.
    refused_since: Option<Time>,
    /// A first window has begun.
    has_begun: bool,
    /// Since when no copy has been in a deterministic one.
    none_since: Option<Time>,
}

impl Windowing {
    /// Over devices with such limits.
    pub fn new(turns: Option<Box<dyn Turns>>, below: &[Limits]) -> Windowing {
        let pages_each = |limits: &Limits| u64::from(limits.preferred_sectors) / LOGICAL_PAGE_SECTORS;
        Windowing::begin(turns, below.iter().map(pages_each).collect())
    }

    fn begin(turns: Option<Box<dyn Turns>>, pages_each: Vec<u64>) -> Windowing {
        Windowing {
            pages_each,
            due: if turns.is_some() { Time::ZERO } else { Time::MAX },
            turns,
            phases: [Phase::Resting(Time::ZERO); MOST],
            reads: [0; MOST],
            waited_for: [0; MOST],
            rooms: [Rooms::default(); MOST],
            retry_at: Time::ZERO,
            refused_since: None,
            has_begun: false,
            none_since: None,
        }
    }

    pub fn next_event(&self) -> Wake {
        Some(self.due).filter(|&due| due < Time::MAX).into()
    }

    /// Whether windows are commanded.
    pub fn commands(&self) -> bool {
        self.turns.is_some()
    }

    /// Copies in deterministic windows that are not about to end, a bit each.
    pub fn deterministic(&self) -> u8 {
        self.copies_in(|phase| matches!(phase, Phase::Deterministic(_)))
    }

    /// Copies in deterministic windows, be they about to end or not, a bit each.
    fn in_windows(&self) -> u8 {
        self.copies_in(|phase| matches!(phase, Phase::Deterministic(_) | Phase::Draining(..)))
    }

    fn copies_in(&self, is_in: impl Fn(Phase) -> bool) -> u8 {
        (0..MOST).filter(|&copy| is_in(self.phases[copy])).fold(0, |copies, copy| copies | 1 << copy)
    }

    /// Whether any of these copies counts such a request in its windows.
    pub fn counts(&self, copies: u8, request: &Request) -> bool {
        let counts = |copy: usize| ({ self.rooms[copy] }).taken(request).is_some();
        self.commands() && each(copies).any(counts)
    }

    /// Whether a change of these copies has to wait until another copy has
    /// begun a window. One that is larger than a whole window takes does not, and none waits
    /// for ever for a copy that cannot begin, or where only one is `present`.
    pub fn holds(&self, now: Time, present: u8, copies: u8, request: &Request) -> bool {
        let is_alone = present.count_ones() == 1;
        if is_alone || self.refused_since.is_some_and(|since| since + PATIENCE <= now) {
            return false;
        }
        each(copies & self.in_windows()).any(|copy| {
            let mut rooms = self.rooms[copy];
            rooms.taken(request).is_some_and(|(pages, room)| room.lacks(pages))
        })
    }

    /// A copy is given a request.
    #[inline]
    pub fn given(&mut self, copy: usize, request: &Request) {
        self.reads[copy] += u32::from(request.operation == Operation::Read);
        if let Some((pages, Room { left: Some(left), .. })) = self.rooms[copy].taken(request) {
            *left = left.saturating_sub(pages);
        }
    }

    /// A copy has answered a request, that of number `id`.
    #[inline]
    pub fn answered(&mut self, now: Time, copy: usize, id: RequestId, is_read: bool) {
        self.reads[copy] -= u32::from(is_read);
        if let Phase::Draining(_, end) = self.phases[copy]
            && is_read
            && id < end
        {
            self.waited_for[copy] -= 1;
            if self.waited_for[copy] == 0 {
                self.due = now;
            }
        }
    }

    /// There are other copies than before.
    pub fn reconsider(&mut self, now: Time) {
        if self.turns.is_some() {
            self.due = now;
        }
    }

    /// Windows begin anew.
    pub fn cut_power(&mut self, now: Time) {
        *self = Windowing::begin(self.turns.take(), std::mem::take(&mut self.pages_each));
        self.due = self.due.max(now);
    }

    /// Says which windows are to begin at `now`, of the copies that are `present`. What they
    /// are given next is number `next_id`.
    fn decide(&mut self, now: Time, present: u8, next_id: RequestId) -> Vec<(usize, Window)> {
        let Some(turns) = &self.turns else { return Vec::new() };
        let rest = turns.rest();
        let mut said = Vec::new();
        let asked = present & self.copies_in(|phase| phase == Phase::Asked) != 0;
        let mut resting: Vec<(Time, usize)> = Vec::new();
        for copy in each(present) {
            if let Phase::Resting(since) = self.phases[copy] {
                resting.push((since, copy));
            }
        }
        resting.sort_unstable();
        if asked || !resting.is_empty() {
            // One has ended its window meanwhile: none of the others leaves its own.
            for phase in &mut self.phases {
                if let Phase::Draining(since, _) = *phase {
                    *phase = Phase::Deterministic(since);
                }
            }
        }
        self.due = Time::MAX;
        match resting[..] {
            // All are in deterministic windows: the next may rest, once its reads are done.
            [] if !asked => {
                let standing: Vec<Standing> = each(present)
                    .filter_map(|copy| {
                        let Phase::Deterministic(since) = self.phases[copy] else { return None };
                        Some(Standing { copy, since, writes_left: self.rooms[copy].writes.left })
                    })
                    .collect();
                let is_draining = |phase| matches!(phase, Phase::Draining(..));
                let draining = each(present & self.copies_in(is_draining)).next();
                // One that is alone has nobody to take its turn: its device ends its window.
                let may_rest = standing.len() > 1;
                let next = draining.or_else(|| may_rest.then(|| turns.next(&standing)));
                if let Some(copy) = next {
                    if let Phase::Deterministic(since) = self.phases[copy] {
                        self.phases[copy] = Phase::Draining(since, next_id);
                        self.waited_for[copy] = self.reads[copy];
                    }
                    if self.waited_for[copy] == 0 {
                        said.push((copy, Window::NonDeterministic));
                    }
                }
            }
            [] => {}
            [(since, copy)] => {
                let due = (since + rest).max(self.retry_at);
                if asked {
                    // It waits for the other to begin.
                } else if now >= due {
                    said.push((copy, Window::Deterministic));
                } else {
                    self.due = due;
                }
            }
            // All but the one that has rested least.
            [ref others @ .., _] => {
                if now >= self.retry_at {
                    said.extend(others.iter().map(|&(_, copy)| (copy, Window::Deterministic)));
                } else {
                    self.due = self.retry_at;
                }
            }
        }
        for &(copy, window) in &said {
            self.phases[copy] = match window {
                Window::Deterministic => Phase::Asked,
                Window::NonDeterministic => Phase::Resting(now),
            };
            self.rooms[copy] = Rooms::default();
        }
        if said.iter().any(|(_, window)| *window == Window::NonDeterministic) {
            self.due = now + rest;
        }
        if let Some(until) = self.refused_since.map(|since| since + PATIENCE).filter(|&until| until > now) {
            // What was held for one that refuses goes on.
            self.due = self.due.min(until);
        }
        said
    }
}

impl Mirror {
    /// Decides about windows, if something is due.
    pub(super) fn turn(&mut self, now: Time, outbox: &mut Outbox) {
        if now < self.windowing.due {
            return;
        }
        let present = self.agreement.present();
        for (copy, window) in self.windowing.decide(now, present, self.pieces.next_id()) {
            let Home { device, set, .. } = self.homes.of(copy);
            outbox.commands.push((device, Command::Window(set, window)));
        }
        self.note_windows(now);
        // What was held may go, or wait for another.
        self.may_release = true;
    }

    /// Windows that are on count from now on, as does a time in which none is.
    pub(super) fn count_windows_from(&mut self, now: Time) {
        self.report.windows_begun = u64::from(self.windowing.in_windows().count_ones());
        if let Some(since) = &mut self.windowing.none_since {
            *since = now;
            self.report.none_deterministic = 1;
        }
    }

    /// Counts the times in which no copy is in a deterministic window.
    fn note_windows(&mut self, now: Time) {
        let has_some = self.windowing.in_windows() & self.agreement.present() != 0;
        self.windowing.has_begun |= has_some;
        match self.windowing.none_since {
            None if !has_some && self.windowing.has_begun => {
                self.report.none_deterministic += 1;
                self.windowing.none_since = Some(now);
            }
            Some(since) if has_some => {
                self.report.none_deterministic_ns += now.since(since).0;
                self.windowing.none_since = None;
            }
            _ => {}
        }
    }

    /// A copy has answered a command about its windows.
    pub(super) fn window_answered(
        &mut self,
        now: Time,
        device: usize,
        command: &Command,
        answer: Result<Answer, Refusal>,
    ) {
        match (command, answer) {
            (&Command::Window(set, Window::Deterministic), Err(refusal)) => {
                let Some(copy) = self.homes.at(device, set) else { return };
                let rest = self.windowing.turns.as_ref().map_or(Span::ZERO, |turns| turns.rest());
                self.windowing.phases[copy] = match refusal {
                    Refusal::NotNow(_) => Phase::Resting(Time(now.0.saturating_sub(rest.0))),
                    _ => Phase::Deaf,
                };
                self.windowing.retry_at = now + Span(rest.0 / RETRY).max(SHORTEST_RETRY);
                self.windowing.due = now;
                self.windowing.refused_since.get_or_insert(now);
            }
            (&Command::State, Ok(Answer::State(readings))) => {
                for copy in each(self.homes.on(device)) {
                    let set = self.homes.of(copy).set;
                    if self.windowing.in_windows() >> copy & 1 == 0 {
                        continue;
                    }
                    let reading = |name: &str| {
                        let name = format!("set{set}_{name}");
                        readings.iter().find(|(other, _)| *other == name).map(|&(_, value)| value)
                    };
                    let pages = |name| Some(reading(name)? * self.windowing.pages_each[device]);
                    let of_bytes = |name| Some(reading(name)? / LOGICAL_PAGE_BYTES);
                    // What it holds back is told in bytes, too, where its pages are larger than ours.
                    let left = of_bytes("held_estimate_bytes").or_else(|| pages("writes_estimate"));
                    let promised = of_bytes("held_typical_bytes").or_else(|| pages("writes_typical"));
                    self.windowing.rooms[copy] = Rooms {
                        writes: Room { left, promised },
                        large: Room { left: reading("direct_estimate"), promised: reading("direct_typical") },
                        large_above: reading("direct_above_bytes"),
                    };
                }
            }
            _ => {}
        }
    }

    /// A copy tells of its windows; whether that is what it tells.
    pub(super) fn window_noticed(
        &mut self,
        now: Time,
        device: usize,
        notice: &Notice,
        outbox: &mut Outbox,
    ) -> bool {
        if self.windowing.turns.is_none() || !notice.place.0.is_empty() {
            return false;
        }
        match notice.event {
            Event::WindowBegan(set) => {
                let Some(copy) = self.homes.at(device, set) else { return true };
                self.report.windows_begun += 1;
                self.windowing.refused_since = None;
                self.windowing.phases[copy] = Phase::Deterministic(now);
                outbox.commands.push((device, Command::State));
                outbox.events.push(Event::TurnBegan(copy));
            }
            Event::WindowEnded(set, _) => {
                let Some(copy) = self.homes.at(device, set) else { return true };
                // One that was given up before it began was none.
                self.report.windows_ended_early += u64::from(self.windowing.in_windows() >> copy & 1);
                self.windowing.phases[copy] = Phase::Resting(now);
                self.windowing.rooms[copy].writes.left = None;
                self.windowing.rooms[copy].large.left = None;
            }
            Event::WindowWarning(..) => {}
            Event::TurnBegan(_) | Event::WornOut => return false,
        }
        self.note_windows(now);
        self.windowing.due = now;
        true
    }
}
