//! Pages whose newest acknowledged copy may be in one place only, kept for whoever comes after
//! this process.
//!
//! As long as anything is kept of a page, that is its newest acknowledged copy, wherever that
//! is: a change that reaches its last place at once is kept, too, and then handed over. So a
//! copy that is found is newer than what the devices have, or the same, whatever was lost with
//! the power; and one that has been given up is durable in its last place.

use std::collections::BTreeMap;
use std::ops::Range;

use flashkeel_engine::{Arena, Keeper, Kept, LOGICAL_PAGE_SECTORS, Request};

/// The keeper, and what is on its way to it.
#[derive(Clone)]
pub(crate) struct Books {
    kept: Kept,
    /// Changes on their way by their number, and how many of their pages are.
    changes: BTreeMap<u64, (Request, u64)>,
}

impl Books {
    pub fn new(keeper: Box<dyn Keeper>) -> Books {
        Books { kept: Kept::by(keeper), changes: BTreeMap::new() }
    }

    /// A change of whole pages has come.
    pub fn begin(&mut self, change: u64, request: &Request) {
        let pages = u64::from(request.sectors) / LOGICAL_PAGE_SECTORS;
        self.changes.insert(change, (*request, pages));
    }

    /// So many pages of a change have been served, or have not.
    pub fn end(&mut self, change: u64, pages: u64) {
        if let Some((_, left)) = self.changes.get_mut(&change) {
            *left -= pages;
            if *left == 0 {
                self.changes.remove(&change);
            }
        }
    }

    /// Keeps what a change makes of a page, which is in its last place if `is_there`: then that
    /// is worth it only where something older is kept.
    pub fn keep(&mut self, page: u64, change: u64, is_there: bool, data: &Arena) {
        let Some(keeper) = self.kept.keeper().filter(|keeper| !is_there || keeper.has(page as u32)) else {
            return;
        };
        let Some((request, _)) = self.changes.get(&change) else { return };
        let from = (page * LOGICAL_PAGE_SECTORS - request.lba.0) as u32;
        // Without bytes it was a trim, or zeros.
        let bytes = data.read(request.payload.skip(from), LOGICAL_PAGE_SECTORS as u32);
        keeper.keep(page as u32, bytes.map(|bytes| bytes.try_into().expect("a page of bytes")));
        if is_there {
            keeper.hand_over(page as u32);
        }
    }

    /// What is kept of a page is in its last place.
    pub fn hand_over(&mut self, page: u64) {
        self.kept.keeper().into_iter().for_each(|keeper| keeper.hand_over(page as u32));
    }

    /// Pages have been made the same in all of their places.
    pub fn agreed(&mut self, pages: Range<usize>) {
        self.kept.keeper().into_iter().for_each(|keeper| keeper.agreed(numbers(&pages)));
    }

    /// Pages have been read.
    pub fn shown(&mut self, pages: Range<usize>) {
        self.kept.keeper().into_iter().for_each(|keeper| keeper.shown(numbers(&pages)));
    }

    /// What was on its way is forgotten.
    pub fn cut_power(&mut self) {
        self.changes.clear();
    }
}

fn numbers(pages: &Range<usize>) -> Range<u32> {
    pages.start as u32..pages.end as u32
}
