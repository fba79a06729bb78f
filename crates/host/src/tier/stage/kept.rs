//! What the upper alone has, as it is kept: a page's last place is the lower.

use flashkeel_engine::Arena;

use super::Tier;

impl Tier {
    /// The upper has a page as a change has made it, if that is what is read from now on.
    pub(super) fn keep_written(&mut self, frame: u32, page: u64, sequence: u64, data: &Arena) {
        if let Some(books) = &mut self.books
            && self.table.get(page) == Some(frame)
        {
            books.keep(page, sequence, false, data);
        }
    }

    /// The lower has a page as a change has made it, and that is what is read from now on.
    pub(super) fn keep_below(&mut self, page: u64, sequence: u64, data: &Arena) {
        if let Some(books) = &mut self.books {
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
