//! Aging: writing on to a device without timing, for as long as it takes wear to
//! show. Garbage is collected and wear levelled by the policies of a run; only
//! what comes of operations at the same time is left out.

use flashkeel_engine::Time;

use super::Ftl;
use super::fill::Untimed;
use crate::address::{BlockId, Lpn};
use crate::sched::Task;

/// A partition that is written to without timing.
pub(crate) struct Aging<'a>(Untimed<'a>);

impl Ftl {
    /// Begins to age a partition at rest.
    pub fn age(&mut self) -> Aging<'_> {
        Aging(Untimed::new(self))
    }
}

impl Aging<'_> {
    /// Writes a page of the host at `now`.
    #[inline]
    pub fn write(&mut self, now: Time, lpn: Lpn) {
        self.0.now = Some(now);
        self.0.write(lpn);
        self.0.write_parity(lpn);
    }

    /// Leaves the partition at rest.
    pub fn end(mut self) {
        self.0.drain();
    }
}

impl Untimed<'_> {
    /// `block` of `domain` has been erased.
    pub fn erased(&mut self, now: Time, block: BlockId, domain: u32) {
        if let Some(wear) = &mut self.ftl.tables.wear {
            wear.erased(now, block.0);
        }
        self.ftl.note_erased(domain, block);
    }

    /// Empties blocks of `domain` for as long as a task asks for it.
    pub fn go_on(&mut self, domain: u32) {
        for &task in Task::ALL {
            while let Some(block) = self.ftl.next_untimed(domain, task) {
                self.empty(block, domain, task);
            }
        }
    }
}
