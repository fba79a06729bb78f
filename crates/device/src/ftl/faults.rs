//! Faults: flash pages that can no longer be read. Pages of logical stripes are
//! rebuilt from the rest of their stripe, when the host asks for them and, one
//! after another, in the background. A failed chip is taken to be replaced by
//! an empty spare, to which its pages return.

use std::collections::VecDeque;
use std::ops::Range;

use flashkeel_engine::{Cause, Time};

use super::background::Background;
use super::{Entry, Ftl, Lane};
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::flash::Command;
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, Task};

/// What fails of a chip: every flash page for which both hold.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Chip within the partition.
    pub chip: u32,
    /// Blocks within the chip.
    pub blocks: Range<u32>,
    /// Flash pages within the block.
    pub pages: Range<u32>,
    /// Mapping units within the flash page.
    pub slots: Range<u32>,
}

/// The restoring of lost pages in one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restoring {
    /// Logical pages that were lost, in order.
    queue: VecDeque<Lpn>,
    /// Those that wait for the update of their stripe.
    waiting: Vec<Lpn>,
    /// Those being restored: neighbours in one flash page.
    present: Vec<(Lpn, Ppn)>,
    /// Reads on their way.
    reads: u32,
    /// Whether restoring is under way, or waits for a delay to end.
    is_busy: bool,
}

impl Background for Restoring {
    const ACTIVITY: Activity = Activity::Restore;

    fn wake(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        ftl.restore_go_on(now, machine);
    }

    fn generate(ftl: &mut Ftl, now: Time, _quiet_since: Time, machine: &mut Machine) {
        ftl.restore_next(now, machine);
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, _quiet_since: Time, machine: &mut Machine) {
        match operation.purpose.command() {
            Command::Read => ftl.restore_read_done(now, operation, machine),
            _ => ftl.restored(now, operation, machine),
        }
    }
}

impl Ftl {
    /// Whether what a physical page held is lost.
    #[inline]
    pub fn is_lost(&self, ppn: Ppn) -> bool {
        self.lost.get(ppn.0)
    }

    #[inline]
    pub(super) fn set_lost(&mut self, ppn: Ppn, lost: bool) {
        self.lost.set(ppn.0, lost);
    }

    /// Mapping units whose present copy is lost.
    pub fn lost_pages(&self) -> u64 {
        self.lost.iter().filter(|&ppn| self.map.is_valid(Ppn(ppn))).count() as u64
    }

    /// A part of a chip fails: what it held is lost, and will be restored.
    pub fn fail(&mut self, now: Time, part: &Part, machine: &mut Machine) {
        self.lost.grow(self.map.ppns());
        for block in part.blocks.clone() {
            let block = part.chip * self.blocks.per_chip() + block;
            for page in part.pages.clone() {
                let first = (block * self.pages_per_block + page) * self.slots_per_page;
                for ppn in part.slots.clone().map(|slot| Ppn(first + slot)) {
                    self.set_lost(ppn, true);
                    self.data_lost(ppn);
                }
            }
        }
        let stripes = self.static_stripes.expect("only stripes can lose pages");
        for stripe in 0..stripes.len() {
            self.give_up(stripe, machine);
        }
        self.queue_lost(now, machine);
    }

    /// Lets everything that is lost be restored.
    pub(super) fn queue_lost(&mut self, now: Time, machine: &mut Machine) {
        self.restoring.waiting.clear();
        let lost = |&lpn: &Lpn| self.flash_copy(lpn).is_some_and(|ppn| self.is_lost(ppn));
        self.restoring.queue = (0..self.map.lpns()).map(Lpn).filter(lost).collect();
        self.restore_go_on(now, machine);
    }

    /// Gives up what cannot be rebuilt: pages of a stripe of which two are lost.
    /// From then on the parity covers zeros in their place.
    fn give_up(&mut self, stripe: u32, machine: &mut Machine) {
        let stripes = self.static_stripes.expect("only stripes can lose pages");
        for slot in 0..self.slots_per_page {
            let parity = stripes.parity(stripe, slot);
            let data = stripes.data(stripe).map(Lpn).filter(|&lpn| stripes.slot_of(lpn) == slot);
            let lost: Vec<Lpn> = data.filter(|&lpn| self.is_out_of_reach(lpn)).collect();
            if lost.len() + usize::from(self.is_out_of_reach(parity)) < 2 {
                continue;
            }
            for lpn in lost {
                self.give_up_page(lpn, machine);
            }
            if let Some(ppn) = self.flash_copy(parity) {
                self.set_lost(ppn, true);
                self.data_lost(ppn);
                self.restoring.queue.push_back(parity);
            }
            self.correct_parity(parity);
        }
    }

    /// Whether the version of a page that its stripe's parity covers is neither
    /// in flash nor in memory.
    fn is_out_of_reach(&self, lpn: Lpn) -> bool {
        self.flash_copy(lpn).is_some_and(|ppn| self.is_lost(ppn)) && !self.is_updating(lpn)
    }

    fn give_up_page(&mut self, lpn: Lpn, machine: &mut Machine) {
        let home = self.map.home(lpn);
        if let Some(entry) = self.buffered(home) {
            // The host has written it again: only the former version is gone.
            let behind = std::mem::replace(&mut self.entries[entry].behind, Home::UNMAPPED);
            return self.discard(behind);
        }
        if let Some(ppn) = self.map.flash_home(lpn) {
            self.data_given_up(ppn);
        }
        self.move_home(lpn, Home::UNMAPPED);
        if !self.is_trimmed(lpn) {
            self.set_gone(lpn, true);
            machine.counters.given_up_pages += 1;
        }
    }

    /// Whether a page of the host is lost for good.
    #[inline]
    pub fn is_gone(&self, lpn: Lpn) -> bool {
        self.gone.get(lpn.0)
    }

    /// Notes whether a page of the host is lost for good; not for long once the
    /// host writes or trims it.
    #[inline]
    pub fn set_gone(&mut self, lpn: Lpn, gone: bool) {
        if gone {
            self.gone.grow(self.lpns);
        }
        self.gone.set(lpn.0, gone);
    }

    /// Makes sure that lost pages are restored, if there are any.
    fn restore_go_on(&mut self, now: Time, machine: &mut Machine) {
        if !self.restoring.is_busy && !self.restoring.queue.is_empty() {
            self.restoring.is_busy = true;
            machine.generate_later(now, self.index, Activity::Restore);
        }
    }

    /// A stripe's update is over, and what of it was in memory no longer is.
    pub fn restore_after_update(&mut self, now: Time, stripe: u32, machine: &mut Machine) {
        if self.lost.has_room() {
            self.give_up(stripe, machine);
            self.restoring.queue.extend(self.restoring.waiting.drain(..));
            self.restore_go_on(now, machine);
        }
    }

    /// Begins to restore the next lost pages: reads the rest of their stripe.
    fn restore_next(&mut self, now: Time, machine: &mut Machine) {
        self.restoring.is_busy = false;
        self.restoring.present.clear();
        let stripes = self.static_stripes.expect("only pages of stripes are restored");
        let mut reads = Vec::new();
        while let Some(&lpn) = self.restoring.queue.front() {
            if self.restoring.present.first().is_some_and(|first| !stripes.share_page(first.0, lpn)) {
                break;
            }
            self.restoring.queue.pop_front();
            // Written again, moved from a place that could be read, or lost twice.
            let Some(ppn) = self.flash_copy(lpn).filter(|&ppn| self.is_lost(ppn)) else { continue };
            if self.restoring.present.contains(&(lpn, ppn)) {
                continue;
            }
            let chip = stripes.chip_of(lpn);
            if !self.has_spare_block(chip) && self.points.room(Task::Host, chip) == 0 {
                // Tried again when a block has become free.
                self.restoring.queue.push_front(lpn);
                self.gc_start(now, chip, machine);
                break;
            }
            let mates: Vec<Ppn> = stripes.mates(lpn).filter_map(|mate| self.flash_copy(mate)).collect();
            if mates.iter().any(|&mate| self.is_lost(mate)) {
                // It is being written again: its stripe's update comes first.
                self.restoring.waiting.push(lpn);
                continue;
            }
            self.restoring.present.push((lpn, ppn));
            reads.extend(mates.iter().map(|mate| mate.0 / self.slots_per_page));
        }
        if self.restoring.present.is_empty() {
            return;
        }
        reads.sort_unstable();
        reads.dedup();
        self.restoring.is_busy = true;
        self.restoring.reads = reads.len() as u32;
        for &page in &reads {
            self.begin_read(page);
            let operations = &mut machine.dispatcher.operations;
            let id =
                operations.create(now, Activity::Restore.read(), Task::Scrub, self.index, Cause::Controller);
            let operation = &mut operations[id];
            self.aim(operation, page);
            operation.slots = self.slots_per_page as u16;
            machine.enqueue(now, id);
        }
        if reads.is_empty() {
            self.program_restored(now, machine);
        }
    }

    /// A read for a lost page is done.
    fn restore_read_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        self.read_done(now, operation, machine);
        self.restoring.reads -= 1;
        if self.restoring.reads == 0 {
            self.program_restored(now, machine);
        }
    }

    fn program_restored(&mut self, now: Time, machine: &mut Machine) {
        let stripes = self.static_stripes.expect("only pages of stripes are restored");
        let mut lane = Lane::EMPTY;
        for at in 0..self.restoring.present.len() {
            let (lpn, ppn) = self.restoring.present[at];
            self.entries.push(&mut lane, Entry::new(lpn, Home(ppn.0), NONE, 0, now), None);
        }
        let domain = stripes.chip_of(self.restoring.present[0].0);
        let count = lane.len;
        let id = self.form(now, &mut lane, count, Activity::Restore.program(), domain, machine);
        if !self.try_place(now, id, machine) {
            // The last free block has gone meanwhile.
            let mut next = machine.dispatcher.operations[id].entries;
            while next != NONE {
                let (entry, following) = self.entries.release(next);
                self.restoring.queue.push_front(entry.lpn);
                next = following;
            }
            machine.dispatcher.operations.release(id);
            self.restoring.is_busy = false;
            self.gc_start(now, domain, machine);
        }
    }

    /// Lost pages are in flash again.
    fn restored(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = BlockId(operation.target / self.pages_per_block);
        let mut ppn = Ppn(operation.target * self.slots_per_page);
        let mut next = operation.entries;
        while next != NONE {
            let (entry, following) = self.entries.release(next);
            next = following;
            if self.is_current(entry.lpn, entry.from) {
                self.data_restored(entry.lpn, entry.from, ppn);
                self.install(entry.lpn, entry.from, ppn);
                machine.counters.restored_pages += 1;
            } else if self.flash_copy(entry.lpn).is_some_and(|ppn| self.is_lost(ppn)) {
                // Moved meanwhile, and still lost.
                self.restoring.queue.push_back(entry.lpn);
            }
            ppn.0 += 1;
        }
        self.page_programmed(now, Task::Host, block, machine);
        self.restoring.is_busy = false;
        self.restore_go_on(now, machine);
    }
}
