//! Reads that overtake: on chips that can suspend, a read that arrives while
//! programs, erases or copybacks are queued for its chip goes before what is in
//! the chip's slots, and suspends what is running. How often that may happen to one
//! operation is limited, so that each ends however many reads come. Under a policy of
//! which reads pass slots they go before whatever has not begun, on any chip.

use flashkeel_engine::{EventQueue, Time};

use super::operation::OpState;
use super::queue::Pending;
use super::{Activity, Dispatcher, FlashOpId};
use crate::address::ChipId;
use crate::flash::{FlashCommand, Step};

impl Dispatcher {
    /// Whether an operation may go before what is queued for its chip: a read that the host
    /// waits for. Map pages that a background task needs are none, until the host needs them
    /// too: they would use up how often its erases may be suspended.
    pub(super) fn may_overtake(&self, id: FlashOpId) -> bool {
        let operation = &self.operations[id];
        let queue = &self.queues[operation.chip.0 as usize];
        let activity = operation.purpose.activity();
        let is_waited_for = matches!(activity, Activity::Host | Activity::Rebuild | Activity::Map)
            && !operation.task.is_background();
        let is_read = is_waited_for && operation.purpose.command() == FlashCommand::Read;
        if !is_read {
            return false;
        }
        if self.reads_pass_slots {
            return queue.slots_used > 0 || queue.on_express;
        }
        queue.suspendable > 0
            && queue.slots_used > 0
            && (self.arbiter.open_tasks(queue.partition) & queue.window) >> operation.task as u32 & 1 == 1
    }

    /// Whether what is in a chip's first slot may be suspended or overtaken once more.
    fn may_be_overtaken(&self, now: Time, chip: ChipId) -> bool {
        let queue = &self.queues[chip.0 as usize];
        let suspension = self.array.suspension();
        suspension.is_some_and(|suspension| suspension.allows(queue.overtaken, queue.first_overtaken, now))
    }

    /// Lets an arriving read overtake. It counts as issued for the policy.
    pub(super) fn overtake(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) {
        let (chip, task, tracked) = {
            let operation = &self.operations[id];
            (operation.chip, operation.task, operation.tracked)
        };
        let queue = &mut self.queues[chip.0 as usize];
        queue.push_front(&mut self.operations, id);
        let mask = 1 << task as u32;
        let (operations, timing) = (&self.operations, self.array.timing());
        let pending = Pending { queue, operations, timing, mask, only: None };
        self.arbiter.pick(chip, &pending);
        let queue = &mut self.queues[chip.0 as usize];
        queue.pop(&self.operations, task);
        queue.push_express(&mut self.operations, id);
        let operation = &mut self.operations[id];
        (operation.state, operation.mark) = (OpState::Slotted, now);
        if tracked {
            queue.slot_meter.begin_wait(now, self.operations.ledger_mut(id).waits());
        }
        self.try_suspend(now, chip, events);
    }

    /// Suspends what the chip is working on, where it can, if a read waits to overtake it.
    pub(super) fn try_suspend(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let may_again = self.may_be_overtaken(now, chip);
        let queue = &mut self.queues[chip.0 as usize];
        let may = queue.express_used > 0 && !queue.on_express && !queue.paused && may_again;
        if !may || !self.array.can_suspend(now, chip) {
            return;
        }
        self.array.suspend(now, chip, events);
        if let Some(log) = &mut self.log {
            log.rests(now, chip);
        }
        queue.note_overtaken(now);
        queue.paused = true;
        let first = queue.first_slot().expect("something is running");
        self.operations[first].state = OpState::Suspended;
        self.tell_waiting(now, chip);
    }

    /// A chip has suspended its operation, or has taken it up again.
    pub(super) fn turn(&mut self, now: Time, chip: ChipId, turned: Step, events: &mut EventQueue) {
        let queue = &mut self.queues[chip.0 as usize];
        if turned == Step::Suspended {
            queue.batch = queue.express_used;
            self.start_express(now, chip, events);
        } else {
            queue.paused = false;
            let first = queue.first_slot().expect("something was suspended");
            let operation = &mut self.operations[first];
            (operation.state, operation.mark) = (OpState::Running, now);
            if let Some(log) = &mut self.log {
                log.goes_on(now, chip, first, self.operations[first].purpose);
            }
            self.tell_waiting(now, chip);
            self.try_suspend(now, chip, events);
        }
    }

    /// A chip has become idle: reads that overtake come first, as often as its
    /// next operation may be overtaken.
    pub(super) fn go_on(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let may_again = self.may_be_overtaken(now, chip);
        let passes = self.reads_pass_slots;
        let queue = &mut self.queues[chip.0 as usize];
        queue.on_express = false;
        let may_go = queue.slots_used == 0 || may_again || passes && !queue.paused;
        if queue.batch == 0 && queue.express_used > 0 && may_go {
            queue.batch = queue.express_used;
            if queue.slots_used > 0 {
                queue.note_overtaken(now);
            }
        }
        if queue.batch > 0 {
            return self.start_express(now, chip, events);
        }
        if queue.paused {
            self.array.resume(now, chip, events);
            return self.tell_waiting(now, chip);
        }
        self.start_next(now, chip, events);
    }

    fn start_express(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let queue = &mut self.queues[chip.0 as usize];
        queue.batch -= 1;
        queue.on_express = true;
        let first = queue.first_express().expect("a batch of reads that overtake");
        self.at(chip).start_waiting(now, first, events);
        self.tell_pending(now, chip);
    }

    /// Tells those who wait for a chip that is suspending or resuming.
    fn tell_waiting(&mut self, now: Time, chip: ChipId) {
        let occupant = self.array.occupant(chip);
        self.queues[chip.0 as usize].slot_meter.set_owner(now, occupant);
        self.tell_pending(now, chip);
    }
}
