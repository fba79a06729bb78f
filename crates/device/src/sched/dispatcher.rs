//! Moves operations from request queues into slots and onto chips.

use flashkeel_engine::{Cause, EventQueue, Ledger, Time};

use super::held::Held;
use super::operation::Stage;
use super::queue::{ChipQueue, Pending};
use super::{Arbiter, OperationId, Operations, Signals};
use crate::address::ChipId;
use crate::flash::{Array, Job};

/// The scheduling subsystem: request queues, slots, and the policy over them.
#[derive(Clone)]
pub struct Dispatcher {
    /// Every operation of the device.
    pub operations: Operations,
    array: Array,
    arbiter: Box<dyn Arbiter>,
    pub(super) queues: Vec<ChipQueue>,
    /// Slots per chip.
    depth: u32,
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
            queues: (0..chips).map(|_| ChipQueue::new()).collect(),
            depth,
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
        operation.stage = Stage::Arriving;
        self.arrivals += 1;
        let (chip, task) = (operation.chip, operation.task);
        self.queues[chip.0 as usize].push(&mut self.operations, id);
        self.loads[chip.0 as usize] += 1;
        self.dispatch(now, chip, events);
        let operation = &mut self.operations[id];
        if operation.stage == Stage::Arriving {
            operation.stage = Stage::Pending;
            if operation.tracked {
                let meter = &self.queues[chip.0 as usize].pending_meters[task as usize];
                meter.begin_wait(now, self.operations.ledger_mut(id));
            }
        }
    }

    /// Runs a chip's due event; the operation that is done by it, if any. Its
    /// ledger is complete; the caller releases it.
    #[inline]
    pub fn step(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) -> Option<OperationId> {
        if !self.array.step(now, chip, events) {
            return None;
        }
        let queue = &mut self.queues[chip.0 as usize];
        let done = queue.free_slot(&self.operations);
        let operation = &mut self.operations[done];
        operation.stage = Stage::Done;
        let task = operation.task;
        if operation.tracked {
            self.array.charge(now, chip, self.operations.ledger_mut(done));
        }
        self.loads[chip.0 as usize] -= 1;
        match queue.first_slot() {
            Some(next) => {
                if self.operations[next].tracked {
                    queue.slot_meter.end_wait(now, self.operations.ledger_mut(next));
                }
                self.start(now, next, events);
            }
            None => queue.slot_meter.set_owner(now, None),
        }
        let was_open = self.arbiter.open_tasks();
        self.arbiter.completed(task);
        self.dispatch(now, chip, events);
        // Held chips wait for tasks that were closed; only one can have opened.
        if was_open >> task as u32 & 1 == 0 {
            self.retry_held(now, events);
        }
        Some(done)
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
        match operation.stage {
            Stage::Outside(cause) => ledger.charge_between(cause, operation.mark, now),
            Stage::Pending => queue().pending_meters[operation.task as usize].end_wait(now, &mut ledger),
            Stage::Slotted => queue().slot_meter.end_wait(now, &mut ledger),
            Stage::Running => self.array.charge(now, operation.chip, &mut ledger),
            Stage::Arriving | Stage::Done => {}
        }
        ledger
    }

    /// Fills the chip's free slots as far as the policy allows.
    fn dispatch(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let index = chip.0 as usize;
        loop {
            let queue = &self.queues[index];
            let waiting = queue.mask();
            if waiting == 0 || queue.slots_used == self.depth {
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
            let full = queue.slots_used == self.depth;
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
        if tracked && operation.stage == Stage::Pending {
            queue.pending_meters[task as usize].end_wait(now, self.operations.ledger_mut(id));
        }
        queue.fill_slot(&mut self.operations, id);
        if queue.slots_used == 1 {
            return self.start(now, id, events);
        }
        self.operations[id].stage = Stage::Slotted;
        if tracked {
            queue.slot_meter.begin_wait(now, self.operations.ledger_mut(id));
        }
    }

    /// Lets the chip begin with the operation in its first slot.
    #[inline]
    fn start(&mut self, now: Time, id: OperationId, events: &mut EventQueue) {
        let operation = &mut self.operations[id];
        operation.stage = Stage::Running;
        let chip = operation.chip;
        let job = Job {
            command: operation.purpose.command(),
            page: u32::from(operation.page_in_block),
            slots: u32::from(operation.slots),
            cause: operation.purpose.cause(),
            tracked: operation.tracked,
            slc: operation.slc,
        };
        self.queues[chip.0 as usize].slot_meter.set_owner(now, Some(job.cause));
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
