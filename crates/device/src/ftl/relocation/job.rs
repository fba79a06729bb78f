//! One block being emptied.

use crate::address::BlockId;
use crate::sched::Task;

/// How far the emptying of a block has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Free for another job.
    Unused,
    /// Valid pages are being read and programmed elsewhere.
    Moving,
    /// Empty, but reads generated earlier are still on their way.
    AwaitingReaders,
    /// Waiting for its erase, or being erased.
    Erasing,
}

/// A block being emptied, and by whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub mover: Task,
    pub progress: Progress,
    pub block: BlockId,
    pub domain: u32,
    /// 4 KiB pages that were valid when it was chosen.
    pub valid: u32,
    /// The first page not looked at yet.
    pub next_page: u32,
    /// The first 4 KiB page of that not looked at yet.
    pub next_unit: u32,
    /// Reads on their way.
    pub reads: u32,
    /// Erases begun: one for each chip of the block's group.
    pub erases: u32,
    /// 4 KiB pages read whose new home is not settled yet.
    pub copies: u32,
}

impl Job {
    /// A job that has not looked at any page.
    pub fn new(mover: Task, block: BlockId, domain: u32, valid: u32) -> Self {
        Job {
            mover,
            progress: Progress::Moving,
            block,
            domain,
            valid,
            next_page: 0,
            next_unit: 0,
            reads: 0,
            erases: 0,
            copies: 0,
        }
    }

    /// Whether every valid page has been moved.
    pub fn is_emptied(&self, pages_per_block: u32) -> bool {
        self.next_page == pages_per_block && self.reads == 0 && self.copies == 0
    }
}
