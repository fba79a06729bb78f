//! Request queues and slots of one chip.

use flashkeel_engine::{Span, Time};

use super::{ALL_TASKS, FlashOp, FlashOpId, FlashOps, Purpose, Task};
use crate::address::NONE;
use crate::flash::{Meter, Timing};

/// A queue of operations linked through the pool.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    head: u32,
    tail: u32,
}

impl Fifo {
    const EMPTY: Fifo = Fifo { head: NONE, tail: NONE };

    #[inline]
    fn push(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        if self.head == NONE {
            self.head = id.0;
        } else {
            operations[FlashOpId(self.tail)].next = id.0;
        }
        self.tail = id.0;
        operations[id].next = NONE;
    }

    /// Puts an operation among the others by its arrival.
    fn insert(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let arrival = operations[id].arrival;
        let before = self.last(operations, |other| operations[other].arrival < arrival);
        let next = self.after(operations, before);
        if next == NONE {
            return self.push(operations, id);
        }
        operations[id].next = next;
        match before {
            None => self.head = id.0,
            Some(before) => operations[before].next = id.0,
        }
    }

    /// Takes an operation out of the queue that holds it.
    fn remove(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let before = self.last(operations, |other| other != id);
        let next = operations[id].next;
        match before {
            None => self.head = next,
            Some(before) => operations[before].next = next,
        }
        if self.tail == id.0 {
            self.tail = before.map_or(NONE, |before| before.0);
        }
    }

    /// The last of those at the beginning of the queue of which `holds` is true.
    fn last(&self, operations: &FlashOps, holds: impl Fn(FlashOpId) -> bool) -> Option<FlashOpId> {
        let mut last = None;
        loop {
            let next = self.after(operations, last);
            if next == NONE || !holds(FlashOpId(next)) {
                return last;
            }
            last = Some(FlashOpId(next));
        }
    }

    /// What comes after an operation of the queue, or first.
    fn after(&self, operations: &FlashOps, id: Option<FlashOpId>) -> u32 {
        id.map_or(self.head, |id| operations[id].next)
    }

    /// Takes the first out of a queue that is not empty.
    #[inline]
    fn pop(&mut self, operations: &FlashOps) -> FlashOpId {
        let id = FlashOpId(self.head);
        self.head = operations[id].next;
        id
    }
}

/// Background work queued for, in slots of, and running on a chip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// How long it occupies the chip, if its channel is free.
    pub service: Span,
    /// Operations that empty a block,
    pub moves: u32,
    /// and those that then erase it.
    pub erases: u32,
}

impl Background {
    pub fn add(&mut self, service: Span, purpose: Purpose) {
        self.service += service;
        let empties = u32::from(purpose.activity().empties_blocks());
        *self.counter(purpose) += empties;
    }

    pub fn remove(&mut self, service: Span, purpose: Purpose) {
        self.service = Span(self.service.0 - service.0);
        let empties = u32::from(purpose.activity().empties_blocks());
        *self.counter(purpose) -= empties;
    }

    fn counter(&mut self, purpose: Purpose) -> &mut u32 {
        if purpose.is_erase() { &mut self.erases } else { &mut self.moves }
    }
}

/// What waits for one chip.
#[derive(Clone, Debug)]
pub struct ChipQueue {
    /// The chip's channel.
    pub(super) channel: u32,
    /// The partition that has the chip.
    pub(super) partition: u32,
    pub(super) background: Background,
    /// Bit set of the tasks that the present window lets issue.
    pub(super) window: u32,
    /// Bit set of those of them that the policy holds back although a slot is free.
    pub(super) held: u32,
    pending: [Fifo; Task::COUNT],
    mask: u32,
    /// Operations given to the chip's controller; the first is running.
    slots: Fifo,
    pub(super) slots_used: u32,
    /// Operations in slots and pending that a chip can suspend.
    pub(super) suspendable: u32,
    /// Reads that may overtake what is in slots.
    express: Fifo,
    pub(super) express_used: u32,
    /// Reads that the chip still serves before it turns to its slots.
    pub(super) batch: u32,
    /// Whether the chip is working on a read that overtook.
    pub(super) on_express: bool,
    /// Whether the operation in the first slot is suspended.
    pub(super) paused: bool,
    /// How often the operation in the first slot has been overtaken.
    pub(super) overtaken: u32,
    /// When it was overtaken first.
    pub(super) first_overtaken: Time,
    /// Blame of those in slots behind the running operation.
    pub(super) slot_meter: Meter,
    /// Blame of those still pending, of whatever task: what they wait for is
    /// the same.
    pub(super) pending_meter: Meter,
}

impl ChipQueue {
    pub(super) fn new(channel: u32, partition: u32) -> Self {
        ChipQueue {
            channel,
            partition,
            background: Background::default(),
            window: ALL_TASKS,
            held: 0,
            pending: [Fifo::EMPTY; Task::COUNT],
            mask: 0,
            slots: Fifo::EMPTY,
            slots_used: 0,
            suspendable: 0,
            express: Fifo::EMPTY,
            express_used: 0,
            batch: 0,
            on_express: false,
            paused: false,
            overtaken: 0,
            first_overtaken: Time::ZERO,
            slot_meter: Meter::default(),
            pending_meter: Meter::default(),
        }
    }

    /// Notes that the operation in the first slot is overtaken once more.
    pub(super) fn note_overtaken(&mut self, now: Time) {
        if self.overtaken == 0 {
            self.first_overtaken = now;
        }
        self.overtaken += 1;
    }

    /// Bit set of the tasks that have something pending.
    #[inline]
    pub(super) fn mask(&self) -> u32 {
        self.mask
    }

    #[inline]
    pub(super) fn push(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let task = operations[id].task;
        self.pending[task as usize].push(operations, id);
        self.mask |= 1 << task as u32;
        self.count_suspendable(operations[id].purpose);
    }

    /// Counts an operation that has come, if a chip can suspend it.
    #[inline]
    pub(super) fn count_suspendable(&mut self, purpose: Purpose) {
        self.suspendable += u32::from(purpose.command().is_suspendable());
    }

    /// Puts an operation before the others of its task.
    #[inline]
    pub(super) fn push_front(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let task = operations[id].task;
        let queue = &mut self.pending[task as usize];
        operations[id].next = queue.head;
        if queue.head == NONE {
            queue.tail = id.0;
        }
        queue.head = id.0;
        self.mask |= 1 << task as u32;
    }

    #[inline]
    pub(super) fn pop(&mut self, operations: &FlashOps, task: Task) -> FlashOpId {
        let queue = &mut self.pending[task as usize];
        let id = queue.pop(operations);
        if queue.head == NONE {
            self.mask &= !(1 << task as u32);
        }
        id
    }

    /// Takes a pending operation out of the queue of its task.
    pub(super) fn withdraw(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let task = operations[id].task;
        let queue = &mut self.pending[task as usize];
        queue.remove(operations, id);
        if queue.head == NONE {
            self.mask &= !(1 << task as u32);
        }
    }

    /// Puts an operation that was pending into the queue of its task, where it waits by its
    /// arrival.
    pub(super) fn insert(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        let task = operations[id].task;
        self.pending[task as usize].insert(operations, id);
        self.mask |= 1 << task as u32;
    }

    /// Puts an operation into a free slot.
    #[inline]
    pub(super) fn fill_slot(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        self.slots.push(operations, id);
        self.slots_used += 1;
    }

    /// Takes a read that waits in a slot out of it.
    pub(super) fn leave_slot(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        if self.first_slot() == Some(id) {
            self.overtaken = 0;
        }
        self.slots.remove(operations, id);
        self.slots_used -= 1;
    }

    /// Takes the running operation out of its slot.
    #[inline]
    pub(super) fn free_slot(&mut self, operations: &FlashOps) -> FlashOpId {
        self.slots_used -= 1;
        let id = self.slots.pop(operations);
        self.suspendable -= u32::from(operations[id].purpose.command().is_suspendable());
        id
    }

    /// Puts a read behind those that overtake.
    #[inline]
    pub(super) fn push_express(&mut self, operations: &mut FlashOps, id: FlashOpId) {
        self.express.push(operations, id);
        self.express_used += 1;
    }

    /// Takes out the read that has overtaken and is done.
    #[inline]
    pub(super) fn pop_express(&mut self, operations: &FlashOps) -> FlashOpId {
        self.express_used -= 1;
        self.express.pop(operations)
    }

    /// The first of the reads that overtake, if any.
    #[inline]
    pub(super) fn first_express(&self) -> Option<FlashOpId> {
        (self.express_used > 0).then_some(FlashOpId(self.express.head))
    }

    /// The operations in slots, the running one first.
    pub(super) fn slots<'a>(&self, operations: &'a FlashOps) -> impl Iterator<Item = FlashOpId> + use<'a> {
        let next = |id: &FlashOpId| Some(FlashOpId(operations[*id].next));
        std::iter::successors(self.first_slot(), next).take(self.slots_used as usize)
    }

    /// How many operations of a bit set of tasks are pending.
    pub(super) fn pending_in(&self, tasks: u32, operations: &FlashOps) -> u32 {
        let of = |task: &Task| {
            let queue = self.pending[*task as usize];
            let first = (queue.head != NONE).then_some(FlashOpId(queue.head));
            std::iter::successors(first, |id| {
                let next = operations[*id].next;
                (next != NONE).then_some(FlashOpId(next))
            })
            .count() as u32
        };
        Task::ALL.iter().filter(|task| (tasks & self.mask) >> **task as u32 & 1 == 1).map(of).sum()
    }

    /// The operation in the first slot, if any.
    #[inline]
    pub(super) fn first_slot(&self) -> Option<FlashOpId> {
        (self.slots_used > 0).then_some(FlashOpId(self.slots.head))
    }
}

/// The heads of one chip's request queues, as a policy sees them.
pub struct Pending<'a> {
    pub(super) queue: &'a ChipQueue,
    pub(super) operations: &'a FlashOps,
    pub(super) timing: &'a Timing,
    /// Bit set of the tasks to choose from; never empty.
    pub mask: u32,
    /// The operation to take, where it is the only one; it is in no queue.
    pub(super) only: Option<FlashOpId>,
}

impl Pending<'_> {
    /// The partition that has the chip.
    #[inline]
    pub fn partition(&self) -> u32 {
        self.queue.partition
    }

    /// The tasks to choose from.
    #[inline]
    pub fn tasks(&self) -> impl Iterator<Item = Task> + use<> {
        let mut left = self.mask;
        std::iter::from_fn(move || {
            let task = *Task::ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(task)
        })
    }

    /// The task's first operation.
    #[inline]
    fn first(&self, task: Task) -> &FlashOp {
        let first = || FlashOpId(self.queue.pending[task as usize].head);
        &self.operations[self.only.unwrap_or_else(first)]
    }

    /// When the task's first operation arrived, as a sequence over all tasks.
    #[inline]
    pub fn arrival(&self, task: Task) -> u64 {
        self.first(task).arrival
    }

    /// How long the chip will work on the task's first operation if its
    /// channel is free.
    #[inline]
    pub fn service(&self, task: Task) -> Span {
        self.first(task).service(self.timing)
    }
}
