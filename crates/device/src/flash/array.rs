//! Chips and channels: one operation per chip at a time, no cache register.
//!
//! A read occupies its chip for the array read, the wait for the channel and
//! the transfer; a program for the wait, the transfer and the array program;
//! an erase for the erase alone (AutoSSD, §4.1 and Table 1).

use std::collections::VecDeque;

use flashkeel_engine::{Cause, EventQueue, Ledger, Time};

use super::{Geometry, Meter, Timing};
use crate::address::ChipId;

/// What a chip is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Read part of a page and transfer it out.
    Read,
    /// Transfer a page in and program it.
    Program,
    /// Erase a block.
    Erase,
}

/// One operation as the array sees it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// What to do.
    pub command: Command,
    /// Page number within its block; 0 for an erase.
    pub page: u32,
    /// Mapping units to transfer.
    pub slots: u32,
    /// What those who wait behind this operation are told.
    pub cause: Cause,
    /// Whether somebody will ask for the operation's blame.
    pub tracked: bool,
    /// Whether a program goes into cells used with one bit each.
    pub slc: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Cell,
    ChannelWait,
    Transfer,
}

#[derive(Clone, Debug)]
struct Chip {
    phase: Phase,
    job: Job,
    /// When it started, put off by its waits for the channel so far.
    started: Time,
    /// When the present wait for the channel began.
    waiting_since: Time,
    /// Blame gathered while waiting for the channel.
    waited: Ledger,
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
    chips_per_channel: u32,
    chips: Vec<Chip>,
    channels: Vec<Channel>,
}

impl Array {
    /// An idle array.
    pub fn new(geometry: &Geometry, timing: Timing) -> Self {
        let idle = Chip {
            phase: Phase::Idle,
            job: Job {
                command: Command::Erase,
                page: 0,
                slots: 0,
                cause: Cause::OwnFlash,
                tracked: false,
                slc: false,
            },
            started: Time::ZERO,
            waiting_since: Time::ZERO,
            waited: Ledger::ZERO,
        };
        Array {
            timing,
            chips_per_channel: geometry.chips_per_channel,
            chips: vec![idle; geometry.chips() as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
        }
    }

    /// The operation times in force.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The cause that those waiting for `chip` are told, if it is busy.
    #[inline]
    pub fn occupant(&self, chip: ChipId) -> Option<Cause> {
        let chip = &self.chips[chip.0 as usize];
        (chip.phase != Phase::Idle).then_some(chip.job.cause)
    }

    /// Starts `job` on an idle chip. Events of the chip carry its number.
    #[inline]
    pub fn start(&mut self, now: Time, chip: ChipId, job: Job, events: &mut EventQueue) {
        let state = &mut self.chips[chip.0 as usize];
        debug_assert_eq!(state.phase, Phase::Idle);
        state.job = job;
        state.started = now;
        if job.tracked {
            state.waited = Ledger::ZERO;
        }
        state.phase = Phase::Cell;
        match job.command {
            Command::Read => events.push(now + self.timing.read(job.page), chip.0),
            Command::Erase => events.push(now + self.timing.erase(), chip.0),
            Command::Program => self.want_channel(now, chip, events),
        }
    }

    /// Runs the chip's due event. True when its operation is done; the chip
    /// is idle then.
    #[inline]
    pub fn step(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) -> bool {
        let state = &mut self.chips[chip.0 as usize];
        match (state.phase, state.job.command) {
            (Phase::Cell, Command::Read) => {
                self.want_channel(now, chip, events);
                false
            }
            (Phase::Transfer, Command::Program) => {
                state.phase = Phase::Cell;
                events.push(now + self.timing.program(state.job.page, state.job.slc), chip.0);
                self.leave_channel(now, chip, events);
                false
            }
            (Phase::Transfer, Command::Read) => {
                state.phase = Phase::Idle;
                self.leave_channel(now, chip, events);
                true
            }
            (Phase::Cell, Command::Program | Command::Erase) => {
                state.phase = Phase::Idle;
                true
            }
            (phase, command) => unreachable!("no event is due in {phase:?} of {command:?}"),
        }
    }

    /// Charges the time of the chip's tracked operation from its start to
    /// `now`: its own work, and the waits for the channel by owner.
    #[inline]
    pub fn charge(&self, now: Time, chip: ChipId, ledger: &mut Ledger) {
        let state = &self.chips[chip.0 as usize];
        let mut worked_until = now;
        ledger.add(&state.waited);
        if state.phase == Phase::ChannelWait {
            self.channel(chip).meter.end_wait(now, ledger);
            worked_until = state.waiting_since;
        }
        ledger.charge_between(Cause::OwnFlash, state.started, worked_until);
    }

    fn channel(&self, chip: ChipId) -> &Channel {
        &self.channels[(chip.0 / self.chips_per_channel) as usize]
    }

    #[inline]
    fn want_channel(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let channel = &mut self.channels[(chip.0 / self.chips_per_channel) as usize];
        let state = &mut self.chips[chip.0 as usize];
        if channel.busy {
            state.phase = Phase::ChannelWait;
            state.waiting_since = now;
            if state.job.tracked {
                channel.meter.begin_wait(now, &mut state.waited);
            }
            channel.waiting.push_back(chip.0);
        } else {
            channel.busy = true;
            channel.meter.set_owner(now, Some(state.job.cause));
            state.phase = Phase::Transfer;
            events.push(now + self.timing.transfer(state.job.slots), chip.0);
        }
    }

    /// Gives the channel to the chip that has waited longest, if any.
    #[inline]
    fn leave_channel(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let channel = &mut self.channels[(chip.0 / self.chips_per_channel) as usize];
        let Some(next) = channel.waiting.pop_front() else {
            channel.busy = false;
            channel.meter.set_owner(now, None);
            return;
        };
        let state = &mut self.chips[next as usize];
        state.started += now.since(state.waiting_since);
        if state.job.tracked {
            channel.meter.end_wait(now, &mut state.waited);
            debug_assert_eq!(state.waited.total(), now.since(state.waiting_since));
        }
        channel.meter.set_owner(now, Some(state.job.cause));
        state.phase = Phase::Transfer;
        events.push(now + self.timing.transfer(state.job.slots), next);
    }
}
