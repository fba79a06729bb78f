//! What is in the buffer of one partition, and who waits for it.

use std::collections::VecDeque;

use flashkeel_engine::{Cause, Ledger, Span, Time};

use super::fullest::Fullest;
use super::{BufferKind, BufferPolicy, Occupancy, StripeQueue};
use crate::address::NONE;
use crate::ftl::{Entries, Lane};
use crate::sched::{Dispatcher, FlashOpId};

/// The triggers, resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triggers {
    /// Pages of a lane that are programmed at once, if that is a trigger.
    pub page: Option<u32>,
    pub full: bool,
    /// Pending pages above which the oldest are flushed.
    pub watermark: Option<u32>,
    pub read: bool,
    pub timeout: Option<Span>,
}

/// The write buffer of one partition in plain numbers, and its policy.
#[derive(Clone, Debug)]
pub(crate) struct BufferLayout {
    /// Pages that may wait for a flush.
    pub size: u32,
    pub triggers: Triggers,
    /// Whether a page that is written again replaces the one that is buffered.
    pub coalesces: bool,
    /// Whether a power cut empties it.
    pub is_volatile: bool,
    pub kind: BufferKind,
}

/// A host program on its way, in the order of forming.
#[derive(Clone, Copy, Debug)]
struct Flight {
    operation: FlashOpId,
    done: bool,
}

/// Pages waiting for a flush: what makes them one, and so how they are flushed.
#[derive(Clone)]
pub(crate) enum Pending {
    /// Their allocation domain; see `front/lanes.rs`.
    Lanes(Vec<Lane>),
    /// Their logical stripe; see `front/stripes.rs`.
    Stripes(StripeQueue),
}

/// The write buffer of one partition.
#[derive(Clone)]
pub(crate) struct Buffer {
    kind: BufferKind,
    /// What its kind says of acknowledging.
    acknowledges_in_flash: bool,
    coalesces: bool,
    /// Whether a write has to know what its page holds already.
    looks_up: bool,
    pub triggers: Triggers,
    pub pending: Pending,
    /// Which lane is the longest, where lanes are flushed by that.
    fullest: Option<Fullest>,
    pub occupancy: Occupancy,
    /// Whether what is written stays here, because the flash is in a deterministic window.
    pub is_held: bool,
    /// Whether a timeout is scheduled.
    pub timing: bool,
    /// Requests waiting for room, or for a flush: first and last.
    waiting: (u32, u32),
    /// Programs on their way; the first is the one that others wait for.
    flights: VecDeque<Flight>,
    first_ticket: u32,
    /// Blame of those who wait, since ever; grows only while somebody does.
    meter: Ledger,
    watchers: u32,
    lead_reading: Ledger,
    since: Time,
    /// Pages not yet in flash, by flush epoch, oldest first.
    epochs: VecDeque<Epoch>,
    first_epoch: u32,
    /// When the last flush of all came, commanded or not, as long as pages that it has found
    /// here may be pending.
    pub commanded: Option<Time>,
    /// Where pages are in lanes: the same of one that no flush command waits for.
    pub all_until: Option<Time>,
}

/// Pages written between two flush commands of the host.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    outstanding: u32,
    /// The flush command that ended the epoch, and waits for it.
    flush: u32,
}

impl Buffer {
    /// An empty buffer in front of `domains` allocation domains, or of so many
    /// logical `stripes`; `may_shrink` tells that there may be too little room for
    /// pages that hold nothing.
    pub fn new(layout: &BufferLayout, domains: u32, stripes: Option<u32>, may_shrink: bool) -> Self {
        let &BufferLayout { size, triggers, coalesces, ref kind, .. } = layout;
        Buffer {
            kind: kind.clone(),
            acknowledges_in_flash: kind.policy().acknowledges_in_flash(),
            coalesces,
            looks_up: coalesces || may_shrink,
            triggers,
            pending: match stripes {
                Some(stripes) => Pending::Stripes(StripeQueue::new(stripes)),
                None => Pending::Lanes(vec![Lane::EMPTY; domains as usize]),
            },
            fullest: triggers.watermark.map(|_| Fullest::new(domains)),
            occupancy: Occupancy { pending: 0, flushing: 0, size },
            is_held: false,
            timing: false,
            waiting: (NONE, NONE),
            flights: VecDeque::new(),
            first_ticket: 0,
            meter: Ledger::ZERO,
            watchers: 0,
            lead_reading: Ledger::ZERO,
            since: Time::ZERO,
            epochs: VecDeque::from([Epoch { outstanding: 0, flush: NONE }]),
            first_epoch: 0,
            commanded: None,
            all_until: None,
        }
    }

    /// The pending pages of each allocation domain.
    #[inline]
    pub fn lanes(&self) -> &[Lane] {
        match &self.pending {
            Pending::Lanes(lanes) => lanes,
            Pending::Stripes(_) => unreachable!("the pages of stripes are in no lane"),
        }
    }

    /// Changes the lane of a domain; returns what `change` does, and how long the lane is then.
    #[inline(always)]
    pub fn change_lane<R>(&mut self, domain: u32, change: impl FnOnce(&mut Lane) -> R) -> (R, u32) {
        let Pending::Lanes(lanes) = &mut self.pending else {
            unreachable!("the pages of stripes are in no lane")
        };
        let lane = &mut lanes[domain as usize];
        let changed = change(lane);
        if let Some(fullest) = &mut self.fullest {
            fullest.note(domain, lane.len);
        }
        (changed, lane.len)
    }

    /// The longest lane, where lanes are flushed by that, and its length.
    #[inline]
    pub fn longest_lane(&self) -> (u32, u32) {
        self.fullest.as_ref().expect("there is a watermark").longest()
    }

    /// The logical stripes with pending pages.
    #[inline]
    pub fn stripes(&self) -> &StripeQueue {
        match &self.pending {
            Pending::Stripes(stripes) => stripes,
            Pending::Lanes(_) => unreachable!("only the pages of stripes are flushed by them"),
        }
    }

    /// The same, to change.
    #[inline]
    pub fn stripes_mut(&mut self) -> &mut StripeQueue {
        match &mut self.pending {
            Pending::Stripes(stripes) => stripes,
            Pending::Lanes(_) => unreachable!("only the pages of stripes are flushed by them"),
        }
    }

    #[inline]
    pub fn kind(&self) -> &dyn BufferPolicy {
        self.kind.policy()
    }

    /// Whether a write is acknowledged only when its pages are in flash.
    #[inline]
    pub fn acknowledges_in_flash(&self) -> bool {
        self.acknowledges_in_flash
    }

    /// Whether a write has to know what its page holds already.
    #[inline]
    pub fn looks_up(&self) -> bool {
        self.looks_up
    }

    /// Whether a page that is written again while it is pending takes no other place.
    #[inline]
    pub fn coalesces(&self) -> bool {
        self.coalesces
    }

    /// The first request waiting for the buffer, or [`NONE`].
    #[inline]
    pub fn first_waiting(&self) -> u32 {
        self.waiting.0
    }

    pub fn waiting_mut(&mut self) -> &mut (u32, u32) {
        &mut self.waiting
    }

    /// Counts a page that has entered; returns its epoch.
    #[inline]
    pub fn enter(&mut self) -> u32 {
        self.occupancy.pending += 1;
        let last = self.epochs.len() - 1;
        self.epochs[last].outstanding += 1;
        self.first_epoch.wrapping_add(last as u32)
    }

    /// Notes a program of `pages` pages; returns the ticket it carries.
    pub fn take_off(&mut self, now: Time, operation: FlashOpId, pages: u32, dispatcher: &Dispatcher) -> u32 {
        self.occupancy.pending -= pages;
        self.occupancy.flushing += pages;
        if self.flights.is_empty() {
            self.catch_up(now, dispatcher);
            self.lead_reading = Ledger::ZERO;
        }
        self.flights.push_back(Flight { operation, done: false });
        self.first_ticket.wrapping_add(self.flights.len() as u32 - 1)
    }

    /// Notes that the program with this ticket is done. Called before the
    /// operation is released.
    pub fn land(&mut self, now: Time, ticket: u32, pages: u32, dispatcher: &Dispatcher) {
        self.occupancy.flushing -= pages;
        let index = ticket.wrapping_sub(self.first_ticket) as usize;
        self.flights[index].done = true;
        if index > 0 {
            return;
        }
        self.catch_up(now, dispatcher);
        while self.flights.front().is_some_and(|flight| flight.done) {
            self.flights.pop_front();
            self.first_ticket = self.first_ticket.wrapping_add(1);
        }
        if self.watchers > 0 {
            self.read_lead(now, dispatcher);
        }
    }

    /// A page of `epoch` is in flash.
    #[inline]
    pub fn leave(&mut self, epoch: u32) {
        let index = epoch.wrapping_sub(self.first_epoch) as usize;
        self.epochs[index].outstanding -= 1;
    }

    /// The next flush command all of whose pages are in flash.
    #[inline]
    pub fn next_flushed(&mut self) -> Option<u32> {
        let first = self.epochs[0];
        if first.outstanding > 0 || self.epochs.len() == 1 {
            return None;
        }
        self.epochs.pop_front();
        self.first_epoch = self.first_epoch.wrapping_add(1);
        Some(first.flush)
    }

    /// Whether any flush command waits for pages to reach flash.
    pub fn awaits_flush(&self) -> bool {
        self.epochs.len() > 1
    }

    /// Whether pages that a flush command waits for are not in flash yet.
    pub fn owes(&self, flush: u32) -> bool {
        self.epochs.iter().any(|epoch| epoch.flush == flush)
    }

    /// The oldest epoch of a pending page, if a flush command has ended it, where pages are
    /// in lanes.
    pub fn oldest_owed(&self, entries: &Entries) -> Option<u32> {
        let heads = self.lanes().iter().filter_map(Lane::head);
        let oldest = heads.map(|head| entries[head].epoch.wrapping_sub(self.first_epoch)).min()?;
        let is_ended = (oldest as usize) < self.epochs.len() - 1;
        is_ended.then_some(self.first_epoch.wrapping_add(oldest))
    }

    /// A flush command ends the present epoch.
    pub fn end_epoch(&mut self, now: Time, flush: u32) {
        self.commanded = Some(now);
        let last = self.epochs.len() - 1;
        self.epochs[last].flush = flush;
        self.epochs.push_back(Epoch { outstanding: 0, flush: NONE });
    }

    /// Whether any flush is on its way.
    #[inline]
    pub fn is_flushing(&self) -> bool {
        self.occupancy.flushing > 0
    }

    /// Whoever has `ledger` begins to wait.
    #[inline(always)]
    pub fn begin_wait(&mut self, now: Time, ledger: &mut Ledger, dispatcher: &Dispatcher) {
        if self.watchers == 0 {
            self.since = now;
            self.read_lead(now, dispatcher);
        }
        self.watchers += 1;
        self.catch_up(now, dispatcher);
        ledger.subtract(&self.meter);
    }

    /// Whoever has `ledger` stops waiting: its wait is charged.
    #[inline(always)]
    pub fn end_wait(&mut self, now: Time, ledger: &mut Ledger, dispatcher: &Dispatcher) {
        self.catch_up(now, dispatcher);
        ledger.add(&self.meter);
        self.watchers -= 1;
    }

    /// Reads the oldest program on its way, if any: what holds it up is what
    /// holds up the buffer. Its own work is, for those who wait, another host
    /// write.
    #[inline]
    fn read_lead(&mut self, now: Time, dispatcher: &Dispatcher) {
        if let Some(lead) = self.flights.front() {
            dispatcher.read_ledger(now, lead.operation, &mut self.lead_reading);
            self.lead_reading.reassign(Cause::OwnFlash, Cause::BehindHostWrite);
        }
    }

    /// Brings the meter up to `now`.
    fn catch_up(&mut self, now: Time, dispatcher: &Dispatcher) {
        if self.watchers == 0 || now == self.since {
            return;
        }
        let before = self.meter.total();
        let lead = self.flights.front();
        match lead.map(|lead| dispatcher.owner_since(lead.operation, self.since)) {
            Some(Some(cause)) => {
                // What most wait for. The rest of its blame is as it was.
                let cause = if cause == Cause::OwnFlash { Cause::BehindHostWrite } else { cause };
                for ledger in [&mut self.meter, &mut self.lead_reading] {
                    ledger.charge_between(cause, self.since, now);
                }
            }
            Some(None) => {
                self.meter.subtract(&self.lead_reading);
                self.read_lead(now, dispatcher);
                self.meter.add(&self.lead_reading);
            }
            None => self.meter.charge_between(Cause::BufferFull, self.since, now),
        }
        debug_assert_eq!(self.meter.total() - before, now.since(self.since));
        self.since = now;
    }
}
