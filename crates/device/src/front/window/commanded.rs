//! `commanded`: windows as in NVMe's predictable latency mode (NVMe 1.4). A
//! deterministic one begins when it is commanded and nothing is under way in the flash,
//! and lasts until it is left, has given what it promised, or garbage collection can
//! wait no longer. What is written in it stays in the buffer.

use flashkeel_engine::{Span, Time, WindowEnd, WindowLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, WindowPolicy};
use crate::limits::LONGEST_PERIOD;

/// Settings of `commanded`, which are the attributes that a host reads back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Commanded {
    /// Reads of 4 KiB that a deterministic window serves (DTWin reads typical); one more
    /// ends it. Any number if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_typical: Option<u64>,
    /// Flash pages that may be written in a deterministic window (DTWin writes typical): it begins only with
    /// room for them in the buffer and in free blocks, and one more ends it. If absent
    /// nothing is promised: the buffer takes what it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_typical: Option<u64>,
    /// Longest time that a deterministic window lasts (DTWin time maximum); any if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_maximum: Option<Span>,
    /// Shortest time between two deterministic windows, whatever the first has used
    /// (NDWin time minimum low); one erase if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_minimum_low: Option<Span>,
    /// Shortest time between two deterministic windows where the first has used all it may
    /// (NDWin time minimum high); after another a part of what is above `time_minimum_low`,
    /// which it is if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_minimum_high: Option<Span>,
    /// An event is raised when no more than so many reads are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_warning: Option<u64>,
    /// An event is raised when no more than so many flash pages may be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_warning: Option<u64>,
    /// An event is raised when no more than so much time is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_warning: Option<Span>,
}

impl Build for Commanded {
    fn build(&self, _set: u32, _sets: u32) -> Option<Box<dyn WindowPolicy>> {
        Some(Box::new(Commands::new(self.clone())))
    }

    fn validate(&self) -> Result<(), String> {
        let zero = [
            ("reads_typical", self.reads_typical == Some(0)),
            ("time_maximum", self.time_maximum == Some(Span::ZERO)),
        ];
        if let Some((key, _)) = zero.iter().find(|(_, is_zero)| *is_zero) {
            return Err(format!("{key} is zero; a window needs some, or leave it out for any"));
        }
        let times = [
            ("time_maximum", self.time_maximum),
            ("time_minimum_low", self.time_minimum_low),
            ("time_minimum_high", self.time_minimum_high),
        ];
        for (key, time) in times {
            if let Some(time) = time.filter(|&time| time > LONGEST_PERIOD) {
                return Err(format!("{key} is {time}; at most {LONGEST_PERIOD}"));
            }
        }
        if let (Some(low), Some(high)) = (self.time_minimum_low, self.time_minimum_high)
            && low > high
        {
            return Err(format!("time_minimum_low is {low}, above time_minimum_high, {high}"));
        }
        let without = [
            ("reads_warning", "reads_typical", self.reads_warning.is_some() && self.reads_typical.is_none()),
            (
                "writes_warning",
                "writes_typical",
                self.writes_warning.is_some() && self.writes_typical.is_none(),
            ),
            ("time_warning", "time_maximum", self.time_warning.is_some() && self.time_maximum.is_none()),
        ];
        match without.iter().find(|(.., is_without)| *is_without) {
            Some((key, of, _)) => Err(format!("{key} is of what is left of {of}, which is not given")),
            None => Ok(()),
        }
    }

    fn shortest_background(&self) -> Option<(&'static str, Span)> {
        let high = self.time_minimum_high.map(|high| ("time_minimum_high", high));
        self.time_minimum_low.map(|low| ("time_minimum_low", low)).or(high)
    }

    fn obeys(&self) -> bool {
        true
    }

    fn promised_reads(&self) -> Option<u64> {
        self.reads_typical
    }

    fn longest(&self) -> Option<Span> {
        self.time_maximum
    }

    fn promised_pages(&self) -> Option<u64> {
        self.writes_typical
    }
}

/// What a set is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// With background work.
    NonDeterministic,
    /// A deterministic window is to begin as soon as the flash is at rest.
    Preparing,
    /// Without background work.
    Deterministic,
}

/// The windows of one set.
#[derive(Clone)]
pub struct Commands {
    /// What a deterministic window promises.
    pub settings: Commanded,
    /// What the set is in.
    pub phase: Phase,
    /// Since when.
    since: Time,
    /// What the present or the last deterministic window has used, reads and writes
    /// in 4 KiB pages.
    reads: u64,
    writes: u64,
    /// The part of what it might that the last one has used; nothing before the first.
    used: Option<f64>,
    /// When it is looked at by the clock; other times that were set are of windows that have
    /// ended before.
    pub timer: Option<Time>,
    /// Warnings that have been given in this window, a bit each.
    warned: u8,
}

impl Commands {
    fn new(settings: Commanded) -> Commands {
        let phase = Phase::NonDeterministic;
        Commands {
            settings,
            phase,
            since: Time::ZERO,
            reads: 0,
            writes: 0,
            used: None,
            timer: None,
            warned: 0,
        }
    }

    /// Until when no command ends the present window with background work; an erase takes
    /// `erase`.
    pub fn rests_until(&self, erase: Span) -> Time {
        let Some(used) = self.used.filter(|_| self.phase == Phase::NonDeterministic) else {
            return self.since;
        };
        let (low, high) = self.shortest(erase);
        self.since + low + Span(((high.0 - low.0) as f64 * used) as u64)
    }

    /// The shortest times between deterministic windows: whatever the last has used,
    /// and after one that has used all it might.
    pub fn shortest(&self, erase: Span) -> (Span, Span) {
        let Commanded { time_minimum_low, time_minimum_high, .. } = self.settings;
        let low = time_minimum_low.unwrap_or_else(|| time_minimum_high.map_or(erase, |high| high.min(erase)));
        (low, time_minimum_high.unwrap_or(low).max(low))
    }

    /// A deterministic window is to begin.
    pub fn prepare(&mut self) {
        self.phase = Phase::Preparing;
    }

    /// The deterministic window begins; until when it lasts at most.
    pub fn begin(&mut self, now: Time) -> Option<Time> {
        (self.phase, self.since) = (Phase::Deterministic, now);
        (self.reads, self.writes, self.warned) = (0, 0, 0);
        self.settings.time_maximum.map(|most| now + most)
    }

    /// The window, or what was to become one, is over.
    pub fn leave(&mut self, now: Time, pages_each: u64) {
        if self.phase == Phase::Deterministic {
            let share = |used: u64, of: Option<u64>| of.map_or(0.0, |of| used as f64 / of.max(1) as f64);
            let reads = share(self.reads, self.settings.reads_typical);
            let writes = share(self.writes, self.settings.writes_typical.map(|pages| pages * pages_each));
            let time = share(now.since(self.since).0, self.settings.time_maximum.map(|most| most.0));
            self.used = Some(reads.max(writes).max(time).min(1.0));
            self.since = now;
        }
        self.phase = Phase::NonDeterministic;
    }

    /// Counts what the host asks in a deterministic window, in pages of 4 KiB, of which
    /// a flash page has `pages_each`; why it ends by that, if it does.
    #[inline]
    pub fn count(&mut self, reads: u64, writes: u64, pages_each: u64) -> Option<WindowEnd> {
        if self.phase != Phase::Deterministic {
            return None;
        }
        self.reads += reads;
        self.writes += writes;
        let is_beyond = |used: u64, most: Option<u64>| most.is_some_and(|most| used > most);
        let most_written = self.settings.writes_typical.map(|pages| pages * pages_each);
        let is_over =
            is_beyond(self.reads, self.settings.reads_typical) || is_beyond(self.writes, most_written);
        is_over.then_some(WindowEnd::TypicalExceeded)
    }

    /// Reads of 4 KiB, flash pages and time that are left of a deterministic window;
    /// before one, what it will have.
    pub fn left(&self, now: Time, pages_each: u64) -> (Option<u64>, Option<u64>, Option<Span>) {
        let Commanded { reads_typical, writes_typical, time_maximum, .. } = self.settings;
        if self.phase != Phase::Deterministic {
            return (reads_typical, writes_typical, time_maximum);
        }
        let reads = reads_typical.map(|all| all.saturating_sub(self.reads));
        let writes = writes_typical.map(|all| (all * pages_each).saturating_sub(self.writes) / pages_each);
        (reads, writes, time_maximum.map(|most| Span(most.0.saturating_sub(now.since(self.since).0))))
    }

    /// What has become as little as its warning says, and was not told before.
    pub fn warning(&mut self, now: Time, pages_each: u64) -> Option<WindowLimit> {
        if self.phase != Phase::Deterministic {
            return None;
        }
        let (reads, writes, time) = self.left(now, pages_each);
        let Commanded { reads_warning, writes_warning, time_warning, .. } = self.settings;
        let is_short = [
            (WindowLimit::Reads, reads_warning.is_some_and(|few| reads.is_some_and(|left| left <= few))),
            (WindowLimit::Writes, writes_warning.is_some_and(|few| writes.is_some_and(|left| left <= few))),
            (WindowLimit::Time, time_warning.is_some_and(|few| time.is_some_and(|left| left <= few))),
        ];
        let mut new =
            is_short.into_iter().filter(|&(left, is_short)| is_short && self.warned >> left as u8 & 1 == 0);
        let left = new.next()?.0;
        self.warned |= 1 << left as u8;
        Some(left)
    }

    /// When something is to be said about the time of the present window, after `now`.
    pub fn due(&self, now: Time) -> Option<Time> {
        let most = self.settings.time_maximum.filter(|_| self.phase == Phase::Deterministic)?;
        let end = self.since + most;
        let warning = self.settings.time_warning.map(|few| Time(end.0.saturating_sub(few.0)));
        warning.filter(|&warning| warning > now).or(Some(end)).filter(|&due| due > now)
    }
}

impl WindowPolicy for Commands {
    fn background(&mut self, _now: Time) -> (bool, Option<Time>) {
        (self.phase == Phase::NonDeterministic, None)
    }

    fn commands(&self) -> Option<&Commands> {
        Some(self)
    }

    fn commands_mut(&mut self) -> Option<&mut Commands> {
        Some(self)
    }
}
