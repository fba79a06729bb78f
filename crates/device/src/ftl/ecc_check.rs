//! The check of what has been copied back: pages that never passed the
//! controller are read once in the background, so that their ECC is checked
//! (ttFlash: "background scrubbing").

use std::collections::VecDeque;

use flashkeel_engine::{Cause, Stream, Time};

use super::background::Background;
use super::{BlockState, Ftl, PartitionLayout};
use crate::address::BlockId;
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, Task};

/// The check task of one partition.
#[derive(Clone)]
pub(crate) struct EccCheck {
    /// Of each flash page, how often in a row it has been copied back unchecked; empty
    /// where no copy is checked, and until the first.
    copies: Vec<u8>,
    /// Draws what they were before the run.
    random: Stream,
    /// After how many of these a page is checked; never if 0.
    after: u32,
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

    fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
        EccCheck {
            copies: Vec::new(),
            random: Stream::new(seed, &format!("ecc_check/{index}")),
            after: layout.gc.manner.checked_after(),
            due: VecDeque::new(),
            next_page: 0,
            is_busy: false,
            gave_way: false,
        }
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
    /// `page` has been filled by a move within its chip, by copyback of `from` if that is what
    /// it holds; what is of several pages, or of a part of one, has passed the controller.
    #[inline]
    pub(super) fn filled(ftl: &mut Ftl, from: Option<u32>, page: u32) {
        if ftl.tasks.ecc_check.after == 0 {
            return;
        }
        if ftl.tasks.ecc_check.copies.is_empty() {
            EccCheck::draw_copies(ftl);
        }
        let copies = &mut ftl.tasks.ecc_check.copies;
        copies[page as usize] = from.map_or(0, |from| copies[from as usize].saturating_add(1));
    }

    /// What is in use has been copied before, nobody knows how often: as in the long run.
    #[cold]
    fn draw_copies(ftl: &mut Ftl) {
        let check = &mut ftl.tasks.ecc_check;
        let most = u64::from(check.after);
        check.copies =
            (0..ftl.shape.ppns / ftl.shape.units_per_page).map(|_| check.random.below(most) as u8).collect();
    }

    /// A block has become full of pages that were moved, by copyback or otherwise.
    pub(super) fn check_full(ftl: &mut Ftl, now: Time, block: BlockId, machine: &mut Machine) {
        if !ftl.tasks.ecc_check.copies.is_empty() {
            ftl.tasks.ecc_check.due.push_back(block);
            EccCheck::read_later(ftl, now, machine);
        }
    }

    /// A block has been erased: what is written to it next passes the controller, or is
    /// counted.
    pub(super) fn erased(ftl: &mut Ftl, block: BlockId) {
        let check = &mut ftl.tasks.ecc_check;
        if check.due.front() == Some(&block) {
            check.next_page = 0;
        }
        check.due.retain(|&other| other != block);
        let first = (block.0 * ftl.shape.pages_per_block) as usize;
        if let Some(copies) = ftl.tasks.ecc_check.copies.get_mut(first..) {
            copies.iter_mut().take(ftl.shape.pages_per_block as usize).for_each(|copies| *copies = 0);
        }
    }

    /// Whether a page has been copied so often that it is checked.
    fn is_due(ftl: &Ftl, page: u32) -> bool {
        let check = &ftl.tasks.ecc_check;
        check.copies.get(page as usize).is_some_and(|&copies| u32::from(copies) >= check.after)
    }

    /// Checks that whatever is due in a full block has its turn ahead. Slow; for tests.
    ///
    /// # Panics
    /// If it is not so.
    pub(super) fn verify(ftl: &Ftl) {
        let units = ftl.shape.units_per_page;
        for page in 0..ftl.shape.ppns / units {
            let block = ftl.shape.block_of_page(page);
            let is_full = ftl.tables.blocks.state(block) == BlockState::Full;
            let is_valid = || ftl.tables.map.valid_run(ftl.shape.first_unit(page), units) != 0;
            let is_left = is_full && EccCheck::is_due(ftl, page) && is_valid();
            let is_ahead = || ftl.tasks.ecc_check.due.contains(&block);
            assert!(!is_left || is_ahead(), "page {page} is never checked");
        }
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
        if let Some(copies) = ftl.tasks.ecc_check.copies.get_mut(page as usize) {
            *copies = 0;
        }
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
                let is_valid =
                    ftl.tables.map.valid_run(ftl.shape.first_unit(page), ftl.shape.units_per_page) != 0;
                if is_valid && EccCheck::is_due(ftl, page) {
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
        ftl.read_done(now, operation.target, machine);
        ftl.tasks.ecc_check.is_busy = false;
        EccCheck::read_later(ftl, now, machine);
    }
}
