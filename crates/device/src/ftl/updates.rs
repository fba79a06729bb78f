//! Stripe updates: pages of a logical stripe on their way into flash together
//! with the parity that covers them.
//!
//! First what the parity is computed from is read, then data and parity are
//! programmed. Until the last of them is in flash no other update of the
//! stripe begins.

use flashkeel_engine::{Cause, Time};

use super::redundancy::update::Way;
use super::slc::Slc;
use super::{Entry, Ftl, Lane, UpdateConfig};
use crate::address::{Home, Lpn, NONE};
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, FlashOpId, Task};

/// One update under way.
#[derive(Clone, Debug)]
struct Update {
    stripe: u32,
    /// A bit for each page of the host in the stripe that is programmed.
    written: u128,
    /// Reads on their way.
    reads: u32,
    /// Programs, data and parity, that are not done.
    programs: u32,
    /// Those of them that wait for the reads.
    formed: Vec<FlashOpId>,
}

/// The updates of one partition.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Updates {
    policy: UpdateConfig,
    list: Vec<Update>,
    free: Vec<u32>,
    /// Flash pages to read for either way to compute the parity.
    modify: Vec<u32>,
    reconstruct: Vec<u32>,
}

impl Updates {
    /// None under way.
    pub fn new(policy: &UpdateConfig) -> Self {
        let policy = policy.clone();
        Updates { policy, list: Vec::new(), free: Vec::new(), modify: Vec::new(), reconstruct: Vec::new() }
    }

    fn begin(&mut self, stripe: u32) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.list.push(Update { stripe, written: 0, reads: 0, programs: 0, formed: Vec::new() });
            self.list.len() as u32 - 1
        });
        let update = &mut self.list[index as usize];
        (update.stripe, update.reads, update.programs) = (stripe, 0, 0);
        update.formed.clear();
        index
    }

    /// Updates under way: the stripe, and a bit for each of its pages that is
    /// programmed.
    pub(super) fn under_way(&self) -> impl Iterator<Item = (u32, u128)> + '_ {
        let updates = (0..).zip(&self.list).filter(|(index, _)| !self.free.contains(index));
        updates.map(|(_, update)| (update.stripe, update.written))
    }
}

impl Ftl {
    /// Begins an update of a stripe; its programs follow.
    pub fn begin_update(&mut self, stripe: u32) -> u32 {
        self.tasks.updates.begin(stripe)
    }

    /// Adds a formed program of data to an update.
    pub fn add_to_update(&mut self, update: u32, id: FlashOpId, machine: &mut Machine) {
        machine.dispatcher.operations[id].update = update;
        let update = &mut self.tasks.updates.list[update as usize];
        update.programs += 1;
        update.formed.push(id);
    }

    /// Starts an update whose programs of data have been added. `written` has
    /// a bit for each page of the host in the stripe that they contain, lowest
    /// first.
    pub fn start_update(&mut self, now: Time, index: u32, written: u128, machine: &mut Machine) {
        let update = &mut self.tasks.updates.list[index as usize];
        update.written = written;
        let stripe = update.stripe;
        self.form_parity(now, index, stripe, written, machine);
        let modifies = match self.find_reads(stripe, written) {
            (false, false) => {
                let way = |pages: &[u32]| Way {
                    reads: pages.len() as u32,
                    is_blocked: pages
                        .iter()
                        .any(|&page| machine.dispatcher.collects(self.tables.chip_of(page))),
                };
                let (modify, reconstruct) =
                    (way(&self.tasks.updates.modify), way(&self.tasks.updates.reconstruct));
                self.tasks.updates.policy.policy().modifies(modify, reconstruct)
            }
            (true, false) => false,
            (false, true) => true,
            (true, true) => {
                // Some units can be had the one way, some the other.
                let rest = std::mem::take(&mut self.tasks.updates.reconstruct);
                let more = rest.iter().filter(|page| !self.tasks.updates.modify.contains(page)).copied();
                let more: Vec<u32> = more.collect();
                self.tasks.updates.modify.extend(more);
                self.tasks.updates.reconstruct = rest;
                true
            }
        };
        let pages =
            if modifies { &mut self.tasks.updates.modify } else { &mut self.tasks.updates.reconstruct };
        let pages = std::mem::take(pages);
        self.tasks.updates.list[index as usize].reads = pages.len() as u32;
        for &page in &pages {
            self.tables.begin_read(page);
            let operations = &mut machine.dispatcher.operations;
            let id = operations.create(
                now,
                Activity::Parity.read(),
                Task::Host,
                self.shape.index,
                Cause::Controller,
            );
            let operation = &mut operations[id];
            self.tables.aim(operation, page);
            operation.units = self.shape.units_per_page as u16;
            operation.update = index;
            machine.generate(now, id);
        }
        if pages.is_empty() {
            self.program_update(now, index, machine);
        } else {
            for &id in &self.tasks.updates.list[index as usize].formed {
                machine.dispatcher.operations.set_outside(now, id, Cause::BehindParity);
            }
        }
        *(if modifies { &mut self.tasks.updates.modify } else { &mut self.tasks.updates.reconstruct }) =
            pages;
    }

    /// Forms the program of the parity pages that cover what is written.
    fn form_parity(&mut self, now: Time, index: u32, stripe: u32, written: u128, machine: &mut Machine) {
        let stripes = self.shape.static_stripes.expect("only stripes are updated");
        let mut units = units_of(written, self.shape.units_per_page);
        let mut lane = Lane::EMPTY;
        let count = units.count_ones();
        while units != 0 {
            let lpn = stripes.parity(stripe, units.trailing_zeros());
            self.tables.entries.push(&mut lane, Entry::new(lpn, Home::UNMAPPED, NONE, 0, now), None);
            units &= units - 1;
        }
        let domain = stripes.chip_of(stripes.parity(stripe, 0));
        let id = self.form(now, &mut lane, count, Activity::Parity.program(), domain, machine);
        self.add_to_update(index, id, machine);
    }

    /// Finds the flash pages to read for either way to compute the parity, and
    /// whether the one or the other needs a page that is lost.
    fn find_reads(&mut self, stripe: u32, written: u128) -> (bool, bool) {
        let stripes = self.shape.static_stripes.expect("only stripes are updated");
        let (mut modify, mut reconstruct) = (
            std::mem::take(&mut self.tasks.updates.modify),
            std::mem::take(&mut self.tasks.updates.reconstruct),
        );
        modify.clear();
        reconstruct.clear();
        let units = units_of(written, self.shape.units_per_page);
        let add = |pages: &mut Vec<u32>, lpn: Lpn| {
            let Some(ppn) = self.tables.flash_copy(lpn) else { return false };
            // Garbage once the update has been programmed, or read for it.
            self.tables.map.prefetch_valid(ppn);
            let page = ppn.0 / self.shape.units_per_page;
            let is_lost = self.tables.is_lost(ppn);
            // Only several pages of the host can share a flash page.
            if !is_lost && (self.shape.units_per_page == 1 || !pages.contains(&page)) {
                pages.push(page);
            }
            is_lost
        };
        let mut lost = (false, false);
        for (at, lpn) in stripes.data(stripe).enumerate() {
            let lpn = Lpn(lpn);
            if written >> at & 1 == 1 {
                lost.0 |= add(&mut modify, lpn);
            } else if units >> stripes.unit_of(lpn) & 1 == 1 {
                lost.1 |= add(&mut reconstruct, lpn);
            }
        }
        for unit in (0..self.shape.units_per_page).filter(|unit| units >> unit & 1 == 1) {
            lost.0 |= add(&mut modify, stripes.parity(stripe, unit));
        }
        (self.tasks.updates.modify, self.tasks.updates.reconstruct) = (modify, reconstruct);
        lost
    }

    /// What the parity is computed from is at hand: the programs go on.
    fn program_update(&mut self, now: Time, index: u32, machine: &mut Machine) {
        let Update { stripe, formed, .. } = &mut self.tasks.updates.list[index as usize];
        let (stripe, formed) = (*stripe, std::mem::take(formed));
        let operations = &machine.dispatcher.operations;
        self.tables.compute_parity(stripe, formed.iter().map(|&id| operations[id].entries));
        for &id in &formed {
            machine.dispatcher.operations.set_outside(now, id, Cause::Controller);
            machine.generate(now, id);
        }
        self.tasks.updates.list[index as usize].formed = formed;
    }

    /// A read for the parity of a stripe is done.
    pub fn parity_read_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        self.read_done(now, operation.target, machine);
        let update = &mut self.tasks.updates.list[operation.update as usize];
        update.reads -= 1;
        if update.reads == 0 {
            self.program_update(now, operation.update, machine);
        }
    }

    /// The parity of a logical stripe has been programmed.
    pub fn static_parity_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = self.shape.block_of_page(operation.target);
        let mut ppn = self.shape.first_unit(operation.target);
        let mut next = operation.entries;
        while next != NONE {
            let (entry, following) = self.tables.entries.release(next);
            self.tables.data_programmed(next, &entry, ppn);
            // Updates of a stripe follow each other: this is the newest parity.
            self.tables.install(entry.lpn, entry.from, ppn);
            ppn.0 += 1;
            next = following;
        }
        self.page_programmed(now, Task::Host, block, machine);
        Slc::programmed(self, now, operation, machine);
    }

    /// A program of an update, data or parity, is done; the stripe, if it was
    /// the last.
    pub fn update_programmed(&mut self, operation: &FlashOp) -> Option<u32> {
        let update = &mut self.tasks.updates.list[operation.update as usize];
        update.programs -= 1;
        if update.programs > 0 {
            return None;
        }
        let stripe = update.stripe;
        self.tasks.updates.free.push(operation.update);
        self.tables.parity_settled(stripe);
        Some(stripe)
    }
}

/// The units of a flash page in which there is a page of `written`.
fn units_of(mut written: u128, units_per_page: u32) -> u64 {
    let mut units = 0;
    while written != 0 {
        units |= 1 << (written.trailing_zeros() % units_per_page);
        written &= written - 1;
    }
    units
}
