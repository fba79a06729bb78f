//! What is ahead of a chip in the background: how much, and whether it may begin.

use flashkeel_engine::{EventQueue, Span, Time};

use super::operation::OpState;
use super::queue::Background;
use super::{ALL_TASKS, Activity, Dispatcher, FlashOpId, Task};
use crate::address::ChipId;

/// Bit set of the tasks whose operations somebody waits for at once.
const FOREGROUND: u32 = {
    let (mut tasks, mut at) = (0, 0);
    while at < Task::COUNT {
        tasks |= if Task::ALL[at].is_background() { 0 } else { 1 << at };
        at += 1;
    }
    tasks
};

impl Dispatcher {
    /// Lets the chips of a partition begin with background operations, or keeps from them
    /// all that they have not begun with.
    pub fn allow_background(&mut self, now: Time, partition: u32, is_allowed: bool, events: &mut EventQueue) {
        let open = if is_allowed { ALL_TASKS } else { FOREGROUND };
        let chips = self.held.in_turn(partition).into_iter().flatten();
        // They are all in one window.
        if self.queues[chips.clone().next().expect("a partition has chips")].window == open {
            return;
        }
        chips.clone().for_each(|chip| self.queues[chip].window = open);
        for chip in chips.clone() {
            let kept_back = self.queues[chip].pending_in(!FOREGROUND, &self.operations);
            if is_allowed {
                self.loads[chip] += kept_back;
            } else {
                self.loads[chip] -= kept_back;
                self.empty_slots_of_background(now, ChipId(chip as u32), events);
            }
        }
        if is_allowed {
            for chip in chips {
                if self.queues[chip].mask() & !FOREGROUND != 0 {
                    self.dispatch(now, ChipId(chip as u32), events);
                    self.held.pass(partition, chip);
                }
            }
        }
    }

    /// Whether the window of a chip lets a task issue.
    #[inline]
    pub(super) fn lets(&self, chip: ChipId, task: Task) -> bool {
        self.queues[chip.0 as usize].window >> task as u32 & 1 == 1
    }

    /// Puts back what is in a chip's slots in the background and has not begun. Map pages
    /// stay: the host may wait for them, too, which does not change whose a slot is.
    fn empty_slots_of_background(&mut self, now: Time, chip: ChipId, events: &mut EventQueue) {
        let queue = &self.queues[chip.0 as usize];
        let waits = |&id: &FlashOpId| {
            let operation = &self.operations[id];
            let is_held = operation.task.is_background() && operation.purpose.activity() != Activity::Map;
            is_held && operation.state == OpState::Slotted && !operation.tracked
        };
        let waiting: Vec<FlashOpId> = queue.slots(&self.operations).filter(waits).collect();
        let mut opened = 0;
        for id in waiting {
            let queue = &mut self.queues[chip.0 as usize];
            queue.leave_slot(&mut self.operations, id);
            queue.insert(&mut self.operations, id);
            self.loads[chip.0 as usize] -= 1;
            let operation = &mut self.operations[id];
            operation.state = OpState::Pending;
            opened |= self.arbiter.completed(queue.partition, operation.task);
        }
        self.dispatch(now, chip, events);
        self.retry_opened(now, chip, opened, events);
    }

    /// Whether what empties a block is queued for, or running on, a chip: garbage
    /// collection, or another task that moves what is valid. What its window keeps from the
    /// chip does not count.
    #[inline]
    pub fn collects(&self, chip: ChipId) -> bool {
        let background = self.background_of(chip);
        background.moves + background.erases > 0
    }

    /// How long background work that is queued for, or running on, a chip will
    /// occupy it, and the erase that follows where pages of a block are moved. What its
    /// window keeps from the chip does not count.
    pub fn background_left(&self, now: Time, chip: ChipId) -> Span {
        let background = self.background_of(chip);
        if background.service == Span(0) {
            return Span(0);
        }
        let running = self.queues[chip.0 as usize].first_slot().map(|first| &self.operations[first]);
        let worked = match running.filter(|running| running.task.is_background()) {
            Some(running) if running.state == OpState::Running => {
                self.array.worked(now, chip).min(running.span)
            }
            Some(running) if running.state == OpState::Suspended => {
                self.array.worked_before(chip).min(running.span)
            }
            _ => Span(0),
        };
        let erase = if background.moves > 0 { self.array.timing().erase() } else { Span(0) };
        Span(background.service.0 - worked.0 + erase.0)
    }

    /// The background work that a chip has begun with or may begin with.
    #[inline]
    fn background_of(&self, chip: ChipId) -> Background {
        let queue = &self.queues[chip.0 as usize];
        if queue.window == ALL_TASKS {
            return queue.background;
        }
        let mut begun = Background::default();
        let first = queue.first_slot().map(|first| &self.operations[first]);
        if let Some(first) = first.filter(|first| first.task.is_background()) {
            begun.add(first.span, first.purpose);
        }
        begun
    }
}
