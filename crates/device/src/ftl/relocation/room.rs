//! Room for the data being moved.

use super::Progress;
use crate::address::BlockId;
use crate::ftl::Ftl;
use crate::sched::Task;

impl Ftl {
    /// Flash pages that the blocks garbage collection is emptying may still
    /// need: their valid pages, staged ones that have become garbage, and one
    /// for each that may have to be programmed part empty.
    fn gc_needs(&self, domain: u32) -> u32 {
        let is_moving = |progress, mover| progress != Progress::Unused && mover == Task::Gc;
        let jobs = self.tasks.relocation.jobs.iter();
        let moving = jobs.filter(|job| is_moving(job.progress, job.mover) && job.domain == domain);
        let valid: u32 =
            moving.map(|job| self.shape.pages_for(self.tables.blocks.valid(job.block)) + 1).sum();
        valid + self.shape.pages_for(self.tasks.relocation[Task::Gc].domains[domain as usize].staged.len)
    }

    /// Free blocks that map pages must leave in `domain`, so that the blocks
    /// being emptied can be.
    pub(in crate::ftl) fn gc_claim(&self, domain: u32) -> u32 {
        // Each needs a block at most, and is not looked at while there are many.
        let (jobs, least) =
            (self.tasks.relocation.jobs_of(Task::Gc, domain), self.tables.points.reserves().map);
        if jobs == 0 || self.tables.blocks.free_in(domain) > jobs + least {
            return least;
        }
        let missing = self.gc_needs(domain).saturating_sub(self.tables.points.room(Task::Gc, domain));
        missing.div_ceil(self.shape.pages_per_block).max(least)
    }

    /// Whether the valid pages of `block` and of the blocks that garbage
    /// collection is emptying fit into what the other writers leave. Alone, one
    /// block always fits into the one free block that nobody else may open.
    pub(in crate::ftl) fn gc_has_room(&self, domain: u32, block: BlockId) -> bool {
        let open = self.tables.points.room(Task::Gc, domain);
        let free = self.tables.blocks.free_in(domain);
        let pages = |valid: u32| self.shape.pages_for(valid);
        if self.tasks.relocation.jobs_of(Task::Gc, domain) == 0 {
            return pages(self.tables.blocks.valid(block)) <= open + free.min(1) * self.shape.pages_per_block;
        }
        let reserves = self.tables.points.reserves();
        let spare = free.min(reserves.host).saturating_sub(reserves.map_margin);
        self.gc_needs(domain) + pages(self.tables.blocks.valid(block))
            < open + spare * self.shape.pages_per_block
    }
}
