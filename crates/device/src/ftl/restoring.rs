//! Faults: flash pages that can no longer be read. Pages of logical stripes are
//! rebuilt from the rest of their stripe, when the host asks for them and, one
//! after another, in the background. A failed chip is taken to be replaced by
//! an empty spare, to which its pages return.

use std::collections::VecDeque;
use std::ops::Range;

use flashkeel_engine::{Cause, Time};

use super::background::Background;
use super::{Entry, Ftl, Lane, PartitionLayout, Shape};
use crate::address::{Home, Lpn, NONE, Ppn};
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
    pub units: Range<u32>,
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

    fn new(_layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        Restoring::default()
    }

    fn start_again(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if ftl.tables.lost.has_room() {
            ftl.queue_lost(now, machine);
        }
    }

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
    /// A part of a chip fails: what it held is lost, and will be restored.
    pub fn fail(&mut self, now: Time, part: &Part, machine: &mut Machine) {
        if self.shape.static_stripes.is_none() {
            return self.fail_for_good(part, machine);
        }
        self.tables.lost.grow(self.tables.map.ppns());
        for ppn in self.pages_of(part) {
            self.tables.set_lost(ppn, true);
            self.tables.data_lost(ppn);
        }
        let stripes = self.shape.static_stripes.expect("only stripes can lose pages");
        for stripe in 0..stripes.len() {
            self.give_up(stripe, machine);
        }
        self.queue_lost(now, machine);
    }

    /// The mapping units of a part.
    fn pages_of(&self, part: &Part) -> Vec<Ppn> {
        let Shape { pages_per_block, units_per_page, .. } = self.shape;
        let blocks = part.blocks.clone().map(|block| part.chip * self.tables.blocks.per_chip() + block);
        let pages = blocks.flat_map(|block| part.pages.clone().map(move |page| (block, page)));
        let first = pages.map(|(block, page)| (block * pages_per_block + page) * units_per_page);
        first.flat_map(|first| part.units.clone().map(move |unit| Ppn(first + unit))).collect()
    }

    /// A part of a chip fails from which nothing can be rebuilt. Ours: pages of the
    /// map are kept twice.
    fn fail_for_good(&mut self, part: &Part, machine: &mut Machine) {
        for ppn in self.pages_of(part) {
            let map = &self.tables.map;
            let lpn = map.is_valid(ppn).then(|| map.holds(ppn));
            if lpn.is_some_and(|lpn| lpn.0 >= self.shape.lpns) {
                continue;
            }
            self.tables.data_lost(ppn);
            if let Some(lpn) = lpn {
                self.give_up_page(lpn, machine);
            }
        }
    }

    /// Lets everything that is lost be restored.
    fn queue_lost(&mut self, now: Time, machine: &mut Machine) {
        self.tasks.restoring.waiting.clear();
        let lost = |&lpn: &Lpn| self.tables.flash_copy(lpn).is_some_and(|ppn| self.tables.is_lost(ppn));
        self.tasks.restoring.queue = (0..self.tables.map.lpns()).map(Lpn).filter(lost).collect();
        self.restore_go_on(now, machine);
    }

    /// Gives up what cannot be rebuilt: pages of a stripe of which two are lost.
    /// From then on the parity covers zeros in their place.
    fn give_up(&mut self, stripe: u32, machine: &mut Machine) {
        let stripes = self.shape.static_stripes.expect("only stripes can lose pages");
        for unit in 0..self.shape.units_per_page {
            let parity = stripes.parity(stripe, unit);
            let data = stripes.data(stripe).map(Lpn).filter(|&lpn| stripes.unit_of(lpn) == unit);
            let lost: Vec<Lpn> = data.filter(|&lpn| self.tables.is_out_of_reach(lpn)).collect();
            if lost.len() + usize::from(self.tables.is_out_of_reach(parity)) < 2 {
                continue;
            }
            for lpn in lost {
                self.give_up_page(lpn, machine);
            }
            if let Some(ppn) = self.tables.flash_copy(parity) {
                self.tables.set_lost(ppn, true);
                self.tables.data_lost(ppn);
                self.tasks.restoring.queue.push_back(parity);
            }
            self.tables.correct_parity(parity);
        }
    }

    fn give_up_page(&mut self, lpn: Lpn, machine: &mut Machine) {
        let home = self.tables.map.home(lpn);
        if let Some(entry) = self.tables.buffered(home) {
            // The host has written it again: only the former version is gone.
            let behind = std::mem::replace(&mut self.tables.entries[entry].behind, Home::UNMAPPED);
            return self.tables.discard(behind);
        }
        if let Some(ppn) = self.tables.map.flash_home(lpn) {
            self.tables.data_given_up(ppn);
        }
        self.tables.gives(lpn);
        self.tables.move_home(lpn, Home::UNMAPPED);
        if !self.tables.is_trimmed(lpn) {
            self.tables.set_gone(lpn, true);
            machine.counters.given_up_pages += 1;
        }
    }

    /// Makes sure that lost pages are restored, if there are any.
    fn restore_go_on(&mut self, now: Time, machine: &mut Machine) {
        if !self.tasks.restoring.is_busy && !self.tasks.restoring.queue.is_empty() {
            self.tasks.restoring.is_busy = true;
            machine.generate_later(now, self.shape.index, Activity::Restore);
        }
    }

    /// A stripe's update is over, and what of it was in memory no longer is.
    pub fn restore_after_update(&mut self, now: Time, stripe: u32, machine: &mut Machine) {
        if self.tables.lost.has_room() {
            self.give_up(stripe, machine);
            self.tasks.restoring.queue.extend(self.tasks.restoring.waiting.drain(..));
            self.restore_go_on(now, machine);
        }
    }

    /// Begins to restore the next lost pages: reads the rest of their stripe.
    fn restore_next(&mut self, now: Time, machine: &mut Machine) {
        self.tasks.restoring.is_busy = false;
        self.tasks.restoring.present.clear();
        let stripes = self.shape.static_stripes.expect("only pages of stripes are restored");
        let mut reads = Vec::new();
        while let Some(&lpn) = self.tasks.restoring.queue.front() {
            if self.tasks.restoring.present.first().is_some_and(|first| !stripes.share_page(first.0, lpn)) {
                break;
            }
            self.tasks.restoring.queue.pop_front();
            // Written again, moved from a place that could be read, or lost twice.
            let Some(ppn) = self.tables.flash_copy(lpn).filter(|&ppn| self.tables.is_lost(ppn)) else {
                continue;
            };
            if self.tasks.restoring.present.contains(&(lpn, ppn)) {
                continue;
            }
            let chip = stripes.chip_of(lpn);
            if !self.tables.has_spare_block(chip) && self.tables.points.room(Task::Host, chip) == 0 {
                // Tried again when a block has become free.
                self.tasks.restoring.queue.push_front(lpn);
                self.gc_start(now, chip, machine);
                break;
            }
            let mates: Vec<Ppn> =
                stripes.mates(lpn).filter_map(|mate| self.tables.flash_copy(mate)).collect();
            if mates.iter().any(|&mate| self.tables.is_lost(mate)) {
                // It is being written again: its stripe's update comes first.
                self.tasks.restoring.waiting.push(lpn);
                continue;
            }
            self.tasks.restoring.present.push((lpn, ppn));
            reads.extend(mates.iter().map(|mate| mate.0 / self.shape.units_per_page));
        }
        if self.tasks.restoring.present.is_empty() {
            return;
        }
        reads.sort_unstable();
        reads.dedup();
        self.tasks.restoring.is_busy = true;
        self.tasks.restoring.reads = reads.len() as u32;
        for &page in &reads {
            self.tables.begin_read(page);
            let operations = &mut machine.dispatcher.operations;
            let id = operations.create(
                now,
                Activity::Restore.read(),
                Task::Scrub,
                self.shape.index,
                Cause::Controller,
            );
            let operation = &mut operations[id];
            self.tables.aim(operation, page);
            operation.units = self.shape.units_per_page as u16;
            machine.enqueue(now, id);
        }
        if reads.is_empty() {
            self.program_restored(now, machine);
        }
    }

    /// A read for a lost page is done.
    fn restore_read_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        self.read_done(now, operation, machine);
        self.tasks.restoring.reads -= 1;
        if self.tasks.restoring.reads == 0 {
            self.program_restored(now, machine);
        }
    }

    fn program_restored(&mut self, now: Time, machine: &mut Machine) {
        let stripes = self.shape.static_stripes.expect("only pages of stripes are restored");
        let mut lane = Lane::EMPTY;
        for at in 0..self.tasks.restoring.present.len() {
            let (lpn, ppn) = self.tasks.restoring.present[at];
            self.tables.entries.push(&mut lane, Entry::new(lpn, Home(ppn.0), NONE, 0, now), None);
        }
        let domain = stripes.chip_of(self.tasks.restoring.present[0].0);
        let count = lane.len;
        let id = self.form(now, &mut lane, count, Activity::Restore.program(), domain, machine);
        if !self.try_place(now, id, machine) {
            // The last free block has gone meanwhile.
            let mut next = machine.dispatcher.operations[id].entries;
            while next != NONE {
                let (entry, following) = self.tables.entries.release(next);
                self.tasks.restoring.queue.push_front(entry.lpn);
                next = following;
            }
            machine.dispatcher.operations.release(id);
            self.tasks.restoring.is_busy = false;
            self.gc_start(now, domain, machine);
        }
    }

    /// Lost pages are in flash again.
    fn restored(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = self.shape.block_of_page(operation.target);
        let mut ppn = self.shape.first_unit(operation.target);
        let mut next = operation.entries;
        while next != NONE {
            let (entry, following) = self.tables.entries.release(next);
            next = following;
            if self.tables.is_current(entry.lpn, entry.from) {
                self.tables.data_restored(entry.lpn, entry.from, ppn);
                self.tables.install(entry.lpn, entry.from, ppn);
                machine.counters.restored_pages += 1;
            } else if self.tables.flash_copy(entry.lpn).is_some_and(|ppn| self.tables.is_lost(ppn)) {
                // Moved meanwhile, and still lost.
                self.tasks.restoring.queue.push_back(entry.lpn);
            }
            ppn.0 += 1;
        }
        self.page_programmed(now, Task::Host, block, machine);
        self.tasks.restoring.is_busy = false;
        self.restore_go_on(now, machine);
    }
}
