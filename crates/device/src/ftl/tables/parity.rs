//! The bytes of logical stripes: what parity is computed from, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flashkeel_engine::LOGICAL_PAGE_BYTES;

use super::entries::EntryId;
use super::power_cut::Kept;
use super::{Page, Place, Tables};
use crate::address::{Home, Lpn, NONE};

fn add(sum: &mut Page, page: &Page) {
    sum.iter_mut().zip(page).for_each(|(sum, byte)| *sum ^= byte);
}

impl Tables {
    /// Computes the new parity of a stripe from the pages of its `programs`, of
    /// which this has the first entries, and what the parity covers so far.
    #[inline]
    pub(in crate::ftl) fn compute_parity(&mut self, stripe: u32, programs: impl Iterator<Item = EntryId>) {
        if self.pages.is_some() {
            self.compute_bytes_of_parity(stripe, programs);
        }
    }

    // Never part of who calls it: there would be no room on its stack for anything else.
    #[cold]
    #[inline(never)]
    fn compute_bytes_of_parity(&mut self, stripe: u32, programs: impl Iterator<Item = EntryId>) {
        let stripes = self.shape.static_stripes.expect("only stripes are updated");
        let (mut images, mut parity) = (Vec::new(), Vec::new());
        for mut entry in programs {
            while entry != NONE {
                let lpn = self.entries[entry].lpn;
                if lpn.0 < self.shape.lpns {
                    images.push((lpn, Box::new(self.buffered_page(entry))));
                } else {
                    parity.push((lpn, entry));
                }
                entry = self.entries.next(entry);
            }
        }
        let mut covering = Vec::new();
        for (lpn, entry) in parity {
            let unit = stripes.unit_of_parity(lpn);
            let mut sum = [0; LOGICAL_PAGE_BYTES as usize];
            for member in stripes.data(stripe).map(Lpn).filter(|&lpn| stripes.unit_of(lpn) == unit) {
                let new = images.iter().find(|(lpn, _)| *lpn == member);
                let page = match new {
                    Some((_, page)) => **page,
                    None => self.recovered(member).unwrap_or([0; _]),
                };
                add(&mut sum, &page);
            }
            self.hold(entry, &sum);
            covering.push((lpn, Box::new(sum)));
        }
        images.append(&mut covering);
        if let Some(pages) = &mut self.pages {
            pages.updating.insert(stripe, images);
        }
    }

    /// Everything that the new parity of a stripe covers is in flash.
    pub(in crate::ftl) fn parity_settled(&mut self, stripe: u32) {
        let images = self.pages.as_mut().and_then(|pages| pages.updating.remove(&stripe));
        for (lpn, page) in images.unwrap_or_default() {
            if self.pages.as_mut().is_some_and(|pages| pages.outdated.remove(&lpn)) {
                self.replace_parity(lpn, page);
            }
        }
    }

    /// Whether a version of a page is in memory that the new parity of its
    /// stripe covers, or that is this parity.
    pub(in crate::ftl) fn is_updating(&self, lpn: Lpn) -> bool {
        self.image(lpn).is_some()
    }

    fn image(&self, lpn: Lpn) -> Option<&Page> {
        let stripe = self.shape.static_stripes?.stripe_of_any(lpn);
        let images = self.pages.as_ref()?.updating.get(&stripe)?;
        images.iter().find(|(image, _)| *image == lpn).map(|(_, page)| &**page)
    }

    /// A page that parity in memory covers has been given up: from now on it
    /// covers zeros there. What is being programmed is corrected at the end.
    #[cold]
    #[inline(never)]
    pub(in crate::ftl) fn correct_parity(&mut self, parity: Lpn) {
        if !self.is_updating(parity) {
            return;
        }
        let sum = self.rebuilt(parity).expect("what is lost has been given up");
        let stripe = self.shape.static_stripes.map(|stripes| stripes.stripe_of_any(parity));
        let Some((pages, stripe)) = self.pages.as_mut().zip(stripe) else { return };
        let images = pages.updating.get_mut(&stripe).into_iter().flatten();
        images.filter(|(lpn, _)| *lpn == parity).for_each(|(_, page)| **page = sum);
        pages.outdated.insert(parity);
    }

    fn replace_parity(&mut self, lpn: Lpn, page: Box<Page>) {
        if let Some(ppn) = self.flash_copy(lpn) {
            self.set_lost(ppn, false);
            if let Some(pages) = &mut self.pages {
                pages.replace(ppn, Arc::from(page));
            }
        }
    }

    /// The version of a page, of data or parity, that belongs to the stripe's
    /// present parity, if it is not lost.
    fn covered(&self, lpn: Lpn) -> Option<Page> {
        if let Some(page) = self.image(lpn) {
            return Some(*page);
        }
        match self.flash_copy(lpn) {
            None => Some([0; _]),
            Some(ppn) if self.is_lost(ppn) => None,
            Some(ppn) => self.flash_page(ppn),
        }
    }

    /// The same, computed from the rest of the stripe, if none of that is lost.
    pub fn rebuilt(&self, lpn: Lpn) -> Option<Page> {
        let stripes = self.shape.static_stripes.as_ref()?;
        let mut sum = [0; LOGICAL_PAGE_BYTES as usize];
        for mate in stripes.mates(lpn) {
            add(&mut sum, &self.covered(mate)?);
        }
        Some(sum)
    }

    /// The version of a page that belongs to the stripe's present parity, from
    /// wherever it can still be had.
    pub(in crate::ftl) fn recovered(&self, lpn: Lpn) -> Option<Page> {
        self.covered(lpn).or_else(|| self.restored(lpn))
    }

    /// What its stripe makes of a page, if it can be what the page held: where another one is
    /// damaged, or was when the process ended, the parity may be older.
    pub fn restored(&self, lpn: Lpn) -> Option<Page> {
        let pages = self.pages.as_ref()?;
        let can_be = |page: &Page| self.flash_copy(lpn).is_none_or(|ppn| pages.flash.matches(ppn, page));
        self.rebuilt(lpn).filter(can_be)
    }

    /// Makes right again the parity of stripes that were on their way before a restart, those
    /// of the pages `unsettled` and `kept`. Where it is not that of its pages, one of them is
    /// kept to be written again, with a new parity: a trimmed one as zeros. Until then the right
    /// one is in memory.
    pub(super) fn mend_parity(&mut self, unsettled: &[Lpn], kept: &mut BTreeMap<Lpn, Kept>) {
        let Some(stripes) = self.shape.static_stripes else { return };
        let is_map = self.shape.lpns..stripes.parity(0, 0).0;
        let touched = unsettled.iter().chain(kept.keys()).filter(|lpn| !is_map.contains(&lpn.0));
        let touched: BTreeSet<u32> = touched.map(|&lpn| stripes.stripe_of_any(lpn)).collect();
        for stripe in touched {
            let mut images = Vec::new();
            for parity in (0..self.shape.units_per_page).map(|unit| stripes.parity(stripe, unit)) {
                // What is damaged follows from the parity that there is.
                let Some(sum) = self.rebuilt(parity).filter(|sum| self.covered(parity) != Some(*sum)) else {
                    continue;
                };
                let mut members = stripes.mates(parity);
                if !members.any(|lpn| kept.contains_key(&lpn)) {
                    let mut members = stripes.mates(parity).filter(|&lpn| self.flash_copy(lpn).is_some());
                    let Some(lpn) = members.next() else {
                        self.move_home(parity, Home::UNMAPPED);
                        continue;
                    };
                    let page = self.content(lpn).unwrap_or([0; _]);
                    self.set_trimmed(lpn, false);
                    kept.insert(lpn, Kept::new(Place { lpn, sequence: 0 }, page));
                }
                images.push((parity, Box::new(sum)));
            }
            if let Some(pages) = self.pages.as_mut().filter(|_| !images.is_empty()) {
                pages.updating.insert(stripe, images);
            }
        }
    }

    /// Checks that the parity of every stripe at rest is that of its pages.
    /// Slow; for tests.
    ///
    /// # Panics
    /// If it is not so.
    pub(in crate::ftl) fn check_parity(&self) {
        let (Some(stripes), Some(_)) = (&self.shape.static_stripes, &self.pages) else { return };
        for stripe in 0..stripes.len() {
            for unit in 0..self.shape.units_per_page {
                let lpn = stripes.parity(stripe, unit);
                let Some(parity) = self.covered(lpn) else { continue };
                let members = stripes.mates(lpn).map(|mate| self.covered(mate));
                let Some(members) = members.collect::<Option<Vec<_>>>() else { continue };
                let mut sum = [0; LOGICAL_PAGE_BYTES as usize];
                members.iter().for_each(|page| add(&mut sum, page));
                assert!(
                    sum == parity,
                    "the parity of stripe {stripe}, unit {unit}, is not that of its pages"
                );
            }
        }
    }
}
