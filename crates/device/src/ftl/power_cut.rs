//! Power cuts: the tables are made again from what is left
//! (`tables/power_cut.rs`), and the tasks begin anew.

use flashkeel_engine::Time;

use super::background::Tasks;
use super::tables::Kept;
use super::{Ftl, PartitionLayout};
use crate::sched::{FlashOp, FlashOps};

impl Ftl {
    /// Power is cut, and comes back: all that is left is what survives that.
    /// Returns the pages that were in the buffer, to be buffered again, in the
    /// order of their writes.
    pub fn cut_power(
        &mut self,
        now: Time,
        layout: &PartitionLayout,
        seed: u64,
        operations: &FlashOps,
    ) -> Vec<Kept> {
        let kept = if layout.has_volatile_buffer {
            Vec::new()
        } else {
            self.tables.kept_pages(self.tasks.updates.under_way())
        };
        let index = self.shape.index;
        let of_this = operations.in_flight().filter(|operation| operation.partition == index);
        let broken_off: Vec<FlashOp> = of_this.copied().collect();
        let known = self.tasks.known(&self.tables);
        self.pages_scanned = self.tables.cut_power(now, layout, known, &broken_off);
        let former = std::mem::replace(&mut self.tasks, Tasks::new(layout, index, seed));
        self.tasks.survive(former, &self.shape, &broken_off);
        self.finished.clear();
        kept
    }
}
