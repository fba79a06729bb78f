//! What waits to be folded in one partition.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Cause, Span, Time};

use super::SlcConfig;
use crate::address::ChipId;
use crate::flash::Geometry;
use crate::ftl::background::Background;
use crate::ftl::{Ftl, PartitionLayout, Shape};
use crate::machine::{DeviceEvent, Machine};
use crate::sched::{Activity, FlashOp, Task};

/// The SLC cache of one partition in plain numbers; all counts in flash pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlcLayout {
    room: u32,
    start_above: u32,
    stop_below: u32,
    idle_after: Span,
}

impl SlcLayout {
    /// Resolves a configuration for one of so many `partitions`; without room
    /// where there is no cache.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn resolve(config: &SlcConfig, geometry: &Geometry, partitions: u64) -> Result<SlcLayout, String> {
        let Some(fold) = config.policy().settings() else { return Ok(SlcLayout::default()) };
        let room = (fold.size.0 / partitions / geometry.page_bytes()).min(u64::from(u32::MAX)) as u32;
        if room == 0 {
            return Err(format!(
                "slc_cache.size is {}; each of {partitions} partition(s) needs at least {}, a flash page",
                fold.size,
                Bytes(geometry.page_bytes())
            ));
        }
        let part = |fraction: f64| (f64::from(room) * fraction) as u32;
        Ok(SlcLayout {
            room,
            start_above: part(fold.start_above),
            stop_below: part(fold.stop_below),
            idle_after: fold.idle_after,
        })
    }
}

/// The SLC cache of one partition; all counts in flash pages.
#[derive(Clone)]
pub(in crate::ftl) struct Slc {
    layout: SlcLayout,
    /// Pages being programmed fast, waiting to be folded, or being folded.
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

impl Background for Slc {
    const ACTIVITY: Activity = Activity::Fold;

    fn new(layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        Slc {
            layout: layout.slc,
            used: 0,
            forced: false,
            waiting: vec![0; layout.chips as usize],
            folding: vec![false; layout.chips as usize],
            timing: false,
            page: 0,
            pages_per_block: layout.geometry.pages_per_block as u16,
        }
    }

    /// What was being folded waits, what was being programmed does not.
    fn survive(&mut self, former: Self, _shape: &Shape, broken_off: &[FlashOp]) {
        *self = Slc { timing: false, ..former };
        for (waiting, folding) in self.waiting.iter_mut().zip(&mut self.folding) {
            *waiting += u32::from(std::mem::take(folding));
        }
        self.used -= broken_off.iter().filter(|operation| operation.slc).count() as u32;
    }

    /// Looks for silence again.
    fn start_again(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let slc = &mut ftl.tasks.slc;
        if slc.used > 0 {
            slc.look_at(now + slc.layout.idle_after, &ftl.shape, machine);
        }
    }

    /// Goes on where the cache is too full.
    fn wake(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if ftl.background_allowed && ftl.tasks.slc.forced {
            ftl.tasks.slc.fold(now, &ftl.shape, machine);
        }
    }

    /// Looks whether the host has been silent since `quiet_since`.
    fn generate(ftl: &mut Ftl, now: Time, quiet_since: Time, machine: &mut Machine) {
        let slc = &mut ftl.tasks.slc;
        slc.timing = false;
        if slc.used == 0 {
            return;
        }
        let due = quiet_since + slc.layout.idle_after;
        let is_due = due <= now;
        slc.look_at(if is_due { now + slc.layout.idle_after } else { due }, &ftl.shape, machine);
        if is_due && ftl.background_allowed {
            slc.fold(now, &ftl.shape, machine);
        }
    }

    /// A page has been folded; goes on if the host has been silent since
    /// `quiet_since`, or must be served by a cache less full.
    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, quiet_since: Time, machine: &mut Machine) {
        let slc = &mut ftl.tasks.slc;
        slc.folding[operation.owner as usize] = false;
        slc.used -= 1;
        slc.forced &= slc.used > slc.layout.stop_below;
        if ftl.background_allowed && (slc.forced || quiet_since + slc.layout.idle_after <= now) {
            slc.fold(now, &ftl.shape, machine);
        }
    }
}

impl Slc {
    /// Takes a program that is about to be queued into the cache, if there is room.
    #[inline]
    pub fn take(ftl: &mut Ftl, now: Time, machine: &mut Machine) -> bool {
        let Ftl { tasks, shape, background_allowed, .. } = ftl;
        let slc = &mut tasks.slc;
        if slc.used >= slc.layout.room {
            return false;
        }
        slc.used += 1;
        slc.forced |= slc.used > slc.layout.start_above;
        if !slc.timing {
            slc.look_at(now + slc.layout.idle_after, shape, machine);
        }
        if slc.forced && *background_allowed {
            slc.fold(now, shape, machine);
        }
        true
    }

    /// A program of the host's blocks is done: if the cache has taken it, it may be folded.
    #[inline]
    pub fn programmed(ftl: &mut Ftl, now: Time, operation: &FlashOp, machine: &mut Machine) {
        if !operation.slc {
            return;
        }
        let Ftl { tasks, shape, background_allowed, .. } = ftl;
        tasks.slc.waiting[shape.chip_in_partition(operation.chip)] += 1;
        if tasks.slc.forced && *background_allowed {
            tasks.slc.fold(now, shape, machine);
        }
    }

    /// Schedules the next look for silence.
    fn look_at(&mut self, time: Time, shape: &Shape, machine: &mut Machine) {
        self.timing = true;
        machine.schedule(time, DeviceEvent::Background(u32::from(shape.index), Activity::Fold as u32));
    }

    /// Starts folding on every chip that has something to fold and is not at it.
    fn fold(&mut self, now: Time, shape: &Shape, machine: &mut Machine) {
        for chip in 0..self.waiting.len() {
            if self.waiting[chip] == 0 || self.folding[chip] {
                continue;
            }
            self.waiting[chip] -= 1;
            self.folding[chip] = true;
            self.page = (self.page + 1) % self.pages_per_block;
            let operations = &mut machine.dispatcher.operations;
            let id =
                operations.create(now, Activity::Fold.program(), Task::Gc, shape.index, Cause::Controller);
            let operation = &mut operations[id];
            operation.chip = ChipId(shape.stripes.member(0, 0).0 + chip as u32);
            operation.page_in_block = self.page;
            operation.owner = chip as u32;
            machine.enqueue(now, id);
        }
    }
}
