//! Chips and channels: one operation per chip at a time, no cache register.
//!
//! A read occupies its chip for the array read, the wait for the channel and
//! the transfer; a program for the wait, the transfer and the array program;
//! an erase for the erase alone (AutoSSD, §4.1 and Table 1). A move of pages
//! within a chip occupies it, and the channel too unless pages are copied
//! back, from its start to its end.

use std::collections::VecDeque;

use flashkeel_engine::{Cause, EventQueue, Ledger, Span, Time, Waits};

use super::{Geometry, Meter, Suspension, Timing};
use crate::address::ChipId;

/// What a chip is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlashCommand {
    /// Read part of a page and transfer it out.
    Read,
    /// Transfer a page in and program it.
    Program,
    /// Erase a block.
    Erase,
    /// Move pages within the chip through the controller, which holds the
    /// channel all the while.
    Move,
    /// Move pages within the chip by copyback; the channel stays free.
    Copyback,
}

impl FlashCommand {
    /// Whether a chip can break it off for reads.
    #[inline]
    pub fn is_suspendable(self) -> bool {
        matches!(self, FlashCommand::Program | FlashCommand::Erase | FlashCommand::Copyback)
    }
}

/// One operation as the array sees it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// What to do.
    pub command: FlashCommand,
    /// Page number within its block; 0 for an erase.
    pub page: u32,
    /// Mapping units to transfer.
    pub units: u32,
    /// How long a move takes; other commands have times of their own.
    pub span: Span,
    /// What those who wait behind this operation are told.
    pub cause: Cause,
    /// Whether somebody will ask for the operation's blame.
    pub tracked: bool,
    /// Whether a program goes into cells used with one bit each.
    pub slc: bool,
}

/// What became of a chip at its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing that others need to know.
    Working,
    /// Its operation is done; the chip is idle.
    Done,
    /// Its operation is suspended; the chip is idle.
    Suspended,
    /// Its suspended operation goes on.
    Resumed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Cell,
    ChannelWait,
    Transfer,
    Suspending,
    Resuming,
}

#[derive(Clone, Debug)]
struct Chip {
    channel: u32,
    phase: Phase,
    job: Job,
    /// When the present phase began, unless it is a wait.
    since: Time,
    /// When the present phase ends; any other event of the chip is stale.
    until: Time,
    /// When it started, put off by its waits for the channel and suspensions
    /// so far.
    started: Time,
    /// When the present wait for the channel began.
    waiting_since: Time,
    /// Blame gathered while waiting for the channel and while suspended; none where it has
    /// done neither.
    waited: Option<Waits>,
}

/// An operation that has been broken off.
#[derive(Clone, Debug)]
struct Paused {
    job: Job,
    started: Time,
    waited: Option<Waits>,
    since: Time,
    /// Array time that it still needs.
    left: Span,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    busy: bool,
    waiting: VecDeque<u32>,
    meter: Meter,
}

/// The flash array: every chip and channel of the device.
#[derive(Clone, Debug)]
pub struct Array {
    timing: Timing,
    suspension: Option<Suspension>,
    chips_per_channel: u32,
    chips: Vec<Chip>,
    /// What is broken off on each chip.
    paused: Vec<Option<Box<Paused>>>,
    channels: Vec<Channel>,
}

impl Array {
    /// An idle array.
    pub fn new(geometry: &Geometry, timing: Timing, suspension: Option<Suspension>) -> Self {
        let job = Job {
            command: FlashCommand::Erase,
            page: 0,
            units: 0,
            span: Span(0),
            cause: Cause::OwnFlash,
            tracked: false,
            slc: false,
        };
        let idle = |chip| Chip {
            channel: chip / geometry.chips_per_channel,
            phase: Phase::Idle,
            job,
            since: Time::ZERO,
            until: Time::ZERO,
            started: Time::ZERO,
            waiting_since: Time::ZERO,
            waited: None,
        };
        Array {
            timing,
            suspension,
            chips_per_channel: geometry.chips_per_channel,
            chips: (0..geometry.chips()).map(idle).collect(),
            paused: vec![None; geometry.chips() as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
        }
    }

    /// The operation times in force.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Chips on each channel.
    pub fn chips_per_channel(&self) -> u32 {
        self.chips_per_channel
    }

    /// How chips suspend, if they can.
    #[inline]
    pub fn suspension(&self) -> Option<&Suspension> {
        self.suspension.as_ref()
    }

    /// The cause that those waiting for `chip` are told, if it is busy.
    #[inline]
    pub fn occupant(&self, chip: ChipId) -> Option<Cause> {
        let chip = &self.chips[chip.0 as usize];
        match chip.phase {
            Phase::Idle => None,
            Phase::Suspending | Phase::Resuming => Some(Cause::Suspension),
            _ => Some(chip.job.cause),
        }
    }

    /// How long a busy chip has worked on its operation.
    #[inline]
    pub fn worked(&self, now: Time, chip: ChipId) -> Span {
        let chip = &self.chips[chip.0 as usize];
        let until = if chip.phase == Phase::ChannelWait { chip.waiting_since } else { now };
        until.since(chip.started)
    }

    /// How long a chip has worked on the operation that is suspended.
    pub fn worked_before(&self, chip: ChipId) -> Span {
        let paused = self.paused[chip.0 as usize].as_ref().expect("something is suspended");
        paused.since.since(paused.started)
    }

    /// Who has owned all the time of a busy chip's operation since an instant, if it is
    /// one cause.
    #[inline]
    pub fn owner_since(&self, instant: Time, chip: ChipId) -> Option<Cause> {
        let chip = &self.chips[chip.0 as usize];
        match chip.phase {
            Phase::Cell | Phase::Transfer => (chip.since <= instant).then_some(Cause::OwnFlash),
            Phase::ChannelWait if chip.waiting_since <= instant => {
                self.channels[chip.channel as usize].meter.owner_since(instant)
            }
            _ => None,
        }
    }

    /// Starts `job` on an idle chip. Events of the chip carry its number.
    #[inline(always)]
    pub fn start(&mut self, now: Time, chip: ChipId, job: Job, events: &mut EventQueue) {
        let Array { chips, channels, timing, .. } = self;
        let state = &mut chips[chip.0 as usize];
        debug_assert_eq!(state.phase, Phase::Idle);
        state.job = job;
        state.started = now;
        state.waited = None;
        let span = match job.command {
            FlashCommand::Read => timing.read(job.page),
            FlashCommand::Erase => timing.erase(),
            FlashCommand::Copyback => job.span,
            FlashCommand::Program | FlashCommand::Move => {
                let channel = &mut channels[state.channel as usize];
                return state.want_channel(now, chip.0, channel, timing, events);
            }
        };
        state.enter(now, Phase::Cell, span);
        events.push(state.until, u64::from(chip.0));
    }

    /// Runs the chip's event, if it is due.
    #[inline(always)]
    pub fn step(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) -> Step {
        let Array { chips, channels, timing, .. } = self;
        let state = &mut chips[chip.0 as usize];
        if state.until != now {
            // The end of a phase that was broken off.
            return Step::Working;
        }
        match state.phase {
            Phase::Cell if state.job.command == FlashCommand::Read => {
                state.want_channel(now, chip.0, &mut channels[state.channel as usize], timing, events);
                Step::Working
            }
            Phase::Cell => {
                state.phase = Phase::Idle;
                Step::Done
            }
            Phase::Transfer if state.job.command == FlashCommand::Program => {
                state.enter(now, Phase::Cell, timing.program(state.job.page, state.job.slc));
                events.push(state.until, u64::from(chip.0));
                let channel = state.channel;
                self.leave_channel(now, channel, events);
                Step::Working
            }
            Phase::Transfer => {
                state.phase = Phase::Idle;
                let channel = state.channel;
                self.leave_channel(now, channel, events);
                Step::Done
            }
            Phase::Suspending => {
                state.phase = Phase::Idle;
                Step::Suspended
            }
            Phase::Resuming => {
                self.go_on(now, chip, events);
                Step::Resumed
            }
            // Another phase that was broken off would have ended now.
            Phase::Idle | Phase::ChannelWait => Step::Working,
        }
    }

    /// Whether the chip's operation can be suspended, and would last longer
    /// than that takes.
    #[inline]
    pub fn can_suspend(&self, now: Time, chip: ChipId) -> bool {
        let state = &self.chips[chip.0 as usize];
        let Some(suspension) = &self.suspension else { return false };
        state.phase == Phase::Cell
            && state.job.command.is_suspendable()
            && state.until.since(now) > suspension.latency
    }

    /// Breaks the chip's operation off, where [`can_suspend`](Self::can_suspend).
    pub fn suspend(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let suspension = self.suspension.as_ref().expect("the chip can suspend");
        let state = &mut self.chips[chip.0 as usize];
        let (job, started, waited) = (state.job, state.started, state.waited);
        let paused = Paused { job, started, waited, since: now, left: state.until.since(now) };
        match &mut self.paused[chip.0 as usize] {
            Some(place) => **place = paused,
            place => *place = Some(Box::new(paused)),
        }
        state.enter(now, Phase::Suspending, suspension.latency);
        events.push(state.until, u64::from(chip.0));
    }

    /// Takes the operation that was broken off up again on an idle chip.
    pub fn resume(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let suspension = self.suspension.as_ref().expect("something is suspended");
        let state = &mut self.chips[chip.0 as usize];
        debug_assert_eq!(state.phase, Phase::Idle);
        state.enter(now, Phase::Resuming, suspension.resume);
        events.push(state.until, u64::from(chip.0));
    }

    fn go_on(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let paused = self.paused[chip.0 as usize].as_ref().expect("something is suspended");
        let state = &mut self.chips[chip.0 as usize];
        let lost = now.since(paused.since);
        state.job = paused.job;
        state.started = paused.started + lost;
        state.waited = paused.waited;
        if state.job.tracked {
            state.waited.get_or_insert_default()[Cause::Suspension as usize] += lost.0;
        }
        state.enter(now, Phase::Cell, paused.left);
        events.push(state.until, u64::from(chip.0));
    }

    /// Charges the time of the chip's tracked operation from its start to
    /// `now`: its own work, and its waits by owner.
    #[inline(always)]
    pub fn charge(&self, now: Time, chip: ChipId, ledger: &mut Ledger) {
        let state = &self.chips[chip.0 as usize];
        let mut worked_until = now;
        if let Some(waited) = &state.waited {
            ledger.add_waits(waited);
        }
        if state.phase == Phase::ChannelWait {
            self.channels[state.channel as usize].meter.end_wait(now, ledger.waits());
            worked_until = state.waiting_since;
        }
        ledger.charge_between(Cause::OwnFlash, state.started, worked_until);
    }

    /// The same for the chip's operation that is broken off, or being taken
    /// up again.
    pub fn charge_paused(&self, now: Time, chip: ChipId, ledger: &mut Ledger) {
        let paused = self.paused[chip.0 as usize].as_ref().expect("something is suspended");
        if let Some(waited) = &paused.waited {
            ledger.add_waits(waited);
        }
        ledger.charge_between(Cause::OwnFlash, paused.started, paused.since);
        ledger.charge_between(Cause::Suspension, paused.since, now);
    }

    /// Gives the channel to the chip that has waited longest, if any.
    #[inline(always)]
    fn leave_channel(&mut self, now: Time, channel: u32, events: &mut EventQueue) {
        let channel = &mut self.channels[channel as usize];
        let Some(next) = channel.waiting.pop_front() else {
            channel.busy = false;
            channel.meter.set_owner(now, None);
            return;
        };
        let state = &mut self.chips[next as usize];
        state.started += now.since(state.waiting_since);
        if let Some(waited) = &mut state.waited {
            channel.meter.end_wait(now, waited);
            debug_assert_eq!(waited.iter().sum::<u64>(), now.since(state.waiting_since).0);
        }
        state.take_channel(now, next, &mut channel.meter, &self.timing, events);
    }
}

impl Chip {
    #[inline]
    fn enter(&mut self, now: Time, phase: Phase, span: Span) {
        self.phase = phase;
        (self.since, self.until) = (now, now + span);
    }

    /// Takes its channel, or waits for it.
    #[inline(always)]
    fn want_channel(
        &mut self,
        now: Time,
        chip: u32,
        channel: &mut Channel,
        timing: &Timing,
        events: &mut EventQueue,
    ) {
        if channel.busy {
            self.phase = Phase::ChannelWait;
            self.waiting_since = now;
            if self.job.tracked {
                channel.meter.begin_wait(now, self.waited.get_or_insert_default());
            }
            channel.waiting.push_back(chip);
        } else {
            channel.busy = true;
            self.take_channel(now, chip, &mut channel.meter, timing, events);
        }
    }

    #[inline(always)]
    fn take_channel(
        &mut self,
        now: Time,
        chip: u32,
        meter: &mut Meter,
        timing: &Timing,
        events: &mut EventQueue,
    ) {
        meter.set_owner(now, Some(self.job.cause));
        let span = match self.job.command {
            FlashCommand::Move => self.job.span,
            _ => timing.transfer(self.job.units),
        };
        self.enter(now, Phase::Transfer, span);
        events.push(self.until, u64::from(chip));
    }
}
