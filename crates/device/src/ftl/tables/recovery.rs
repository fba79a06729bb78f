//! The tables of a partition, made again from what a medium holds after a restart.
//!
//! The map follows from what lies out of band. So does what a block is doing: it is free
//! if nothing has been programmed since its last erase, full if its last page has been,
//! else open. Which writer had opened it is not kept: on each chip the blocks that are
//! open go to the writers in turn, and those beyond are closed as they are. A page that
//! was being programmed is left out, and lost room until its block is collected. What is
//! nowhere (counts of reads, the map cache, rotations) begins anew.

use std::collections::{BTreeMap, VecDeque};

use super::{BlockState, Blocks, Cycle, Found, Kept, Medium, MediumShape, Place, Tables};
use crate::address::{BlockId, Home, Lpn, Ppn};
use crate::sched::Task;

/// What is known of a block after a restart.
#[derive(Clone, Copy, Debug)]
struct Known {
    state: BlockState,
    erases: u32,
    /// Its place among the others: in the order in which they became free, or full.
    order: u64,
}

/// Who goes on with blocks that are found open, on each chip.
const WRITERS: [Task; 3] = [Task::Host, Task::Gc, Task::Map];

impl Tables {
    /// How large a medium for all of this has to be, with so many pages in the write
    /// buffer at most.
    pub fn medium_shape(&self, held: u32) -> MediumShape {
        // Beside its parity on its way, a page for each that is not right after a restart.
        let stripes = self.shape.static_stripes;
        let held = held + stripes.map_or(0, |stripes| stripes.parity_lpns());
        MediumShape {
            lpns: self.map.lpns(),
            ppns: self.map.ppns(),
            units_per_block: self.shape.units_per_block,
            held,
        }
    }

    /// Makes the tables of an empty partition those of what has been found in `medium`.
    /// Returns the pages that were in the write buffer, in the order of their writes.
    pub fn recover(&mut self, medium: Box<dyn Medium>, found: Found) -> Vec<Kept> {
        let Found { places, trims, held, unsettled, cycles } = found;
        let is_striped = self.shape.static_stripes.is_some();
        let trimmed: BTreeMap<Lpn, u64> = trims.iter().copied().collect();
        let is_there = |place: &Place| trimmed.get(&place.lpn).is_none_or(|&trim| trim <= place.sequence);
        let mut newest: Vec<Option<(u64, Ppn)>> = vec![None; self.map.lpns() as usize];
        let mut made = trims.iter().map(|&(_, sequence)| sequence).max().unwrap_or(0);
        for (place, ppn) in
            places.iter().zip((0..).map(Ppn)).filter_map(|(place, ppn)| Some(((*place)?, ppn)))
        {
            made = made.max(place.sequence);
            let best = &mut newest[place.lpn.0 as usize];
            // A stripe still holds what has been trimmed.
            if (is_striped || is_there(&place)) && best.is_none_or(|best| best.0 <= place.sequence) {
                *best = Some((place.sequence, ppn));
            }
        }
        let mut kept = BTreeMap::new();
        for (place, page) in held {
            made = made.max(place.sequence);
            // Parity on its way is computed anew.
            if place.lpn.0 >= self.shape.lpns {
                continue;
            }
            let in_flash = &mut newest[place.lpn.0 as usize];
            if !is_there(&place) || in_flash.is_some_and(|(sequence, _)| sequence >= place.sequence) {
                continue;
            }
            match page {
                Some(page) => drop(kept.insert(place.lpn, Kept::new(place, *page))),
                // What is older is not what the host has written.
                None => {
                    *in_flash = None;
                    kept.remove(&place.lpn);
                    self.set_gone(place.lpn, true);
                }
            }
        }
        self.entries.resume(made);
        let is_behind = |lpn: &Lpn| !self.shape.keeps_behind && kept.contains_key(lpn);
        let homes = (0..).map(Lpn).zip(&newest).filter(|(lpn, _)| !is_behind(lpn));
        let mut valid = vec![0; self.blocks.len() as usize];
        for (lpn, ppn) in homes.filter_map(|(lpn, found)| Some((lpn, (*found)?.1))) {
            self.map.set_home(lpn, Home(ppn.0));
            self.map.set_valid(ppn, lpn);
            valid[self.shape.block_of(ppn).0 as usize] += 1;
        }
        self.recover_blocks(&places, &cycles, &valid);
        self.take_found(medium, &places, &trims);
        if is_striped {
            for (lpn, trim) in trims.into_iter().filter(|(lpn, _)| !kept.contains_key(lpn)) {
                let is_older = |(sequence, _)| sequence < trim;
                self.set_trimmed(lpn, newest[lpn.0 as usize].is_some_and(is_older));
            }
            self.mend_parity(&unsettled, &mut kept);
        }
        let mut kept: Vec<Kept> = kept.into_values().collect();
        kept.sort_by_key(Kept::sequence);
        kept
    }

    /// What each block is doing, and has been through.
    fn recover_blocks(&mut self, places: &[Option<Place>], cycles: &[Cycle], valid: &[u32]) {
        let mut open: Vec<(BlockId, u32)> = Vec::new();
        let mut known = Vec::new();
        for (block, &Cycle { erases, worn, erased_at, is_retired }) in (0..).map(BlockId).zip(cycles) {
            let units = self.shape.units_of_block(block).map(|ppn| places[ppn.0 as usize]);
            let (mut next_page, mut newest) = (0, 0);
            for (unit, place) in (0..).zip(units).filter_map(|(unit, place)| Some((unit, place?))) {
                next_page = unit / self.shape.units_per_page + 1;
                newest = newest.max(place.sequence);
            }
            next_page += u32::from(next_page > 0 && self.shape.stripes.is_parity(next_page));
            let state = match next_page {
                _ if is_retired => BlockState::Retired,
                0 => BlockState::Free,
                next if next >= self.shape.pages_per_block => BlockState::Full,
                next => {
                    open.push((block, next));
                    BlockState::Full
                }
            };
            known.push(Known { state, erases, order: if next_page == 0 { erased_at.0 } else { newest } });
            if let Some(wear) = &mut self.wear {
                wear.restore(block.0, worn, erased_at);
            }
        }
        let mut writers = vec![WRITERS.iter(); (self.blocks.len() / self.blocks.per_chip()) as usize];
        // Those with the most room first.
        open.sort_by_key(|&(block, next)| (next, block));
        for (block, next) in open {
            let chip = self.blocks.chip(block);
            let writers = &mut writers[chip as usize];
            let mut able = writers.filter(|&&writer| writer != Task::Map || self.shape.map_in_flash);
            if let Some(&writer) = able.next() {
                known[block.0 as usize].state = BlockState::Open;
                self.points.reopen(writer, chip, block, next);
            }
        }
        self.blocks.recover(&known, valid);
        let retired: Vec<BlockId> = self.blocks.in_state(BlockState::Retired).collect();
        retired.into_iter().for_each(|block| self.count_retired(block));
    }
}

impl Blocks {
    /// Takes over what is known of each block, and its valid pages.
    fn recover(&mut self, known: &[Known], valid: &[u32]) {
        let mut order: Vec<usize> = (0..known.len()).collect();
        order.sort_by_key(|&block| (known[block].order, block));
        self.free.iter_mut().for_each(VecDeque::clear);
        self.free_by_domain.fill(0);
        self.closes = 0;
        for block in order {
            let Known { state, erases, .. } = known[block];
            (self.states[block], self.erase_counts[block]) = (state, erases);
            let (chip, domain) = (self.chip(BlockId(block as u32)), self.domain(BlockId(block as u32)));
            match state {
                BlockState::Free => {
                    self.free[chip as usize].push_back(block as u32);
                    self.free_by_domain[domain as usize] += 1;
                }
                BlockState::Full => {
                    self.closed[block] = self.closes;
                    self.closes += 1;
                }
                _ => {}
            }
        }
        self.restart(valid);
    }
}
