//! Flash operations: what tasks put into their request queues.

use flashkeel_engine::{Cause, Ledger, Span, Time};

use super::{Purpose, Task};
use crate::address::{ChipId, NONE};
use crate::flash::{FlashCommand, Timing};
use crate::limits::MAX_INDEX;

/// Index of an operation in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashOpId(pub u32);

/// Where an operation is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpState {
    /// Not yet in a request queue; the time since belongs to a cause.
    Outside(Cause),
    /// Just put into its task's request queue: its wait has not begun.
    Arriving,
    /// In its task's request queue.
    Pending,
    /// In a slot of its chip, behind others.
    Slotted,
    /// The chip is working on it.
    Running,
    /// The chip has broken it off.
    Suspended,
    /// Done; the ledger is complete.
    Done,
}

/// One flash operation.
#[derive(Clone, Copy, Debug)]
pub struct FlashOp {
    /// What it is for.
    pub purpose: Purpose,
    /// Whose request queue it goes through.
    pub task: Task,
    /// Whether its blame is followed; only where a request may wait for it. See
    /// [`FlashOps::track`].
    pub(super) tracked: bool,
    /// Whether it programs into the SLC cache.
    pub slc: bool,
    /// Partition that owns it.
    pub partition: u16,
    /// Mapping units transferred.
    pub units: u16,
    /// Page number within the block.
    pub page_in_block: u16,
    /// The chip it works on.
    pub chip: ChipId,
    /// Flash page, or block for an erase, within the partition.
    pub target: u32,
    /// What the owner makes of it: a request, a job, a map page.
    pub owner: u32,
    /// First entry of the data it programs.
    pub entries: u32,
    /// The stripe update it is part of, if any.
    pub update: u32,
    /// How long its chip works on it: of a move within a chip before it is
    /// queued, of any background work from then on.
    pub span: Span,
    /// How long garbage collection had delayed a read's request before, in nanoseconds.
    pub gc_before_ns: u64,
    pub(super) state: OpState,
    pub(super) next: u32,
    /// When it came to its state.
    pub(super) mark: Time,
    pub(super) arrival: u64,
}

impl FlashOp {
    /// An operation outside every queue, whose blame is not followed; its time
    /// belongs to `cause` until [`FlashOps::set_outside`] or the dispatcher says
    /// otherwise.
    #[inline]
    pub fn new(now: Time, purpose: Purpose, task: Task, partition: u16, cause: Cause) -> FlashOp {
        FlashOp {
            purpose,
            task,
            tracked: false,
            slc: false,
            partition,
            units: 0,
            page_in_block: 0,
            chip: ChipId(NONE),
            target: NONE,
            owner: NONE,
            entries: NONE,
            update: NONE,
            span: Span(0),
            gc_before_ns: 0,
            state: OpState::Outside(cause),
            next: NONE,
            mark: now,
            arrival: 0,
        }
    }

    /// How long its chip will work on it if the channel is free.
    #[inline(always)]
    pub fn service(&self, timing: &Timing) -> Span {
        let page = u32::from(self.page_in_block);
        let transfer = || timing.transfer(u32::from(self.units));
        match self.purpose.command() {
            FlashCommand::Read => timing.read(page) + transfer(),
            FlashCommand::Program => timing.program(page, self.slc) + transfer(),
            FlashCommand::Erase => timing.erase(),
            FlashCommand::Move | FlashCommand::Copyback => self.span,
        }
    }
}

/// The pool of operations; grows when needed and then stays.
#[derive(Clone, Debug, Default)]
pub struct FlashOps {
    list: Vec<FlashOp>,
    free: Vec<u32>,
    ledgers: Vec<Ledger>,
}

impl FlashOps {
    /// Takes a [new](FlashOp::new) operation in.
    #[inline]
    pub fn create(
        &mut self,
        now: Time,
        purpose: Purpose,
        task: Task,
        partition: u16,
        cause: Cause,
    ) -> FlashOpId {
        self.add(FlashOp::new(now, purpose, task, partition, cause))
    }

    /// Takes a new operation in.
    #[inline]
    pub fn add(&mut self, operation: FlashOp) -> FlashOpId {
        if let Some(index) = self.free.pop() {
            self.list[index as usize] = operation;
            return FlashOpId(index);
        }
        assert!(self.list.len() <= MAX_INDEX as usize, "more flash operations than events can name");
        self.list.push(operation);
        self.ledgers.push(Ledger::ZERO);
        FlashOpId(self.list.len() as u32 - 1)
    }

    /// Follows the blame of a new operation, beginning with what `ledger` holds.
    #[inline]
    pub fn track(&mut self, id: FlashOpId, ledger: &Ledger) {
        self.list[id.0 as usize].tracked = true;
        self.ledgers[id.0 as usize] = *ledger;
    }

    /// Operations that are not done, and have not been given back.
    pub fn in_flight(&self) -> impl Iterator<Item = &FlashOp> {
        self.list.iter().filter(|operation| operation.state != OpState::Done)
    }

    /// Gives an operation back.
    #[inline]
    pub fn release(&mut self, id: FlashOpId) {
        self[id].state = OpState::Done;
        self.free.push(id.0);
    }

    /// The blame of a tracked operation gathered so far, up to the last change of
    /// state.
    #[inline]
    pub fn ledger(&self, id: FlashOpId) -> &Ledger {
        &self.ledgers[id.0 as usize]
    }

    #[inline]
    pub(crate) fn ledger_mut(&mut self, id: FlashOpId) -> &mut Ledger {
        &mut self.ledgers[id.0 as usize]
    }

    /// Charges the time outside every queue so far; from `now` on it belongs
    /// to `cause`.
    #[inline]
    pub fn set_outside(&mut self, now: Time, id: FlashOpId, cause: Cause) {
        self.leave_outside(now, id);
        let operation = &mut self[id];
        operation.state = OpState::Outside(cause);
        operation.mark = now;
    }

    #[inline]
    pub(super) fn leave_outside(&mut self, now: Time, id: FlashOpId) {
        let operation = &self.list[id.0 as usize];
        if operation.tracked
            && let OpState::Outside(cause) = operation.state
        {
            self.ledgers[id.0 as usize].charge_between(cause, operation.mark, now);
        }
    }
}

impl std::ops::Index<FlashOpId> for FlashOps {
    type Output = FlashOp;
    #[inline]
    fn index(&self, id: FlashOpId) -> &FlashOp {
        &self.list[id.0 as usize]
    }
}

impl std::ops::IndexMut<FlashOpId> for FlashOps {
    #[inline]
    fn index_mut(&mut self, id: FlashOpId) -> &mut FlashOp {
        &mut self.list[id.0 as usize]
    }
}
