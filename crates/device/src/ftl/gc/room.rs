//! Room for what garbage collection moves.

use super::Gc;
use crate::address::BlockId;
use crate::ftl::Ftl;
use crate::ftl::relocation::Progress;
use crate::sched::Task;

impl Gc {
    /// Flash pages that the blocks garbage collection is emptying may still
    /// need: their valid pages, staged ones that have become garbage, and one
    /// for each that may have to be programmed part empty.
    fn needs(ftl: &Ftl, domain: u32) -> u32 {
        let is_moving = |progress, mover| progress != Progress::Unused && mover == Task::Gc;
        let jobs = ftl.tasks.relocation.jobs.iter();
        let moving = jobs.filter(|job| is_moving(job.progress, job.mover) && job.domain == domain);
        let valid: u32 = moving.map(|job| ftl.shape.pages_for(ftl.tables.blocks.valid(job.block)) + 1).sum();
        valid + ftl.shape.pages_for(ftl.tasks.relocation[Task::Gc].domains[domain as usize].staged.len)
    }

    /// Free blocks that map pages must leave in `domain`, so that the blocks
    /// being emptied can be.
    pub(in crate::ftl) fn claim(ftl: &Ftl, domain: u32) -> u32 {
        // Each needs a block at most, and is not looked at while there are many.
        let (jobs, least) =
            (ftl.tasks.relocation.jobs_of(Task::Gc, domain), ftl.tables.points.reserves().map);
        if jobs == 0 || ftl.tables.blocks.free_in(domain) > jobs + least {
            return least;
        }
        let missing = Gc::needs(ftl, domain).saturating_sub(ftl.tables.points.room(Task::Gc, domain));
        missing.div_ceil(ftl.shape.pages_per_block).max(least)
    }

    /// Whether the valid pages of `block` and of the blocks that garbage
    /// collection is emptying fit into what the other writers leave. Alone, one
    /// block always fits into the one free block that nobody else may open.
    pub(super) fn has_room(ftl: &Ftl, domain: u32, block: BlockId) -> bool {
        let open = ftl.tables.points.room(Task::Gc, domain);
        let free = ftl.tables.blocks.free_in(domain);
        let pages = |valid: u32| ftl.shape.pages_for(valid);
        if ftl.tasks.relocation.jobs_of(Task::Gc, domain) == 0 {
            return pages(ftl.tables.blocks.valid(block)) <= open + free.min(1) * ftl.shape.pages_per_block;
        }
        let reserves = ftl.tables.points.reserves();
        let spare = free.min(reserves.host).saturating_sub(reserves.map_margin);
        Gc::needs(ftl, domain) + pages(ftl.tables.blocks.valid(block))
            < open + spare * ftl.shape.pages_per_block
    }
}
