//! What the upper alone has, as it is kept: a page's last place is the lower.

use flashkeel_engine::{Arena, LOGICAL_PAGE_SECTORS, Lba};

use super::Tier;

impl Tier {
    /// Whether what was kept of any of these pages was found damaged, and has not changed since.
    #[inline]
    pub(super) fn is_damaged(&self, from: Lba, sectors: u32) -> bool {
        if self.damaged.is_empty() {
            return false;
        }
        let end = from.0 + u64::from(sectors);
        let pages = from.0 / LOGICAL_PAGE_SECTORS..end.div_ceil(LOGICAL_PAGE_SECTORS);
        self.damaged.range(pages).next().is_some()
    }

    /// The upper has a page as a change has made it, if that is what is read from now on.
    pub(super) fn keep_written(&mut self, frame: u32, page: u64, sequence: u64, data: &Arena) {
        if let Some(books) = &mut self.books
            && self.table.get(page) == Some(frame)
        {
            self.damaged.remove(&page);
            books.keep(page, sequence, false, data);
        }
    }

    /// The lower has a page as a change has made it, and that is what is read from now on.
    pub(super) fn keep_below(&mut self, page: u64, sequence: u64, data: &Arena) {
        if let Some(books) = &mut self.books {
            self.damaged.remove(&page);
            books.keep(page, sequence, true, data);
        }
    }

    /// Pages of a change have been served, or have not.
    pub(super) fn note_ended(&mut self, sequence: u64, pages: u64) {
        if let Some(books) = &mut self.books {
            books.end(sequence, pages);
        }
    }

    /// The lower has the newest copy of a page.
    pub(super) fn hand_over(&mut self, page: u64) {
        if let Some(books) = &mut self.books {
            books.hand_over(page);
        }
    }
}
