//! Faults: flash pages that can no longer be read, or, of a served drive, are found
//! damaged. Pages of logical stripes are rebuilt from the rest of their stripe, when the
//! host asks for them and, one after another, in the background. A failed chip is taken to
//! be replaced by an empty spare, to which its pages return.

use std::collections::VecDeque;
use std::ops::Range;

use flashkeel_engine::{Cause, Time};

use super::background::Background;
use super::gc::Gc;
use super::slc::Slc;
use super::{Entry, Ftl, Lane, PartitionLayout, Shape};
use crate::address::{Home, Lpn, NONE, Ppn};
use crate::flash::FlashCommand;
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
            Restoring::queue_lost(ftl, now, machine);
        }
    }

    fn wake(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        Restoring::read_later(ftl, now, machine);
    }

    fn generate(ftl: &mut Ftl, now: Time, _quiet_since: Time, machine: &mut Machine) {
        Restoring::read_next(ftl, now, machine);
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, _quiet_since: Time, machine: &mut Machine) {
        match operation.purpose.command() {
            FlashCommand::Read => Restoring::page_read(ftl, now, operation, machine),
            _ => Restoring::programmed(ftl, now, operation, machine),
        }
    }
}

impl Ftl {
    /// A part of a chip fails: what it held is lost, and will be restored.
    pub fn fail(&mut self, now: Time, part: &Part, machine: &mut Machine) {
        if self.shape.static_stripes.is_none() {
            return Restoring::fail_for_good(self, part, machine);
        }
        self.tables.lost.grow(self.tables.map.ppns());
        for ppn in Restoring::pages_of(self, part) {
            self.tables.set_lost(ppn, true);
            self.tables.data_lost(ppn);
        }
        let stripes = self.shape.static_stripes.expect("only stripes can lose pages");
        for stripe in 0..stripes.len() {
            Restoring::give_up(self, stripe, machine);
        }
        Restoring::queue_lost(self, now, machine);
    }

    /// A page that can be rebuilt from its stripe was found damaged at `ppn`: it is lost, unless
    /// it has been moved since, and will be restored.
    pub fn restore_damaged(&mut self, now: Time, lpn: Lpn, ppn: Ppn, machine: &mut Machine) {
        if self.tables.flash_copy(lpn) != Some(ppn) || self.tables.is_lost(ppn) {
            return;
        }
        self.tables.lost.grow(self.tables.map.ppns());
        self.tables.set_lost(ppn, true);
        self.tasks.restoring.queue.push_back(lpn);
        Restoring::read_later(self, now, machine);
    }

    /// A stripe's update is over, and what of it was in memory no longer is.
    pub fn stripe_updated(&mut self, now: Time, stripe: u32, machine: &mut Machine) {
        if self.tables.lost.has_room() {
            Restoring::give_up(self, stripe, machine);
            self.tasks.restoring.queue.extend(self.tasks.restoring.waiting.drain(..));
            Restoring::read_later(self, now, machine);
        }
    }
}

impl Restoring {
    /// The mapping units of a part.
    fn pages_of(ftl: &Ftl, part: &Part) -> Vec<Ppn> {
        let Shape { pages_per_block, units_per_page, .. } = ftl.shape;
        let blocks = part.blocks.clone().map(|block| part.chip * ftl.tables.blocks.per_chip() + block);
        let pages = blocks.flat_map(|block| part.pages.clone().map(move |page| (block, page)));
        let first = pages.map(|(block, page)| (block * pages_per_block + page) * units_per_page);
        first.flat_map(|first| part.units.clone().map(move |unit| Ppn(first + unit))).collect()
    }

    /// A part of a chip fails from which nothing can be rebuilt. Ours: pages of the
    /// map are kept twice.
    fn fail_for_good(ftl: &mut Ftl, part: &Part, machine: &mut Machine) {
        for ppn in Restoring::pages_of(ftl, part) {
            let map = &ftl.tables.map;
            let lpn = map.is_valid(ppn).then(|| map.holds(ppn));
            if lpn.is_some_and(|lpn| lpn.0 >= ftl.shape.lpns) {
                continue;
            }
            ftl.tables.data_failed(ppn);
            if let Some(lpn) = lpn {
                Restoring::give_up_page(ftl, lpn, machine);
            }
        }
    }

    /// Lets everything that is lost be restored.
    fn queue_lost(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        ftl.tasks.restoring.waiting.clear();
        let lost = |&lpn: &Lpn| ftl.tables.flash_copy(lpn).is_some_and(|ppn| ftl.tables.is_lost(ppn));
        ftl.tasks.restoring.queue = (0..ftl.tables.map.lpns()).map(Lpn).filter(lost).collect();
        Restoring::read_later(ftl, now, machine);
    }

    /// Gives up what cannot be rebuilt: pages of a stripe of which two are lost.
    /// From then on the parity covers zeros in their place.
    fn give_up(ftl: &mut Ftl, stripe: u32, machine: &mut Machine) {
        let stripes = ftl.shape.static_stripes.expect("only stripes can lose pages");
        for unit in 0..ftl.shape.units_per_page {
            let parity = stripes.parity(stripe, unit);
            let data = stripes.data(stripe).map(Lpn).filter(|&lpn| stripes.unit_of(lpn) == unit);
            let lost: Vec<Lpn> = data.filter(|&lpn| ftl.tables.is_out_of_reach(lpn)).collect();
            if lost.len() + usize::from(ftl.tables.is_out_of_reach(parity)) < 2 {
                continue;
            }
            for lpn in lost {
                Restoring::give_up_page(ftl, lpn, machine);
            }
            if let Some(ppn) = ftl.tables.flash_copy(parity) {
                ftl.tables.set_lost(ppn, true);
                ftl.tables.data_lost(ppn);
                ftl.tasks.restoring.queue.push_back(parity);
            }
            ftl.tables.correct_parity(parity);
        }
    }

    fn give_up_page(ftl: &mut Ftl, lpn: Lpn, machine: &mut Machine) {
        let home = ftl.tables.map.home(lpn);
        if let Some(entry) = ftl.tables.buffered(home) {
            // The host has written it again: only the former version is gone.
            let behind = std::mem::replace(&mut ftl.tables.entries[entry].behind, Home::UNMAPPED);
            if ftl.shape.static_stripes.is_some() {
                ftl.tables.data_outdated(behind);
            }
            return ftl.tables.discard(behind);
        }
        if let Some(ppn) = ftl.tables.map.flash_home(lpn) {
            ftl.tables.data_given_up(ppn);
        }
        ftl.tables.gives(lpn);
        ftl.tables.move_home(lpn, Home::UNMAPPED);
        if !ftl.tables.is_trimmed(lpn) {
            ftl.tables.set_gone(lpn, true);
            machine.counters.given_up_pages += 1;
        }
    }

    /// Makes sure that lost pages are restored, if there are any.
    fn read_later(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if !ftl.tasks.restoring.is_busy && !ftl.tasks.restoring.queue.is_empty() {
            ftl.tasks.restoring.is_busy = true;
            machine.generate_later(now, ftl.shape.index, Activity::Restore);
        }
    }

    /// Begins to restore the next lost pages: reads the rest of their stripe.
    fn read_next(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        ftl.tasks.restoring.is_busy = false;
        ftl.tasks.restoring.present.clear();
        if !ftl.background_allowed {
            // Woken when it may go on.
            return;
        }
        let stripes = ftl.shape.static_stripes.expect("only pages of stripes are restored");
        let mut reads = Vec::new();
        while let Some(&lpn) = ftl.tasks.restoring.queue.front() {
            if ftl.tasks.restoring.present.first().is_some_and(|first| !stripes.share_page(first.0, lpn)) {
                break;
            }
            ftl.tasks.restoring.queue.pop_front();
            // Written again, moved from a place that could be read, or lost twice.
            let Some(ppn) = ftl.tables.flash_copy(lpn).filter(|&ppn| ftl.tables.is_lost(ppn)) else {
                continue;
            };
            if ftl.tasks.restoring.present.contains(&(lpn, ppn)) {
                continue;
            }
            let chip = stripes.chip_of(lpn);
            if !ftl.tables.has_spare_block(chip) && ftl.tables.points.room(Task::Host, chip) == 0 {
                // Tried again when a block has become free. Until it is programmed, so that
                // the host does not take the block meanwhile:
                ftl.tables.points.waits.begin(Activity::Restore, chip);
                ftl.tasks.restoring.queue.push_front(lpn);
                Gc::start(ftl, now, chip, machine);
                break;
            }
            let mates: Vec<Ppn> = stripes.mates(lpn).filter_map(|mate| ftl.tables.flash_copy(mate)).collect();
            if mates.iter().any(|&mate| ftl.tables.is_lost(mate)) {
                // It is being written again: its stripe's update comes first.
                ftl.tasks.restoring.waiting.push(lpn);
                continue;
            }
            ftl.tasks.restoring.present.push((lpn, ppn));
            reads.extend(mates.iter().map(|mate| mate.0 / ftl.shape.units_per_page));
        }
        if ftl.tasks.restoring.present.is_empty() {
            if ftl.tasks.restoring.queue.is_empty() {
                ftl.tables.points.waits.end(Activity::Restore);
            }
            return;
        }
        reads.sort_unstable();
        reads.dedup();
        ftl.tasks.restoring.is_busy = true;
        ftl.tasks.restoring.reads = reads.len() as u32;
        for &page in &reads {
            ftl.tables.begin_read(page);
            let operations = &mut machine.dispatcher.operations;
            let id = operations.create(
                now,
                Activity::Restore.read(),
                Task::Scrub,
                ftl.shape.index,
                Cause::Controller,
            );
            let operation = &mut operations[id];
            ftl.tables.aim(operation, page);
            operation.units = ftl.shape.units_per_page as u16;
            machine.enqueue(now, id);
        }
        if reads.is_empty() {
            Restoring::program(ftl, now, machine);
        }
    }

    /// A read for a lost page is done.
    fn page_read(ftl: &mut Ftl, now: Time, operation: &FlashOp, machine: &mut Machine) {
        ftl.read_done(now, operation.target, machine);
        ftl.tasks.restoring.reads -= 1;
        if ftl.tasks.restoring.reads == 0 {
            Restoring::program(ftl, now, machine);
        }
    }

    fn program(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let stripes = ftl.shape.static_stripes.expect("only pages of stripes are restored");
        let mut lane = Lane::EMPTY;
        for at in 0..ftl.tasks.restoring.present.len() {
            let (lpn, ppn) = ftl.tasks.restoring.present[at];
            ftl.tables.entries.push(&mut lane, Entry::new(lpn, Home(ppn.0), NONE, 0, now), None);
        }
        let domain = stripes.chip_of(ftl.tasks.restoring.present[0].0);
        let count = lane.len;
        let id = ftl.form(now, &mut lane, count, Activity::Restore.program(), domain, machine);
        // It goes to the host's blocks: in their request queue, so that their pages are
        // programmed in order, and the one that it waited for is left to them now.
        machine.dispatcher.operations[id].task = Task::Host;
        ftl.tables.points.waits.end(Activity::Restore);
        ftl.tables.points.waits.give_host_turn(domain);
        if !ftl.try_place(now, id, machine) {
            // The last free block has gone meanwhile.
            let mut next = machine.dispatcher.operations[id].entries;
            while next != NONE {
                let (entry, following) = ftl.tables.entries.release(next);
                ftl.tasks.restoring.queue.push_front(entry.lpn);
                next = following;
            }
            machine.dispatcher.operations.release(id);
            ftl.tasks.restoring.is_busy = false;
            ftl.tables.points.waits.begin(Activity::Restore, domain);
            Gc::start(ftl, now, domain, machine);
        }
    }

    /// Lost pages are in flash again.
    fn programmed(ftl: &mut Ftl, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = ftl.shape.block_of_page(operation.target);
        let mut ppn = ftl.shape.first_unit(operation.target);
        let mut next = operation.entries;
        while next != NONE {
            let (entry, following) = ftl.tables.entries.release(next);
            next = following;
            if ftl.tables.is_current(entry.lpn, entry.from) {
                let is_restored = ftl.tables.data_restored(entry.lpn, entry.from, ppn);
                ftl.tables.install(entry.lpn, entry.from, ppn);
                machine.counters.restored_pages += u64::from(is_restored);
            } else if ftl.tables.flash_copy(entry.lpn).is_some_and(|ppn| ftl.tables.is_lost(ppn)) {
                // Moved meanwhile, and still lost.
                ftl.tasks.restoring.queue.push_back(entry.lpn);
            }
            ppn.0 += 1;
        }
        ftl.page_programmed(now, Task::Host, block, machine);
        Slc::programmed(ftl, now, operation, machine);
        ftl.tasks.restoring.is_busy = false;
        Restoring::read_later(ftl, now, machine);
    }
}
