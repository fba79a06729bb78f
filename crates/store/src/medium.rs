//! A section of the file as the medium of a partition.

use std::sync::{Arc, Mutex};

use flashkeel_device::{BlockId, Cycle, Lpn, Medium, Page, Place, Ppn};

use crate::layout::PAGE_BYTES;
use crate::records::{Held, PLACE_BYTES, Programmed, Record, TRIM_BYTES, Trim, checksum};
use crate::store::{Part, Shared, lock};

/// A section of a store.
pub(crate) struct SectionMedium {
    shared: Arc<Mutex<Shared>>,
    section: usize,
}

impl SectionMedium {
    pub fn new(shared: Arc<Mutex<Shared>>, section: usize) -> SectionMedium {
        SectionMedium { shared, section }
    }
}

impl Medium for SectionMedium {
    fn read(&self, ppn: Ppn) -> Option<Page> {
        lock(&self.shared).read(self.section, ppn.0)
    }

    fn matches(&self, ppn: Ppn, page: &Page) -> bool {
        let record = lock(&self.shared).programmed(self.section, ppn.0);
        let sum = record.ok().flatten().and_then(|record| record.page);
        sum.is_none_or(|sum| sum == checksum(page))
    }

    fn program(&mut self, ppn: Ppn, place: Place, page: Option<&Page>) {
        let mut shared = lock(&self.shared);
        shared.begin_program(self.section, ppn);
        shared.program(self.section, ppn, place, page.map(|page| (page, checksum(page))));
    }

    fn copy(&mut self, from: Ppn, to: Ppn, place: Place) {
        let mut shared = lock(&self.shared);
        shared.begin_program(self.section, to);
        let mut source = None;
        shared.attempt(|shared| {
            let sum = shared.programmed(self.section, from.0)?.and_then(|record| record.page);
            source = sum
                .map(|sum| Ok::<_, std::io::Error>((shared.page(self.section, from.0)?, sum)))
                .transpose()?;
            Ok(())
        });
        // With the checksum that it came with: damage stays seen.
        shared.program(self.section, to, place, source.as_ref().map(|(page, sum)| (page, *sum)));
    }

    fn hold(&mut self, entry: u32, place: Place, page: Option<&Page>) {
        lock(&self.shared).hold(self.section, entry, place, page);
    }

    fn release(&mut self, entry: u32) {
        lock(&self.shared).release(self.section, entry);
    }

    fn trim(&mut self, lpn: Lpn, sequence: u64) {
        lock(&self.shared).attempt(|shared| {
            let offset = shared.sections[self.section].at.trims + u64::from(lpn.0) * TRIM_BYTES as u64;
            shared.write(Part::Trims, &Trim { sequence }.encode(lpn.0), offset)
        });
    }

    fn erase(&mut self, block: BlockId, cycle: Cycle) {
        let mut shared = lock(&self.shared);
        let epoch = shared.epoch;
        let section = &mut shared.sections[self.section];
        let former = section.erases[block.0 as usize].replace(cycle.erases);
        // What has never been programmed has nothing that could be needed.
        let needed_until = if former.is_some() { epoch } else { 0 };
        section.erased_in[block.0 as usize] = needed_until;
        section.erased.push_back((needed_until, block.0, cycle));
        shared.end_erases(self.section);
        shared.note_erase();
    }
}

impl Shared {
    /// Before a block is programmed for the first time since its erase, what was written
    /// up to that is made durable: copies of what it held, or newer versions.
    fn begin_program(&mut self, section: usize, ppn: Ppn) {
        let block = ppn.0 / self.sections[section].at.shape.units_per_block;
        let erased_in = std::mem::take(&mut self.sections[section].erased_in[block as usize]);
        if erased_in != 0 {
            self.await_epoch(erased_in);
            self.end_erases(section);
        }
    }

    fn program(&mut self, section: usize, ppn: Ppn, place: Place, page: Option<(&Page, u32)>) {
        let state = &self.sections[section];
        let block = ppn.0 / state.at.shape.units_per_block;
        let erases = state.erases[block as usize].unwrap_or(0);
        let record = Programmed { place, erases, epoch: self.epoch, page: page.map(|(_, sum)| sum) };
        let (places, pages) = (state.at.places, state.at.pages);
        self.attempt(|shared| {
            if let Some((page, _)) = page {
                shared.write(Part::Pages, page, pages + u64::from(ppn.0) * PAGE_BYTES)?;
            }
            shared.write(Part::Places, &record.encode(ppn.0), places + u64::from(ppn.0) * PLACE_BYTES as u64)
        });
    }

    fn hold(&mut self, section: usize, entry: u32, place: Place, page: Option<&Page>) {
        // Before the former one is given up, which is needed until this is durable.
        let Some(slot) = self.take_slot(section) else {
            let full = || std::io::Error::other("there is no room for another page of the write buffer");
            return self.attempt(|_| Err(full()));
        };
        self.release(section, entry);
        let epoch = self.epoch;
        let state = &mut self.sections[section];
        if state.slot_of.len() <= entry as usize {
            state.slot_of.resize(entry as usize + 1, None);
        }
        state.slot_of[entry as usize] = Some(slot);
        state.stamp += 1;
        let record = Held { place, epoch, stamp: state.stamp, page: page.map(|page| checksum(page)) };
        self.write_held(section, slot, &record, page);
    }

    /// What an entry held is elsewhere, or another page: its place may be used again once
    /// that is durable.
    fn release(&mut self, section: usize, entry: u32) {
        let epoch = self.epoch;
        let state = &mut self.sections[section];
        if let Some(slot) = state.slot_of.get_mut(entry as usize).and_then(Option::take) {
            state.resting.push_back((epoch, slot));
        }
    }
}
