//! The check of what has been copied back: pages that never passed the
//! controller are read once in the background, so that their ECC is checked
//! (ttFlash: "background scrubbing").

use std::collections::VecDeque;

use flashkeel_engine::{Cause, Time};

use super::background::Background;
use super::{BlockState, Ftl, PartitionLayout};
use crate::address::BlockId;
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, Task};

/// The check task of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct EccCheck {
    /// Full blocks with pages to check, the oldest first.
    due: VecDeque<BlockId>,
    /// The page of the first of them to look at next.
    next_page: u32,
    /// Whether a read is on its way, or its generation is scheduled.
    is_busy: bool,
    /// Whether the next read waits until the channel has no work of the host.
    gave_way: bool,
}

impl Background for EccCheck {
    const ACTIVITY: Activity = Activity::Check;

    fn new(_layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        EccCheck::default()
    }

    #[inline]
    fn go_on(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if std::mem::take(&mut ftl.tasks.ecc_check.gave_way) {
            ftl.ecc_check_go_on(now, machine);
        }
    }

    fn generate(ftl: &mut Ftl, now: Time, _quiet_since: Time, machine: &mut Machine) {
        ftl.check_ecc(now, machine);
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, _quiet_since: Time, machine: &mut Machine) {
        ftl.ecc_checked(now, operation, machine);
    }
}

impl Ftl {
    /// A block has become full of pages that were copied back.
    pub(super) fn check_later(&mut self, now: Time, block: BlockId, machine: &mut Machine) {
        self.tasks.ecc_check.due.push_back(block);
        self.ecc_check_go_on(now, machine);
    }

    /// Makes sure that the next read is generated, if there is one.
    fn ecc_check_go_on(&mut self, now: Time, machine: &mut Machine) {
        if !self.tasks.ecc_check.is_busy && !self.tasks.ecc_check.due.is_empty() {
            self.tasks.ecc_check.is_busy = true;
            machine.generate_later(now, self.shape.index, Activity::Check);
        }
    }

    /// Generates the next read, if the host leaves the channel to it.
    fn check_ecc(&mut self, now: Time, machine: &mut Machine) {
        self.tasks.ecc_check.is_busy = false;
        let Some(page) = self.next_unchecked() else { return };
        let chip = self.tables.chip_of(page);
        if machine.dispatcher.host_load(chip) > 0 || !machine.background_allowed {
            self.tasks.ecc_check.gave_way = true;
            return;
        }
        self.tasks.ecc_check.next_page += 1;
        self.tasks.ecc_check.is_busy = true;
        self.tables.begin_read(page);
        let operations = &mut machine.dispatcher.operations;
        let id =
            operations.create(now, Activity::Check.read(), Task::Scrub, self.shape.index, Cause::Controller);
        let operation = &mut operations[id];
        self.tables.aim(operation, page);
        operation.units = self.shape.units_per_page as u16;
        machine.enqueue(now, id);
    }

    /// The next page to check: blocks that are being emptied, or have been
    /// since, are passed over.
    fn next_unchecked(&mut self) -> Option<u32> {
        while let Some(&block) = self.tasks.ecc_check.due.front() {
            while self.tables.blocks.state(block) == BlockState::Full
                && self.tasks.ecc_check.next_page < self.shape.pages_per_block
            {
                let page = self.shape.page_of(block, self.tasks.ecc_check.next_page);
                if self.tables.map.valid_run(self.shape.first_unit(page), self.shape.units_per_page) != 0 {
                    return Some(page);
                }
                self.tasks.ecc_check.next_page += 1;
            }
            self.tasks.ecc_check.due.pop_front();
            self.tasks.ecc_check.next_page = 0;
        }
        None
    }

    /// A page has been read and checked.
    fn ecc_checked(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let first = self.shape.first_unit(operation.target);
        let valid = self.tables.map.valid_run(first, self.shape.units_per_page);
        machine.counters.checked_pages += u64::from(valid.count_ones());
        self.read_done(now, operation, machine);
        self.tasks.ecc_check.is_busy = false;
        self.ecc_check_go_on(now, machine);
    }
}
