//! A section of the file that keeps pages of whoever has no flash: a memory, or a tier, which
//! alone knows what its upper device has for the lower.
//!
//! Each page lies in one of the places that elsewhere hold a write buffer. A page that changes
//! goes to another place, and its former one may be used again once that is durable. What has
//! been handed over stays where it is until whoever has it has made it durable, then a trim
//! makes it void, and once that is durable its place may be used again: so what is found of a
//! page is never older than what was durable, whatever a loss of power takes.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use flashkeel_device::{Lpn, Place};
use flashkeel_engine::{Keeper, PageBytes};

use crate::area::Part;
use crate::layout::PAGE_BYTES;
use crate::records::{Held, PLACE_BYTES, Record, TRIM_BYTES, Trim, checksum};
use crate::store::{Shared, lock};

/// Pages that are handed over at a time before somebody begins to synchronise, so that they can
/// be given up.
const MOST_HANDED_OVER: usize = 2048;

/// Runs of pages that agree but for a loss of power, before somebody begins to synchronise: all of
/// them are looked through for each read.
const MOST_AGREED: usize = 256;

/// A section of a store.
pub(crate) struct SectionKeeper {
    shared: Arc<Mutex<Shared>>,
    section: usize,
}

impl SectionKeeper {
    pub fn new(shared: Arc<Mutex<Shared>>, section: usize) -> SectionKeeper {
        SectionKeeper { shared, section }
    }
}

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub slot: u32,
    /// Its place in the order of all that were kept.
    pub sequence: u64,
}

impl Keeper for SectionKeeper {
    fn keep(&mut self, page: u32, bytes: Option<&PageBytes>) {
        lock(&self.shared).keep(self.section, page, bytes);
    }

    fn clear(&mut self, page: u32) {
        let mut shared = lock(&self.shared);
        if let Some(kept) = shared.sections[self.section].kept.get(&page).copied() {
            shared.void(self.section, page, kept);
        }
    }

    fn hand_over(&mut self, page: u32) {
        let mut shared = lock(&self.shared);
        let epoch = shared.present_epoch();
        let state = &mut shared.sections[self.section];
        if let Some(kept) = state.kept.get(&page) {
            state.handed_over.push_back((epoch, page, *kept));
        }
        if state.handed_over.len() >= MOST_HANDED_OVER {
            shared.begin_sync_unless_busy();
        }
    }

    fn agreed(&mut self, pages: Range<u32>) {
        let mut shared = lock(&self.shared);
        let epoch = shared.present_epoch();
        if shared.sections[self.section].agreed.add(epoch, pages) >= MOST_AGREED {
            shared.begin_sync_unless_busy();
        }
    }

    fn shown(&mut self, pages: Range<u32>) {
        let mut shared = lock(&self.shared);
        let synced = shared.synced();
        let settled_by = shared.sections[self.section].agreed.settled_by(&pages, synced);
        shared.owed = settled_by.unwrap_or(0).max(shared.owed);
    }

    fn has(&self, page: u32) -> bool {
        lock(&self.shared).sections[self.section].kept.contains_key(&page)
    }
}

impl Shared {
    fn keep(&mut self, section: usize, page: u32, bytes: Option<&PageBytes>) {
        let Some(slot) = self.take_slot(section) else {
            let full = || io::Error::other("there is no room for another page");
            return self.attempt(|_| Err(full()));
        };
        let epoch = self.present_epoch();
        let state = &mut self.sections[section];
        state.sequence += 1;
        state.stamp += 1;
        let kept = Kept { slot, sequence: state.sequence };
        if let Some(former) = state.kept.insert(page, kept) {
            state.resting.push_back((epoch, former.slot));
        }
        let place = Place { lpn: Lpn(page), sequence: kept.sequence };
        let sum = bytes.map(|bytes| checksum(bytes));
        let record = Held { place, epoch, stamp: state.stamp, page: sum };
        self.write_held(section, slot, &record, bytes);
    }

    /// Writes down that a page holds nothing any more.
    fn void(&mut self, section: usize, page: u32, kept: Kept) {
        let epoch = self.present_epoch();
        let state = &mut self.sections[section];
        state.kept.remove(&page);
        state.resting.push_back((epoch, kept.slot));
        let offset = state.at.trims + u64::from(page) * TRIM_BYTES as u64;
        let trim = Trim { sequence: kept.sequence + 1 }.encode(page);
        self.attempt(|shared| shared.write(Part::Trims, &trim, offset));
    }

    /// Gives up what has been handed over and is durable with whoever has it, unless the page
    /// has been kept again.
    pub fn end_handed_over(&mut self, section: usize) {
        if self.sections[section].handed_over.is_empty() {
            return;
        }
        let synced = self.synced();
        while let Some(&(_, page, kept)) =
            self.sections[section].handed_over.front().filter(|(epoch, ..)| *epoch <= synced)
        {
            self.sections[section].handed_over.pop_front();
            if self.sections[section].kept.get(&page) == Some(&kept) {
                self.void(section, page, kept);
            }
        }
    }

    /// Writes a page to a place for those that are not in flash.
    pub fn write_held(&mut self, section: usize, slot: u32, record: &Held, bytes: Option<&PageBytes>) {
        let at = &self.sections[section].at;
        let (slots, held) = (at.slots, at.held);
        self.attempt(|shared| {
            if let Some(bytes) = bytes {
                shared.write(Part::Held, bytes, held + u64::from(slot) * PAGE_BYTES)?;
            }
            shared.write(Part::Slots, &record.encode(slot), slots + u64::from(slot) * PLACE_BYTES as u64)
        });
    }

    /// A place for another page; `None` where all of them are needed.
    pub fn take_slot(&mut self, section: usize) -> Option<u32> {
        // What has been handed over rests once more when it has been given up.
        for _ in 0..4 {
            self.end_handed_over(section);
            self.reclaim(section);
            if let Some(slot) = self.sections[section].free.pop_front() {
                return Some(slot);
            }
            let state = &self.sections[section];
            let resting = state.resting.front().map(|&(epoch, _)| epoch);
            let handed_over = state.handed_over.front().map(|&(epoch, ..)| epoch);
            self.await_epoch(resting.into_iter().chain(handed_over).min()?);
        }
        None
    }

    /// Takes back the places whose rest is over.
    fn reclaim(&mut self, section: usize) {
        let synced = self.synced();
        let state = &mut self.sections[section];
        let over = state.resting.iter().take_while(|(epoch, _)| *epoch <= synced).count();
        // They are the next, in their order, so that few are ever used.
        for (_, slot) in state.resting.drain(..over).rev() {
            state.free.push_front(slot);
        }
    }
}
