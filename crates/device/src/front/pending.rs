//! Pages that wait for a flush, whichever way they are gathered: by allocation
//! domain (`lanes.rs`) or by logical stripe (`stripes.rs`).

use flashkeel_engine::{Span, Time};

use crate::address::Lpn;
use crate::front::buffer::Pending;
use crate::ssd::Ssd;

impl Ssd {
    /// Puts one page of a request into the buffer and starts the flushes it
    /// triggers; whether there were any.
    #[inline]
    pub(super) fn buffer_page(&mut self, now: Time, part: usize, lpn: Lpn, index: u32) -> bool {
        match self.partitions[part].buffer.pending {
            Pending::Lanes(_) => self.insert_in_lane(now, part, lpn, index),
            Pending::Stripes(_) => self.insert_in_stripe(now, part, lpn, index),
        }
    }

    /// Flushes everything pending, as far as so much may be in flight; the rest follows as
    /// others land. That ends a deterministic window.
    pub(crate) fn flush_all(&mut self, now: Time, part: usize) {
        if self.partitions[part].buffer.is_held {
            return self.leave_to_flush(now, part);
        }
        match self.partitions[part].buffer.pending {
            Pending::Lanes(_) => self.flush_lanes(now, part),
            Pending::Stripes(_) => self.flush_stripes(now, part),
        }
    }

    /// Flushes what has been there for long enough; when the next will have been,
    /// if there is more.
    pub(super) fn flush_old(&mut self, now: Time, part: usize, timeout: Span) -> Option<Time> {
        match self.partitions[part].buffer.pending {
            Pending::Lanes(_) => self.flush_old_pages(now, part, timeout),
            Pending::Stripes(_) => self.flush_old_stripes(now, part, timeout),
        }
    }

    /// Flushes what flush commands wait for, or what was to be flushed with everything, as
    /// far as so much may be in flight; true if the rest has to follow as others land.
    pub(super) fn flush_owed(&mut self, now: Time, part: usize) -> bool {
        let Some(commanded) = self.partitions[part].buffer.commanded else { return false };
        let is_over = match self.partitions[part].buffer.pending {
            Pending::Lanes(_) => self.flush_owed_pages(now, part),
            Pending::Stripes(_) => self.flush_owed_stripes(now, part, commanded),
        };
        if is_over {
            self.partitions[part].buffer.commanded = None;
        }
        !is_over
    }

    /// After room has come: flushes that had to wait, first those that are commanded. They
    /// wait for no window: it begins when they are over.
    pub(super) fn retry_flushes(&mut self, now: Time, part: usize) {
        if self.flush_owed(now, part) || self.partitions[part].buffer.is_held {
            return;
        }
        match self.partitions[part].buffer.pending {
            Pending::Lanes(_) => self.retry_lanes(now, part),
            Pending::Stripes(_) => self.retry_stripes(now, part),
        }
    }
}
