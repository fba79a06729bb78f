//! Moves operations from request queues into slots and onto chips.

use flashkeel_engine::{Cause, EventQueue, Ledger, Time};

use super::held::Held;
use super::operation::Stage;
use super::queue::{ChipQueue, Pending};
use super::{Arbiter, OperationId, Operations, Signals};
use crate::address::ChipId;
use crate::flash::{Array, Job};

/// The scheduling subsystem: request queues, slots, and the policy over them.
pub struct Dispatcher {
    /// Every operation of the device.
    pub operations: Operations,
    array: Array,
    arbiter: Box<dyn Arbiter>,
    pub(super) queues: Vec<ChipQueue>,
    /// Slots per chip.
    depth: usize,
    /// Operations pending for, in slots of, and running on each chip.
    loads: Vec<u32>,
    held: Held,
    held_cursor: usize,
    arrivals: u64,
}

impl Dispatcher {
    /// Nothing queued, every chip idle.
    pub fn new(array: Array, arbiter: Box<dyn Arbiter>, chips: u32, depth: u32) -> Self {
        Dispatcher {
            operations: Operations::default(),
            array,
            arbiter,
            queues: (0..chips).map(|_| ChipQueue::new(depth as usize)).collect(),
            depth: depth as usize,
            loads: vec![0; chips as usize],
            held: Held::new(chips as usize),
            held_cursor: 0,
            arrivals: 0,
        }
    }

    /// Puts an operation whose chip and target are set into its request queue.
    #[inline]
    pub fn enqueue(&mut self, now: Time, id: OperationId, events: &mut EventQueue) {
        self.operations.leave_outside(now, id);
        let operation = &mut self.operations[id];
        operation.arrival = self.arrivals;
        operation.stage = Stage::Pending;
        self.arrivals += 1;
        let (chip, task) = (operation.chip, operation.task);
        let queue = &mut self.queues[chip.0 as usize];
        if operation.tracked {
            self.operations.readings[id.0 as usize] = queue.pending_meters[task as usize].read(now);
        }
        queue.push(&mut self.operations, id);
        self.loads[chip.0 as usize] += 1;
        self.dispatch(now, chip, events);
    }

    /// Runs a chip's due event; the operation that is done by it, if any. Its
    /// ledger is complete; the caller releases it.
    #[inline]
    pub fn step(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) -> Option<OperationId> {
        let running = self.queues[chip.0 as usize].slots[0];
        let tracked = self.operations[running].tracked;
        if !self.array.step(now, chip, events) {
            return None;
        }
        if tracked {
            let blame = self.array.blame(now, chip);
            self.operations.ledger_mut(running).add(&blame);
        }
        self.operations[running].stage = Stage::Done;
        let queue = &mut self.queues[chip.0 as usize];
        queue.slots.pop_front();
        self.loads[chip.0 as usize] -= 1;
        match queue.slots.front() {
            Some(&next) => self.start(now, next, events),
            None => queue.slot_meter.set_owner(now, None),
        }
        let task = self.operations[running].task;
        let was_open = self.arbiter.open_tasks();
        self.arbiter.completed(task);
        self.dispatch(now, chip, events);
        // Held chips wait for tasks that were closed; only one can have opened.
        if was_open >> task as u32 & 1 == 0 {
            self.retry_held(now, events);
        }
        Some(running)
    }

    /// The cause that those waiting for `chip` are told, if it is busy.
    #[inline]
    pub fn occupant(&self, chip: ChipId) -> Option<Cause> {
        self.array.occupant(chip)
    }

    /// Lets the policy adjust itself to the state of the FTL.
    pub fn control(&mut self, now: Time, signals: &Signals, events: &mut EventQueue) {
        self.arbiter.control(signals);
        self.retry_held(now, events);
    }

    /// The policy, to read its period and shares.
    pub fn arbiter(&self) -> &dyn Arbiter {
        &*self.arbiter
    }

    /// Number of operations queued for, or running on, a chip.
    #[inline]
    pub fn load(&self, chip: ChipId) -> u32 {
        self.loads[chip.0 as usize]
    }

    /// The blame of an operation in flight, up to `now`.
    pub fn ledger_at(&self, now: Time, id: OperationId) -> Ledger {
        let operation = &self.operations[id];
        let mut ledger = *self.operations.ledger(id);
        let queue = || &self.queues[operation.chip.0 as usize];
        let reading = &self.operations.readings[id.0 as usize];
        match operation.stage {
            Stage::Outside(cause) => ledger.charge_between(cause, operation.mark, now),
            Stage::Pending => {
                ledger.add_growth(&queue().pending_meters[operation.task as usize].read(now), reading)
            }
            Stage::Slotted => ledger.add_growth(&queue().slot_meter.read(now), reading),
            Stage::Running => ledger.add(&self.array.blame(now, operation.chip)),
            Stage::Done => {}
        }
        ledger
    }

    /// Fills the chip's free slots as far as the policy allows.
    fn dispatch(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let index = chip.0 as usize;
        loop {
            let queue = &self.queues[index];
            let waiting = queue.mask();
            if waiting == 0 || queue.slots.len() == self.depth {
                self.held.set(index, 0);
                break;
            }
            let mask = waiting & self.arbiter.open_tasks();
            if mask == 0 {
                self.held.set(index, waiting);
                break;
            }
            let pending = Pending { queue, operations: &self.operations, timing: self.array.timing(), mask };
            let task = self.arbiter.pick(chip, &pending);
            let id = self.queues[index].pop(&self.operations, task);
            self.issue(now, id, events);
        }
        // Whoever still waits is told why from now on.
        let queue = &mut self.queues[index];
        let mut mask = queue.mask();
        if mask != 0 {
            let full = queue.slots.len() == self.depth;
            let owner = if full { self.array.occupant(chip) } else { Some(Cause::SchedulerHold) };
            while mask != 0 {
                queue.pending_meters[mask.trailing_zeros() as usize].set_owner(now, owner);
                mask &= mask - 1;
            }
        }
    }

    /// Moves an operation from its request queue into a slot.
    #[inline]
    fn issue(&mut self, now: Time, id: OperationId, events: &mut EventQueue) {
        let operation = &self.operations[id];
        let (task, chip, tracked) = (operation.task, operation.chip, operation.tracked);
        let queue = &mut self.queues[chip.0 as usize];
        if tracked {
            let pending = queue.pending_meters[task as usize].read(now);
            let reading = self.operations.readings[id.0 as usize];
            self.operations.ledger_mut(id).add_growth(&pending, &reading);
            self.operations.readings[id.0 as usize] = queue.slot_meter.read(now);
        }
        self.operations[id].stage = Stage::Slotted;
        queue.slots.push_back(id);
        if queue.slots.len() == 1 {
            self.start(now, id, events);
        }
    }

    #[inline]
    fn start(&mut self, now: Time, id: OperationId, events: &mut EventQueue) {
        let operation = &mut self.operations[id];
        operation.stage = Stage::Running;
        let (chip, tracked) = (operation.chip, operation.tracked);
        let job = Job {
            command: operation.purpose.command(),
            page: u32::from(operation.page_in_block),
            slots: u32::from(operation.slots),
            cause: operation.purpose.cause(),
            tracked,
        };
        let meter = &mut self.queues[chip.0 as usize].slot_meter;
        if tracked {
            let growth = meter.read(now);
            let reading = self.operations.readings[id.0 as usize];
            self.operations.ledger_mut(id).add_growth(&growth, &reading);
        }
        meter.set_owner(now, Some(job.cause));
        self.array.start(now, chip, job, events);
    }

    /// Offers held chips again, in rotation, after the policy's limits moved.
    fn retry_held(&mut self, now: Time, events: &mut EventQueue) {
        let (chips, cursor) = (self.held.len(), self.held_cursor);
        for (mut first, end) in [(cursor, chips), (0, cursor)] {
            while let Some(chip) = self.held.next(first..end, self.arbiter.open_tasks()) {
                self.dispatch(now, ChipId(chip as u32), events);
                self.held_cursor = if chip + 1 == chips { 0 } else { chip + 1 };
                first = chip + 1;
            }
        }
    }
}
