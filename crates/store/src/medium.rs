//! A section of the file as the medium of a partition.

use std::io;
use std::sync::{Arc, Mutex};

use flashkeel_device::{BlockId, Cycle, Lpn, Medium, Page, Place, Ppn};

use crate::area::Part;
use crate::layout::PAGE_BYTES;
use crate::records::{Held, PLACE_BYTES, Programmed, Record, TRIM_BYTES, Trim, checksum};
use crate::store::{Shared, lock};

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
        record.is_ok_and(|record| match record.and_then(|record| record.page) {
            Some(sum) => sum == checksum(page),
            None => *page == [0; PAGE_BYTES as usize],
        })
    }

    fn program(&mut self, ppn: Ppn, place: Place, page: Option<&Page>) {
        let mut shared = lock(&self.shared);
        shared.begin_program(self.section, ppn);
        let bytes = page.map(|page| Bytes { page: *page, sum: checksum(page), are_damaged: false });
        shared.program(self.section, ppn, place, bytes.as_ref());
    }

    fn copy(&mut self, from: Ppn, to: Ppn, place: Place) {
        let mut shared = lock(&self.shared);
        shared.begin_program(self.section, to);
        // With the checksum that it came with: damage stays seen. What cannot be read is damage of
        // that page alone, as for `read`, and the copy's as well.
        let bytes = match shared.programmed(self.section, from.0) {
            Ok(record) => record
                .and_then(|record| record.page)
                .map(|sum| Bytes::copied(shared.page(self.section, from.0).ok(), sum)),
            Err(_) => Some(Bytes::unknown()),
        };
        shared.program(self.section, to, place, bytes.as_ref());
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
        let epoch = shared.present_epoch();
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

/// What a page in flash is given.
struct Bytes {
    page: Page,
    /// Their checksum, or of those that they should be.
    sum: u32,
    are_damaged: bool,
}

impl Bytes {
    /// Those of another page, if it can be read at all, with the checksum that it came with.
    fn copied(found: Option<Page>, sum: u32) -> Bytes {
        let page = found.unwrap_or([0; PAGE_BYTES as usize]);
        Bytes { are_damaged: found.is_none() || checksum(&page) != sum, page, sum }
    }

    /// Those of a page of which nobody knows any more what they should be: with a checksum that
    /// they do not have.
    fn unknown() -> Bytes {
        let page = [0; PAGE_BYTES as usize];
        Bytes { sum: !checksum(&page), page, are_damaged: true }
    }
}

impl Shared {
    /// The record of a page in flash.
    pub fn programmed(&self, section: usize, ppn: u32) -> io::Result<Option<Programmed>> {
        let offset = self.sections[section].at.places + u64::from(ppn) * PLACE_BYTES as u64;
        let mut bytes = [0; PLACE_BYTES];
        match self.places.pending(offset, PLACE_BYTES) {
            Some(pending) => bytes.copy_from_slice(pending),
            None => self.disk.read_at(&mut bytes, offset)?,
        }
        Programmed::decode(&bytes, ppn).map_err(|_| io::Error::other("a record is damaged"))
    }

    /// The bytes of a page in flash, as they are.
    pub fn page(&self, section: usize, ppn: u32) -> io::Result<Page> {
        let offset = self.sections[section].at.pages + u64::from(ppn) * PAGE_BYTES;
        let mut page = [0; PAGE_BYTES as usize];
        match self.pages.pending(offset, page.len()) {
            Some(pending) => page.copy_from_slice(pending),
            None => self.disk.read_at(&mut page, offset)?,
        }
        Ok(page)
    }

    /// The same, if it is as it was written.
    pub fn read(&mut self, section: usize, ppn: u32) -> Option<Page> {
        let found = self.programmed(section, ppn).and_then(|record| {
            let sum = record.and_then(|record| record.page);
            let page = sum.map(|_| self.page(section, ppn)).transpose()?;
            Ok((record, page))
        });
        let (record, page) = match found {
            Ok((record, page)) => (record, page.unwrap_or([0; _])),
            Err(error) => {
                self.note_damage(section, ppn, &error.to_string());
                return None;
            }
        };
        let sum = record.and_then(|record| record.page);
        if sum.is_some_and(|sum| sum != checksum(&page)) {
            self.note_damage(section, ppn, "its checksum is wrong");
            return None;
        }
        Some(page)
    }

    fn note_damage(&mut self, section: usize, ppn: u32, what: &str) {
        if self.damaged.insert((section, ppn)) {
            let offset = self.sections[section].at.pages + u64::from(ppn) * PAGE_BYTES;
            self.damage.note(|| {
                format!(
                    "physical page {ppn} of partition {section}, at byte {offset} of the file, cannot be read: \
                     {what}"
                )
            });
        }
    }

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

    fn program(&mut self, section: usize, ppn: Ppn, place: Place, bytes: Option<&Bytes>) {
        self.damaged.remove(&(section, ppn.0));
        let epoch = self.present_epoch();
        let state = &self.sections[section];
        let block = ppn.0 / state.at.shape.units_per_block;
        let erases = state.erases[block as usize].unwrap_or(0);
        let (page, is_damaged) = (bytes.map(|bytes| bytes.sum), bytes.is_some_and(|bytes| bytes.are_damaged));
        let record = Programmed { place, erases, epoch, page, is_damaged };
        let (places, pages) = (state.at.places, state.at.pages);
        self.attempt(|shared| {
            if let Some(Bytes { page, .. }) = bytes {
                shared.write(Part::Pages, page, pages + u64::from(ppn.0) * PAGE_BYTES)?;
            }
            shared.write(Part::Places, &record.encode(ppn.0), places + u64::from(ppn.0) * PLACE_BYTES as u64)
        });
    }

    fn hold(&mut self, section: usize, entry: u32, place: Place, page: Option<&Page>) {
        // Before the former one is given up, which is needed until this is durable.
        let Some(slot) = self.take_slot(section) else {
            let full = || io::Error::other("there is no room for another page of the write buffer");
            return self.attempt(|_| Err(full()));
        };
        self.release(section, entry);
        let epoch = self.present_epoch();
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
        let epoch = self.present_epoch();
        let state = &mut self.sections[section];
        if let Some(slot) = state.slot_of.get_mut(entry as usize).and_then(Option::take) {
            state.resting.push_back((epoch, slot));
        }
    }
}
