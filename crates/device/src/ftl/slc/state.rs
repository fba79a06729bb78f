//! What waits to be folded in one partition.

use flashkeel_engine::{Cause, Span, Time};

use super::SlcConfig;
use crate::address::ChipId;
use crate::flash::Geometry;
use crate::ftl::background::Background;
use crate::ftl::{Ftl, PartitionLayout};
use crate::machine::{Event, Machine};
use crate::sched::{Activity, FlashOp, Task};

/// The SLC cache of one partition in plain numbers; all counts in flash pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlcLayout {
    room: u32,
    start_above: u32,
    stop_below: u32,
    idle_after: Span,
}

impl SlcLayout {
    /// Resolves a configuration for one of so many `partitions`; `None` where
    /// there is no cache.
    pub fn resolve(config: &SlcConfig, geometry: &Geometry, partitions: u64) -> Option<SlcLayout> {
        let fold = config.policy().settings()?;
        let room = (fold.size.0 / partitions / geometry.page_bytes()).min(u64::from(u32::MAX)) as u32;
        let part = |fraction: f64| (f64::from(room) * fraction) as u32;
        Some(SlcLayout {
            room,
            start_above: part(fold.start_above),
            stop_below: part(fold.stop_below),
            idle_after: fold.idle_after,
        })
    }
}

/// The SLC cache of one partition; all counts in flash pages.
#[derive(Clone)]
pub(crate) struct Slc {
    room: u32,
    start_above: u32,
    stop_below: u32,
    idle_after: Span,
    /// Pages waiting to be folded, or being folded.
    used: u32,
    /// Whether the cache was too full and has not been emptied far enough.
    forced: bool,
    /// Pages waiting on each chip.
    waiting: Vec<u32>,
    /// Whether the chip is folding.
    folding: Vec<bool>,
    /// Whether a look for silence is scheduled.
    timing: bool,
    /// Next page of a block to be programmed densely, for its page type.
    page: u16,
    pages_per_block: u16,
}

impl Slc {
    /// Empty; `None` where the device has no cache.
    pub fn new(layout: &PartitionLayout) -> Option<Slc> {
        let SlcLayout { room, start_above, stop_below, idle_after } = layout.slc?;
        Some(Slc {
            room,
            start_above,
            stop_below,
            idle_after,
            used: 0,
            forced: false,
            waiting: vec![0; layout.chips as usize],
            folding: vec![false; layout.chips as usize],
            timing: false,
            page: 0,
            pages_per_block: layout.geometry.pages_per_block as u16,
        })
    }

    /// Whether another page may be programmed fast.
    fn has_room(&self) -> bool {
        self.used < self.room
    }
}

impl Background for Slc {
    const ACTIVITY: Activity = Activity::Fold;

    fn generate(ftl: &mut Ftl, now: Time, quiet_since: Time, machine: &mut Machine) {
        ftl.slc_tick(now, quiet_since, machine);
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, quiet_since: Time, machine: &mut Machine) {
        ftl.slc_folded(now, operation, quiet_since, machine);
    }
}

impl Ftl {
    /// Takes a host program that is about to be queued for `chip` into the
    /// cache, if there is room.
    #[inline]
    pub(in crate::ftl) fn slc_take(&mut self, now: Time, chip: ChipId, machine: &mut Machine) -> bool {
        let Some(slc) = self.slc.as_mut().filter(|slc| slc.has_room()) else { return false };
        slc.used += 1;
        slc.waiting[(chip.0 - self.stripes.member(0, 0).0) as usize] += 1;
        slc.forced |= slc.used > slc.start_above;
        if !slc.timing {
            slc.timing = true;
            machine.schedule(
                now + slc.idle_after,
                Event::Background(u32::from(self.index), Activity::Fold as u32),
            );
        }
        if slc.forced {
            self.slc_fold(now, machine);
        }
        true
    }

    /// Power is cut: what was being folded waits, what was being programmed does
    /// not.
    pub(in crate::ftl) fn slc_cut_power(&mut self, broken_off: &[FlashOp]) {
        let Some(slc) = &mut self.slc else { return };
        slc.timing = false;
        for (waiting, folding) in slc.waiting.iter_mut().zip(&mut slc.folding) {
            *waiting += u32::from(std::mem::take(folding));
        }
        let first = self.stripes.member(0, 0).0;
        for operation in broken_off.iter().filter(|operation| operation.slc) {
            let waiting = &mut slc.waiting[(operation.chip.0 - first) as usize];
            if *waiting > 0 {
                *waiting -= 1;
                slc.used -= 1;
            }
        }
    }

    /// Power is back: looks for silence again.
    pub(in crate::ftl) fn slc_start_again(&mut self, now: Time, machine: &mut Machine) {
        let Some(slc) = self.slc.as_mut().filter(|slc| slc.used > 0 && !slc.timing) else { return };
        slc.timing = true;
        machine
            .schedule(now + slc.idle_after, Event::Background(u32::from(self.index), Activity::Fold as u32));
    }

    /// Looks whether the host has been silent since `quiet_since`.
    fn slc_tick(&mut self, now: Time, quiet_since: Time, machine: &mut Machine) {
        let slc = self.slc.as_mut().expect("only a cache schedules this");
        slc.timing = slc.used > 0;
        if !slc.timing {
            return;
        }
        let due = quiet_since + slc.idle_after;
        let next = if due <= now { now + slc.idle_after } else { due };
        machine.schedule(next, Event::Background(u32::from(self.index), Activity::Fold as u32));
        if due <= now {
            self.slc_fold(now, machine);
        }
    }

    /// Starts folding on every chip that has something to fold and is not at it.
    fn slc_fold(&mut self, now: Time, machine: &mut Machine) {
        let slc = self.slc.as_mut().expect("only a cache folds");
        for chip in 0..slc.waiting.len() {
            if slc.waiting[chip] == 0 || slc.folding[chip] {
                continue;
            }
            slc.waiting[chip] -= 1;
            slc.folding[chip] = true;
            slc.page = (slc.page + 1) % slc.pages_per_block;
            let operations = &mut machine.dispatcher.operations;
            let id =
                operations.create(now, Activity::Fold.program(), Task::Gc, self.index, Cause::Controller);
            let operation = &mut operations[id];
            operation.chip = ChipId(self.stripes.member(0, 0).0 + chip as u32);
            operation.page_in_block = slc.page;
            operation.owner = chip as u32;
            machine.enqueue(now, id);
        }
    }

    /// A page has been folded; goes on if the host has been silent since
    /// `quiet_since`, or must be served by a cache less full.
    fn slc_folded(&mut self, now: Time, operation: &FlashOp, quiet_since: Time, machine: &mut Machine) {
        let slc = self.slc.as_mut().expect("only a cache folds");
        slc.folding[operation.owner as usize] = false;
        slc.used -= 1;
        slc.forced &= slc.used > slc.stop_below;
        if slc.forced || quiet_since + slc.idle_after <= now {
            self.slc_fold(now, machine);
        }
    }
}
