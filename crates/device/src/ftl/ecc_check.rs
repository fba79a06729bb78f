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
            EccCheck::read_later(ftl, now, machine);
        }
    }

    fn generate(ftl: &mut Ftl, now: Time, _quiet_since: Time, machine: &mut Machine) {
        EccCheck::read_next(ftl, now, machine);
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, _quiet_since: Time, machine: &mut Machine) {
        EccCheck::page_read(ftl, now, operation, machine);
    }
}

impl EccCheck {
    /// A block has become full of pages that were copied back.
    pub(super) fn check_later(ftl: &mut Ftl, now: Time, block: BlockId, machine: &mut Machine) {
        ftl.tasks.ecc_check.due.push_back(block);
        EccCheck::read_later(ftl, now, machine);
    }

    /// Makes sure that the next read is generated, if there is one.
    fn read_later(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if !ftl.tasks.ecc_check.is_busy && !ftl.tasks.ecc_check.due.is_empty() {
            ftl.tasks.ecc_check.is_busy = true;
            machine.generate_later(now, ftl.shape.index, Activity::Check);
        }
    }

    /// Generates the next read, if the host leaves the channel to it.
    fn read_next(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        ftl.tasks.ecc_check.is_busy = false;
        let Some(page) = EccCheck::next_unchecked(ftl) else { return };
        let chip = ftl.tables.chip_of(page);
        if machine.dispatcher.host_load(chip) > 0 || !ftl.background_allowed {
            ftl.tasks.ecc_check.gave_way = true;
            return;
        }
        ftl.tasks.ecc_check.next_page += 1;
        ftl.tasks.ecc_check.is_busy = true;
        ftl.tables.begin_read(page);
        let operations = &mut machine.dispatcher.operations;
        let id =
            operations.create(now, Activity::Check.read(), Task::Scrub, ftl.shape.index, Cause::Controller);
        let operation = &mut operations[id];
        ftl.tables.aim(operation, page);
        operation.units = ftl.shape.units_per_page as u16;
        machine.enqueue(now, id);
    }

    /// The next page to check: blocks that are being emptied, or have been
    /// since, are passed over.
    fn next_unchecked(ftl: &mut Ftl) -> Option<u32> {
        while let Some(&block) = ftl.tasks.ecc_check.due.front() {
            while ftl.tables.blocks.state(block) == BlockState::Full
                && ftl.tasks.ecc_check.next_page < ftl.shape.pages_per_block
            {
                let page = ftl.shape.page_of(block, ftl.tasks.ecc_check.next_page);
                if ftl.tables.map.valid_run(ftl.shape.first_unit(page), ftl.shape.units_per_page) != 0 {
                    return Some(page);
                }
                ftl.tasks.ecc_check.next_page += 1;
            }
            ftl.tasks.ecc_check.due.pop_front();
            ftl.tasks.ecc_check.next_page = 0;
        }
        None
    }

    /// A page has been read and checked.
    fn page_read(ftl: &mut Ftl, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let first = ftl.shape.first_unit(operation.target);
        let valid = ftl.tables.map.valid_run(first, ftl.shape.units_per_page);
        machine.counters.checked_pages += u64::from(valid.count_ones());
        ftl.read_done(now, operation, machine);
        ftl.tasks.ecc_check.is_busy = false;
        EccCheck::read_later(ftl, now, machine);
    }
}
