//! Moves operations from request queues into slots and onto chips.

use flashkeel_engine::{Cause, EventQueue, Ledger, Time};

use super::chip_log::{ChipLog, Interval};
use super::held::Held;
use super::operation::OpState;
use super::queue::{ChipQueue, Pending};
use super::{Arbiter, FlashOp, FlashOpId, FlashOps, Signals, Task};
use crate::address::ChipId;
use crate::flash::{Array, Job, Step, Timing};

/// The scheduling subsystem: request queues, slots, and the policy over them.
#[derive(Clone)]
pub struct Dispatcher {
    /// Every operation of the device.
    pub operations: FlashOps,
    pub(super) array: Array,
    pub(super) arbiter: Box<dyn Arbiter>,
    pub(super) queues: Vec<ChipQueue>,
    /// Slots per chip.
    depth: u32,
    /// Operations pending for, in slots of, and running on each chip, but for those that its
    /// window keeps back: side by side, because each program compares those of many chips.
    pub(super) loads: Vec<u32>,
    /// Operations of the host queued for, in slots of, and running on the
    /// chips of each channel.
    host_loads: Vec<u32>,
    /// Whether reads may overtake what is in slots: chips can suspend, or the policy wants it.
    overtakes: bool,
    /// Whether they do so whatever it is, but for operations that are suspended already.
    pub(super) reads_pass_slots: bool,
    pub(super) held: Held,
    arrivals: u64,
    /// Notes what chips do, while somebody wants to see it.
    pub(super) log: Option<Box<ChipLog>>,
    /// Operations that were issued at once; none is where this is none.
    #[cfg(test)]
    pub at_once: Option<u64>,
}

impl Dispatcher {
    /// Nothing queued, every chip idle; each of `partitions` has as many, one after another.
    pub fn new(array: Array, arbiter: Box<dyn Arbiter>, chips: u32, depth: u32, partitions: u32) -> Self {
        let queue = |chip| ChipQueue::new(chip / array.chips_per_channel(), chip / (chips / partitions));
        Dispatcher {
            operations: FlashOps::default(),
            overtakes: array.suspension().is_some() || arbiter.reads_pass_slots(),
            reads_pass_slots: arbiter.reads_pass_slots(),
            host_loads: vec![0; (chips / array.chips_per_channel()) as usize],
            queues: (0..chips).map(queue).collect(),
            array,
            arbiter,
            depth,
            loads: vec![0; chips as usize],
            held: Held::new(chips as usize, partitions as usize),
            arrivals: 0,
            log: None,
            #[cfg(test)]
            at_once: Some(0),
        }
    }

    /// Puts an operation whose chip and target are set into its request queue.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) {
        self.operations.leave_outside(now, id);
        let operation = &mut self.operations[id];
        operation.arrival = self.arrivals;
        operation.state = OpState::Arriving;
        operation.mark = now;
        self.arrivals += 1;
        let (chip, task) = (operation.chip, operation.task);
        if let Some(log) = &mut self.log {
            log.arrives(now, chip, operation.purpose);
        }
        let queue = &mut self.queues[chip.0 as usize];
        self.loads[chip.0 as usize] += 1;
        if task == Task::Host {
            self.host_loads[queue.channel as usize] += 1;
        } else if task.is_background() {
            operation.span = operation.service(self.array.timing());
            queue.background.add(operation.span, operation.purpose);
        }
        if self.overtakes && self.may_overtake(id) {
            return self.overtake(now, id, events);
        }
        if self.issue_at_once(now, id, events) {
            return;
        }
        self.queues[chip.0 as usize].push(&mut self.operations, id);
        self.dispatch_pending(now, chip, events);
        let operation = &mut self.operations[id];
        if operation.state == OpState::Arriving {
            operation.state = OpState::Pending;
            self.loads[chip.0 as usize] -= u32::from(!self.lets(chip, task));
            let operation = &self.operations[id];
            if operation.tracked {
                let meter = &self.queues[chip.0 as usize].pending_meter;
                meter.begin_wait(now, self.operations.ledger_mut(id).waits());
            }
        }
    }

    /// Gives an operation that arrives a free slot of its chip at once, if nothing is
    /// pending there and the policy lets it go. What is pushed and dispatched ends as
    /// the same.
    #[inline(always)]
    fn issue_at_once(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) -> bool {
        let Dispatcher { queues, operations, array, log, arbiter, depth, .. } = self;
        let FlashOp { chip, task, purpose, .. } = operations[id];
        let queue = &mut queues[chip.0 as usize];
        let (mask, partition) = (1 << task as u32, queue.partition);
        let open = arbiter.open_tasks(partition) & queue.window;
        if queue.mask() != 0 || queue.slots_used == *depth || open & mask == 0 {
            return false;
        }
        #[cfg(test)]
        match &mut self.at_once {
            Some(count) => *count += 1,
            None => return false,
        }
        queue.count_suspendable(purpose);
        arbiter.pick(chip, &Pending { queue, operations, timing: array.timing(), mask, only: Some(id) });
        At { chip, queue, operations, array, log }.issue(now, id, events);
        true
    }

    /// Makes an operation that nobody is charged for one of `task`, unless its chip has it
    /// already; that of a read that overtakes by it too, as long as the chip has not begun.
    pub fn promote(&mut self, now: Time, id: FlashOpId, task: Task, events: &mut EventQueue) {
        let FlashOp { chip, state, task: former, span, purpose, tracked, .. } = self.operations[id];
        debug_assert!(!tracked, "the wait of a tracked operation belongs to its task");
        if former == task || !matches!(state, OpState::Outside(_) | OpState::Pending | OpState::Slotted) {
            return;
        }
        self.operations[id].task = task;
        if matches!(state, OpState::Outside(_)) {
            return;
        }
        let overtakes = self.overtakes && self.may_overtake(id);
        self.operations[id].task = former;
        if state == OpState::Slotted && !overtakes {
            return;
        }
        if state == OpState::Pending && !self.lets(chip, former) && self.lets(chip, task) {
            self.loads[chip.0 as usize] += 1;
        }
        let queue = &mut self.queues[chip.0 as usize];
        if former.is_background() && !task.is_background() {
            queue.background.remove(span, purpose);
        }
        let mut opened = 0;
        if state == OpState::Slotted {
            queue.leave_slot(&mut self.operations, id);
            opened = self.arbiter.completed(queue.partition, former);
        } else {
            queue.withdraw(&mut self.operations, id);
        }
        self.operations[id].task = task;
        if overtakes {
            self.overtake(now, id, events);
        } else {
            queue.insert(&mut self.operations, id);
        }
        self.dispatch(now, chip, events);
        self.retry_opened(now, chip, opened, events);
    }

    /// Runs a chip's due event; the operation that is done by it, if any. Its
    /// ledger is complete; the caller releases it.
    #[inline(always)]
    pub fn step(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) -> Option<FlashOpId> {
        match self.array.step(now, chip, events) {
            Step::Working => {
                if self.overtakes {
                    self.try_suspend(now, chip, events);
                }
                return None;
            }
            Step::Done => {
                if let Some(log) = &mut self.log {
                    log.ends(now, chip);
                }
            }
            turned @ (Step::Suspended | Step::Resumed) => {
                self.turn(now, chip, turned, events);
                return None;
            }
        }
        let queue = &mut self.queues[chip.0 as usize];
        let done = if queue.on_express {
            queue.pop_express(&self.operations)
        } else {
            queue.overtaken = 0;
            queue.free_slot(&self.operations)
        };
        let operation = &mut self.operations[done];
        operation.state = OpState::Done;
        let (task, partition) = (operation.task, queue.partition);
        self.loads[chip.0 as usize] -= 1;
        if task == Task::Host {
            self.host_loads[queue.channel as usize] -= 1;
        } else if task.is_background() {
            queue.background.remove(operation.span, operation.purpose);
        }
        if operation.tracked {
            self.array.charge(now, chip, self.operations.ledger_mut(done));
        }
        if self.overtakes {
            self.go_on(now, chip, events);
        } else {
            self.start_next(now, chip, events);
        }
        let opened = self.arbiter.completed(partition, task);
        self.dispatch(now, chip, events);
        self.retry_opened(now, chip, opened, events);
        Some(done)
    }

    /// Starts the operation in the first slot of an idle chip, if there is one.
    #[inline(always)]
    pub(super) fn start_next(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let mut at = self.at(chip);
        match at.queue.first_slot() {
            Some(next) => at.start_waiting(now, next, events),
            None => at.queue.slot_meter.set_owner(now, None),
        }
    }

    /// One chip's part of what is here.
    #[inline(always)]
    pub(super) fn at(&mut self, chip: ChipId) -> At<'_> {
        let Dispatcher { queues, operations, array, log, .. } = self;
        At { chip, queue: &mut queues[chip.0 as usize], operations, array, log }
    }

    /// The cause that those waiting for `chip` are told, if it is busy.
    #[inline]
    pub fn occupant(&self, chip: ChipId) -> Option<Cause> {
        self.array.occupant(chip)
    }

    /// From now on notes what chips do in a window of time.
    pub fn watch(&mut self, from: Time, to: Time) {
        self.log = Some(Box::new(ChipLog::new(from, to, self.queues.len())));
    }

    /// The log of what is watched, to be told for whom operations are.
    #[inline]
    pub fn log_mut(&mut self) -> Option<&mut ChipLog> {
        self.log.as_deref_mut()
    }

    /// Notes that some chips are in a deterministic window from now on, or in none, if that
    /// is watched.
    pub fn watch_window(&mut self, now: Time, chips: std::ops::Range<u32>, is_deterministic: bool) {
        if let Some(log) = &mut self.log {
            chips.for_each(|chip| log.window(now, ChipId(chip), is_deterministic));
        }
    }

    /// Goes on watching what `former` has watched until now, when all its work ends.
    pub fn watch_on(&mut self, now: Time, former: &mut Dispatcher) {
        self.log = former.log.take();
        if let Some(log) = &mut self.log {
            log.all_rest(now);
        }
    }

    /// What chips have done in the window that is watched.
    pub fn watched(&self) -> &[Interval] {
        self.log.as_ref().map_or(&[], |log| log.intervals())
    }

    /// The operation times in force.
    pub fn timing(&self) -> &Timing {
        self.array.timing()
    }

    /// Operations of the host that are queued for, or running on, the chips
    /// of a chip's channel.
    #[inline]
    pub fn host_load(&self, chip: ChipId) -> u32 {
        self.host_loads[self.queues[chip.0 as usize].channel as usize]
    }

    /// Lets the policy adjust itself to the state of a partition's FTL.
    pub fn control(&mut self, now: Time, partition: u32, signals: &Signals, events: &mut EventQueue) {
        self.arbiter.control(partition, signals);
        self.retry_held(now, partition, events);
    }

    /// The policy, to read its period and shares.
    pub fn arbiter(&self) -> &dyn Arbiter {
        &*self.arbiter
    }

    /// Numbers of operations queued for, or running on, `count` chips from `first` on.
    #[inline]
    pub fn loads(&self, first: ChipId, count: u32) -> &[u32] {
        &self.loads[first.0 as usize..][..count as usize]
    }

    /// Sets `ledger` to the blame of an operation in flight, up to `now`.
    #[inline]
    pub fn read_ledger(&self, now: Time, id: FlashOpId, ledger: &mut Ledger) {
        let operation = &self.operations[id];
        *ledger = *self.operations.ledger(id);
        let queue = || &self.queues[operation.chip.0 as usize];
        match operation.state {
            OpState::Outside(cause) => ledger.charge_between(cause, operation.mark, now),
            OpState::Pending => queue().pending_meter.end_wait(now, ledger.waits()),
            OpState::Slotted => queue().slot_meter.end_wait(now, ledger.waits()),
            OpState::Running => self.array.charge(now, operation.chip, ledger),
            OpState::Suspended => self.array.charge_paused(now, operation.chip, ledger),
            OpState::Arriving | OpState::Done => {}
        }
    }

    /// Who has owned all the time of a tracked operation since an instant, if it is one
    /// cause.
    #[inline]
    pub fn owner_since(&self, id: FlashOpId, instant: Time) -> Option<Cause> {
        let &FlashOp { chip, state, mark, .. } = &self.operations[id];
        let queue = || &self.queues[chip.0 as usize];
        match state {
            _ if mark > instant => None,
            OpState::Outside(cause) => Some(cause),
            OpState::Pending => queue().pending_meter.owner_since(instant),
            OpState::Slotted => queue().slot_meter.owner_since(instant),
            OpState::Running => self.array.owner_since(instant, chip),
            OpState::Suspended | OpState::Arriving | OpState::Done => None,
        }
    }

    /// Fills the chip's free slots as far as the policy allows.
    #[inline(always)]
    pub(super) fn dispatch(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let queue = &self.queues[chip.0 as usize];
        if queue.mask() != 0 || queue.held != 0 {
            self.dispatch_pending(now, chip, events);
        }
    }

    #[inline(always)]
    fn dispatch_pending(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let Dispatcher { queues, operations, array, log, arbiter, held, depth, .. } = self;
        let mut at = At { chip, queue: &mut queues[chip.0 as usize], operations, array, log };
        let partition = at.queue.partition;
        let window = at.queue.window;
        loop {
            let waiting = at.queue.mask() & window;
            let has_room = at.queue.slots_used < *depth;
            let mask = if waiting != 0 && has_room { waiting & arbiter.open_tasks(partition) } else { 0 };
            if mask == 0 {
                let kept = if has_room { waiting } else { 0 };
                if std::mem::replace(&mut at.queue.held, kept) != kept {
                    held.set(chip.0 as usize, kept);
                }
                break;
            }
            let timing = at.array.timing();
            let (queue, operations) = (&*at.queue, &*at.operations);
            let task = arbiter.pick(chip, &Pending { queue, operations, timing, mask, only: None });
            let id = at.queue.pop(at.operations, task);
            at.issue(now, id, events);
        }
        if at.queue.mask() != 0 {
            at.tell_pending(now, *depth);
        }
    }

    /// Tells those who are still pending for a chip why they wait from now on.
    pub(super) fn tell_pending(&mut self, now: Time, chip: ChipId) {
        let depth = self.depth;
        let mut at = self.at(chip);
        if at.queue.mask() != 0 {
            at.tell_pending(now, depth);
        }
    }

    /// Offers held chips of a chip's partition again where one of these tasks is open: they wait
    /// for tasks that were closed; only one can have opened, and may have used its chance already.
    #[inline(always)]
    pub(super) fn retry_opened(&mut self, now: Time, chip: ChipId, opened: u32, events: &mut EventQueue) {
        let partition = self.queues[chip.0 as usize].partition;
        if opened != 0 && self.arbiter.open_tasks(partition) & opened != 0 {
            self.retry_held(now, partition, events);
        }
    }

    /// Offers a partition's held chips again, in rotation, after the policy's limits moved.
    fn retry_held(&mut self, now: Time, partition: u32, events: &mut EventQueue) {
        for mut chips in self.held.in_turn(partition) {
            while let Some(chip) = self.held.next(chips.clone(), self.arbiter.open_tasks(partition)) {
                self.dispatch(now, ChipId(chip as u32), events);
                self.held.pass(partition, chip);
                chips.start = chip + 1;
            }
        }
    }
}

/// One chip's queues, and what its work touches.
pub(super) struct At<'a> {
    chip: ChipId,
    pub queue: &'a mut ChipQueue,
    operations: &'a mut FlashOps,
    array: &'a mut Array,
    log: &'a mut Option<Box<ChipLog>>,
}

impl At<'_> {
    /// Lets the chip begin with an operation that has waited in a slot.
    #[inline(always)]
    pub fn start_waiting(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) {
        if self.operations[id].tracked {
            self.queue.slot_meter.end_wait(now, self.operations.ledger_mut(id).waits());
        }
        self.start(now, id, events);
    }

    /// Tells those who are pending why they wait from now on.
    #[inline]
    fn tell_pending(&mut self, now: Time, depth: u32) {
        let full = self.queue.slots_used == depth;
        let owner = if full { self.array.occupant(self.chip) } else { Some(Cause::SchedulerHold) };
        self.queue.pending_meter.set_owner(now, owner);
    }

    /// Moves an operation from its request queue into a slot.
    #[inline(always)]
    fn issue(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) {
        let operation = &self.operations[id];
        let (tracked, state) = (operation.tracked, operation.state);
        if tracked && state == OpState::Pending {
            self.queue.pending_meter.end_wait(now, self.operations.ledger_mut(id).waits());
        }
        self.queue.fill_slot(self.operations, id);
        if self.queue.slots_used == 1 && !self.queue.on_express {
            return self.start(now, id, events);
        }
        let operation = &mut self.operations[id];
        (operation.state, operation.mark) = (OpState::Slotted, now);
        if tracked {
            self.queue.slot_meter.begin_wait(now, self.operations.ledger_mut(id).waits());
        }
    }

    /// Lets the chip begin with the operation in its first slot.
    #[inline(always)]
    fn start(&mut self, now: Time, id: FlashOpId, events: &mut EventQueue) {
        let operation = &mut self.operations[id];
        (operation.state, operation.mark) = (OpState::Running, now);
        let job = Job {
            command: operation.purpose.command(),
            page: u32::from(operation.page_in_block),
            units: u32::from(operation.units),
            span: operation.span,
            cause: operation.purpose.cause(),
            tracked: operation.tracked,
            slc: operation.slc,
        };
        if let Some(log) = self.log {
            log.begins(now, self.chip, id, operation.purpose);
        }
        self.queue.slot_meter.set_owner(now, Some(job.cause));
        self.array.start(now, self.chip, job, events);
    }
}
