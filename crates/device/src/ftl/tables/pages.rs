//! What pages hold, where their data is real. In simulation nobody asks; tests
//! and servers do.
//!
//! A page that was never given any bytes holds zeros, and so does the parity of
//! such pages. A lost page holds nothing any more: what it held follows from
//! the rest of its stripe.
//!
//! Beside its bytes each physical page holds, out of band, which logical page it
//! is and when that was written, so that the map can be made again from flash.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use flashkeel_engine::Holds;

use super::entries::EntryId;
use super::medium::{Cycle, Flash, Medium, Page, Place};
use super::memory::Memory;
use super::{BlockState, Entry, Tables};
use crate::address::{BlockId, Home, Lpn, Ppn};

/// What lies beside the bytes of a physical page.
#[derive(Clone, Copy)]
struct OutOfBand {
    lpn: Lpn,
    /// Its place in the order of writes.
    sequence: u64,
    /// Whether the page can no longer be read, and nothing can rebuild it.
    has_failed: bool,
}

/// All that a physical page holds.
#[derive(Default)]
pub(in crate::ftl) struct Content {
    page: Option<Arc<Page>>,
    out_of_band: Option<OutOfBand>,
}

/// The bytes of one partition's pages.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    /// By physical page.
    pub(super) flash: Flash,
    /// The same; `None` where nothing has been programmed since the last erase.
    out_of_band: Vec<Option<OutOfBand>>,
    /// The journal of trims: the last one of each page, in the order of writes.
    trims: BTreeMap<Lpn, u64>,
    /// By buffer entry.
    buffered: Vec<Option<Arc<Page>>>,
    pub(super) memory: Memory,
    /// What the new parity of each stripe being updated covers, and that
    /// parity: in memory until all of it is in flash.
    pub(super) updating: BTreeMap<u32, Vec<(Lpn, Box<Page>)>>,
    /// Pages of parity being programmed that cover what has been given up since.
    pub(super) outdated: BTreeSet<Lpn>,
}

/// Puts a value into a list, and returns the one that was there.
pub(super) fn set<T: Clone>(list: &mut Vec<Option<T>>, index: u32, value: Option<T>) -> Option<T> {
    if list.len() <= index as usize {
        list.resize(index as usize + 1, None);
    }
    std::mem::replace(&mut list[index as usize], value)
}

impl Pages {
    fn out_of_band(&self, ppn: Ppn) -> Option<OutOfBand> {
        self.out_of_band.get(ppn.0 as usize).copied().flatten()
    }

    /// What a medium is told of a physical page.
    fn place(&self, ppn: Ppn) -> Option<Place> {
        self.version(ppn).map(|(lpn, sequence)| Place { lpn, sequence })
    }

    /// Programs a physical page.
    fn program(&mut self, ppn: Ppn, out_of_band: Option<OutOfBand>, page: Option<Arc<Page>>) {
        set(&mut self.out_of_band, ppn.0, out_of_band);
        self.flash.program(ppn, self.place(ppn), page);
    }

    /// Gives a physical page other bytes.
    pub(super) fn replace(&mut self, ppn: Ppn, page: Arc<Page>) {
        self.flash.program(ppn, self.place(ppn), Some(page));
    }

    /// Takes away what a physical page holds.
    fn take(&mut self, ppn: Ppn) -> Content {
        let out_of_band = self.out_of_band.get_mut(ppn.0 as usize).and_then(Option::take);
        Content { page: self.flash.take(ppn), out_of_band }
    }

    /// Which logical page a physical one holds, and the place of its write in the
    /// order of writes.
    pub(in crate::ftl) fn version(&self, ppn: Ppn) -> Option<(Lpn, u64)> {
        self.out_of_band(ppn).map(|OutOfBand { lpn, sequence, .. }| (lpn, sequence))
    }

    /// Whether a physical page has failed since it was programmed.
    pub(in crate::ftl) fn has_failed(&self, ppn: Ppn) -> bool {
        self.out_of_band(ppn).is_some_and(|place| place.has_failed)
    }

    /// Whether a page has been trimmed after a place in the order of writes.
    pub(in crate::ftl) fn is_trimmed_since(&self, lpn: Lpn, sequence: u64) -> bool {
        self.trims.get(&lpn).is_some_and(|&trim| trim > sequence)
    }

    /// Whether two physical pages hold the same version of a page, or none.
    pub(in crate::ftl) fn are_alike(&self, one: Option<Ppn>, other: Option<Ppn>) -> bool {
        one.map(|ppn| self.version(ppn)) == other.map(|ppn| self.version(ppn))
    }

    /// Forgets what the controller had in memory, but for the parity of updates.
    pub(in crate::ftl) fn forget_memory(&mut self) {
        self.buffered.clear();
        self.outdated.clear();
    }
}

/// Pages that a medium is told of between two looks whether to go on.
const WATCH_EVERY: u32 = 1 << 14;

impl Tables {
    /// From now on pages hold bytes: zeros, until others are written.
    pub fn keep_data(&mut self) {
        let mut pages = Pages::default();
        for lpn in (0..self.map.lpns()).map(Lpn) {
            if let Some(ppn) = self.flash_copy(lpn) {
                set(&mut pages.out_of_band, ppn.0, Some(OutOfBand { lpn, sequence: 0, has_failed: false }));
            }
        }
        self.pages = Some(pages);
    }

    /// The same, in a `medium`, which is told what there is. `watch` is told the fraction of it
    /// that it has been told, and may break that off.
    pub fn keep_data_in(
        &mut self,
        medium: Box<dyn Medium>,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.keep_data();
        let Some(pages) = &mut self.pages else { return ControlFlow::Continue(()) };
        pages.flash = Flash::Elsewhere(medium);
        // What is programmed is of the last cycle of its block.
        (0..self.blocks.len()).for_each(|block| self.note_cycle(BlockId(block)));
        let Some(pages) = &mut self.pages else { return ControlFlow::Continue(()) };
        let count = pages.out_of_band.len() as u32;
        for ppn in (0..count).map(Ppn) {
            pages.flash.program(ppn, pages.place(ppn), None);
            if ppn.0.is_multiple_of(WATCH_EVERY) {
                watch(f64::from(ppn.0) / f64::from(count))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The same, in a medium in which pages have been found.
    pub(super) fn take_found(
        &mut self,
        medium: Box<dyn Medium>,
        places: &[Option<Place>],
        trims: &[(Lpn, u64)],
    ) {
        let place = |&Place { lpn, sequence }: &Place| OutOfBand { lpn, sequence, has_failed: false };
        self.pages = Some(Pages {
            flash: Flash::Elsewhere(medium),
            out_of_band: places.iter().map(|found| found.as_ref().map(place)).collect(),
            trims: trims.iter().copied().collect(),
            ..Pages::default()
        });
    }

    /// Whether what pages hold lies in a medium.
    pub fn is_in_medium(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| matches!(pages.flash, Flash::Elsewhere(_)))
    }

    /// Tells the medium of a block what is known of it.
    fn note_cycle(&mut self, block: BlockId) {
        let Some(medium) = self.pages.as_mut().and_then(|pages| pages.flash.medium()) else { return };
        let (worn, erased_at) = self.wear.as_ref().map_or_else(Default::default, |wear| wear.of(block.0));
        let is_retired = self.blocks.state(block) == BlockState::Retired;
        medium.erase(block, Cycle { erases: self.blocks.erase_count(block), worn, erased_at, is_retired });
    }

    /// Gives a buffer entry its bytes.
    pub fn hold(&mut self, entry: EntryId, page: &Page) {
        if let Some(pages) = &mut self.pages {
            let held = pages.memory.page(page);
            let former = set(&mut pages.buffered, entry, Some(held));
            former.into_iter().for_each(|page| pages.memory.give_back(page));
            if let Some(medium) = pages.flash.medium() {
                let Entry { lpn, sequence, .. } = self.entries[entry];
                // Parity on its way is computed anew after a restart, and may be given up.
                let page = Some(page).filter(|_| lpn.0 < self.shape.lpns);
                medium.hold(entry, Place { lpn, sequence }, page);
            }
        }
    }

    /// The bytes of a buffer entry are in flash.
    #[inline]
    pub(in crate::ftl) fn data_programmed(&mut self, id: EntryId, entry: &Entry, ppn: Ppn) {
        if self.pages.is_some() {
            self.bytes_programmed(id, entry, ppn);
        }
    }

    #[cold]
    fn bytes_programmed(&mut self, id: EntryId, entry: &Entry, ppn: Ppn) {
        debug_assert!(self.is_in_order(ppn), "{ppn:?} is programmed after pages behind it");
        let Some(pages) = &mut self.pages else { return };
        let page = pages.buffered.get(id as usize).cloned().flatten();
        let &Entry { lpn, sequence, .. } = entry;
        pages.program(ppn, Some(OutOfBand { lpn, sequence, has_failed: false }), page);
        if let Some(medium) = pages.flash.medium() {
            medium.release(id);
        }
    }

    /// An entry has been programmed: notes out of band which page it is.
    #[inline]
    pub(in crate::ftl) fn note_programmed(&mut self, entry: &Entry, ppn: Ppn) {
        if let Some(pages) = &mut self.pages {
            let &Entry { lpn, sequence, .. } = entry;
            pages.program(ppn, Some(OutOfBand { lpn, sequence, has_failed: false }), None);
        }
    }

    /// Notes a trim in the journal.
    #[inline]
    pub(in crate::ftl) fn note_trim(&mut self, lpn: Lpn) {
        if let Some(pages) = &mut self.pages {
            let sequence = self.entries.next_sequence();
            pages.trims.insert(lpn, sequence);
            if let Some(medium) = pages.flash.medium() {
                medium.trim(lpn, sequence);
            }
        }
    }

    /// The same, of a page that its stripe still holds: in memory it is known to be trimmed
    /// ([`is_trimmed`](Self::is_trimmed)), a medium has to be told.
    pub(in crate::ftl) fn note_trim_in_stripe(&mut self, lpn: Lpn) {
        if let Some(medium) = self.pages.as_mut().and_then(|pages| pages.flash.medium()) {
            medium.trim(lpn, self.entries.next_sequence());
        }
    }

    /// A block holds nothing any more.
    #[inline]
    pub(in crate::ftl) fn data_erased(&mut self, block: BlockId) {
        let Some(pages) = &mut self.pages else { return };
        for ppn in self.shape.units_of_block(block) {
            pages.take(ppn).page.into_iter().for_each(|page| pages.memory.give_back(page));
        }
        self.note_cycle(block);
    }

    /// Takes away what a physical page holds, from a medium too: its block is about to be
    /// erased. Whether all of it could be read.
    pub(in crate::ftl) fn take_content(&mut self, ppn: Ppn) -> (Content, bool) {
        let is_in_medium = self.is_in_medium();
        let Some(pages) = &mut self.pages else { return (Content::default(), true) };
        let mut content = pages.take(ppn);
        if !is_in_medium || content.out_of_band.is_none() {
            return (content, true);
        }
        content.page = pages.flash.read(ppn).map(Arc::new);
        let is_read = content.page.is_some();
        (content, is_read)
    }

    /// Whether nothing behind a page has been programmed in its block, as flash wants it.
    fn is_in_order(&self, ppn: Ppn) -> bool {
        let next = Ppn(ppn.0 - ppn.0 % self.shape.units_per_page + self.shape.units_per_page);
        // Each chip has pages of its own of a block that lies on several.
        let is_last = self.shape.stripes.width() > 1 || next.0.is_multiple_of(self.shape.units_per_block);
        is_last || self.pages.as_ref().is_none_or(|pages| pages.version(next).is_none())
    }

    /// Programs a physical page with what another held.
    pub(in crate::ftl) fn set_content(&mut self, ppn: Ppn, content: Content) {
        debug_assert!(self.is_in_order(ppn), "{ppn:?} is programmed after pages behind it");
        if let Some(pages) = &mut self.pages {
            pages.program(ppn, content.out_of_band, content.page);
        }
    }

    /// A page has been copied from one place to another; if it was lost, so is
    /// the copy.
    #[inline]
    pub(in crate::ftl) fn data_copied(&mut self, from: Home, to: Ppn) {
        if self.is_lost(Ppn(from.0)) {
            self.set_lost(to, true);
        }
        if self.pages.is_some() {
            self.bytes_copied(from, to);
        }
    }

    #[cold]
    fn bytes_copied(&mut self, from: Home, to: Ppn) {
        if let Some(pages) = &mut self.pages {
            let beside = pages.out_of_band(Ppn(from.0));
            set(&mut pages.out_of_band, to.0, beside);
            pages.flash.copy(Ppn(from.0), to, pages.place(to));
        }
    }

    /// Forgets what a physical page holds.
    pub(in crate::ftl) fn data_lost(&mut self, ppn: Ppn) {
        if let Some(pages) = &mut self.pages {
            drop(pages.flash.take(ppn));
        }
    }

    /// A physical page can no longer be read, and nothing can rebuild it; pages of the
    /// map are kept twice.
    pub(in crate::ftl) fn data_failed(&mut self, ppn: Ppn) {
        self.data_lost(ppn);
        let lpns = self.shape.lpns;
        let places = self.pages.iter_mut().flat_map(|pages| pages.out_of_band.get_mut(ppn.0 as usize));
        places.flatten().filter(|place| place.lpn.0 < lpns).for_each(|place| place.has_failed = true);
    }

    /// A lost page of `lpn`, which was at `from`, has been rebuilt in memory and
    /// programmed; whether it could be: if more of its stripe is damaged, that is a copy
    /// of what it has become.
    #[cold]
    #[inline(never)]
    pub(in crate::ftl) fn data_restored(&mut self, lpn: Lpn, from: Home, ppn: Ppn) -> bool {
        if self.pages.is_none() {
            return true;
        }
        let Some(page) = self.recovered(lpn).map(Arc::new) else {
            self.bytes_copied(from, ppn);
            return false;
        };
        if let Some(pages) = &mut self.pages {
            let out_of_band = pages.out_of_band(Ppn(from.0));
            self.set_content(ppn, Content { page: Some(page), out_of_band });
        }
        true
    }

    /// The last copy of a page has been given up: the map has no place for it.
    pub(in crate::ftl) fn data_given_up(&mut self, ppn: Ppn) {
        drop(self.pages.as_mut().map(|pages| pages.take(ppn)));
    }

    /// The former version of a page, at `home`, has been given up, and a newer one is in
    /// memory that keeps it: none as old is looked for in flash any more.
    pub(in crate::ftl) fn data_outdated(&mut self, home: Home) {
        let Some(pages) = &mut self.pages else { return };
        if let Some((lpn, sequence)) = pages.version(Ppn(home.0)) {
            let trim = pages.trims.entry(lpn).or_default();
            *trim = (*trim).max(sequence + 1);
            let trim = *trim;
            if let Some(medium) = pages.flash.medium() {
                medium.trim(lpn, trim);
            }
        }
    }

    pub(in crate::ftl) fn buffered_page(&self, entry: EntryId) -> Page {
        let pages = self.pages.as_ref().expect("data is kept");
        pages.buffered.get(entry as usize).and_then(Option::as_deref).copied().unwrap_or([0; _])
    }

    /// What a logical page holds for the host; `None` if it is lost for good.
    pub fn content(&self, lpn: Lpn) -> Option<Page> {
        let home = self.map.home(lpn);
        if home == Home::UNMAPPED || self.is_trimmed(lpn) {
            return Some([0; _]);
        }
        match self.buffered(home) {
            Some(entry) => Some(self.buffered_page(entry)),
            None if self.is_lost(Ppn(home.0)) => self.recovered(lpn),
            None => self.flash_page(Ppn(home.0)),
        }
    }

    /// What there is of a logical page, as far as is known.
    pub fn holds(&self, lpn: Lpn) -> Holds {
        let home = self.map.home(lpn);
        if self.is_gone(lpn) {
            return Holds::Data;
        }
        if home == Home::UNMAPPED || self.is_trimmed(lpn) {
            return Holds::Nothing;
        }
        // What was there before any write has no place in their order.
        let written = self.pages.as_ref().and_then(|pages| pages.version(Ppn(home.0)));
        match written {
            Some((_, 0)) if self.buffered(home).is_none() => Holds::Zeros,
            _ => Holds::Data,
        }
    }

    /// What a read of `lpn` at `ppn` brings, or the reads that rebuild it;
    /// `None` if it is lost for good.
    pub fn read_page(&self, lpn: Lpn, ppn: Ppn, is_rebuilt: bool) -> Option<Page> {
        let rebuilt = if is_rebuilt { self.restored(lpn) } else { None };
        // What has been lost, or may have been erased, on the way is found elsewhere.
        let has_moved = self.is_lost(ppn) || (is_rebuilt && self.shape.static_stripes.is_some());
        rebuilt.or_else(|| if has_moved { self.content(lpn) } else { self.flash_page(ppn) })
    }

    pub(super) fn flash_page(&self, ppn: Ppn) -> Option<Page> {
        self.pages.as_ref().expect("data is kept").flash.read(ppn)
    }
}
