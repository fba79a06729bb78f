//! Request queues and slots of one chip.

use std::collections::VecDeque;

use flashkeel_engine::Span;

use super::{OperationId, Operations, Task};
use crate::address::NONE;
use crate::flash::{Meter, Timing};

/// A queue of operations linked through the pool.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    head: u32,
    tail: u32,
}

/// What waits for one chip.
#[derive(Clone, Debug)]
pub struct ChipQueue {
    pending: [Fifo; Task::COUNT],
    mask: u32,
    /// Operations given to the chip's controller; the first is running.
    pub(super) slots: VecDeque<OperationId>,
    /// Blame of those in slots behind the running operation.
    pub(super) slot_meter: Meter,
    /// Blame of those still pending, by task.
    pub(super) pending_meters: [Meter; Task::COUNT],
}

impl ChipQueue {
    pub(super) fn new(depth: usize) -> Self {
        ChipQueue {
            pending: [Fifo { head: NONE, tail: NONE }; Task::COUNT],
            mask: 0,
            slots: VecDeque::with_capacity(depth),
            slot_meter: Meter::default(),
            pending_meters: std::array::from_fn(|_| Meter::default()),
        }
    }

    /// Bit set of the tasks that have something pending.
    #[inline]
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    #[inline]
    pub(super) fn push(&mut self, operations: &mut Operations, id: OperationId) {
        let task = operations[id].task as usize;
        let queue = &mut self.pending[task];
        if queue.tail == NONE {
            queue.head = id.0;
        } else {
            operations[OperationId(queue.tail)].next = id.0;
        }
        queue.tail = id.0;
        operations[id].next = NONE;
        self.mask |= 1 << task;
    }

    #[inline]
    pub(super) fn pop(&mut self, operations: &Operations, task: Task) -> OperationId {
        let queue = &mut self.pending[task as usize];
        let id = OperationId(queue.head);
        queue.head = operations[id].next;
        if queue.head == NONE {
            queue.tail = NONE;
            self.mask &= !(1 << task as u32);
        }
        id
    }
}

/// The heads of one chip's request queues, as a policy sees them.
pub struct Pending<'a> {
    pub(super) queue: &'a ChipQueue,
    pub(super) operations: &'a Operations,
    pub(super) timing: &'a Timing,
    /// Bit set of the tasks to choose from; never empty.
    pub mask: u32,
}

impl Pending<'_> {
    /// The tasks to choose from.
    #[inline]
    pub fn tasks(&self) -> impl Iterator<Item = Task> + use<> {
        let mask = self.mask;
        Task::ALL.iter().copied().filter(move |&task| mask >> task as u32 & 1 == 1)
    }

    /// When the task's first operation arrived, as a sequence over all tasks.
    #[inline]
    pub fn arrival(&self, task: Task) -> u64 {
        self.operations[OperationId(self.queue.pending[task as usize].head)].arrival
    }

    /// How long the chip will work on the task's first operation if its
    /// channel is free.
    #[inline]
    pub fn service(&self, task: Task) -> Span {
        use crate::flash::Command;
        let operation = &self.operations[OperationId(self.queue.pending[task as usize].head)];
        let transfer = self.timing.transfer(u32::from(operation.slots));
        match operation.purpose.command() {
            Command::Read => self.timing.read(u32::from(operation.page_in_block)) + transfer,
            Command::Program => self.timing.program(u32::from(operation.page_in_block)) + transfer,
            Command::Erase => self.timing.erase(),
        }
    }
}
