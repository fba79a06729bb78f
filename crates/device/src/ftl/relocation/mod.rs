//! Relocation: emptying blocks and erasing them.
//!
//! The tasks that empty blocks (garbage collection and others: the movers) differ
//! in when they start and which block they choose. How its data is moved is the
//! same for all and stands here.

mod inside;
mod job;
mod steps;

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

pub(crate) use job::{Job, Progress};

use super::tables::Blocks;
use super::{Bits, Entries, Entry, Lane, PartitionLayout};
use crate::sched::Task;

/// What a mover is doing in one allocation domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DomainMoves {
    /// Blocks being emptied.
    pub jobs: u32,
    /// Valid pages read and not yet programmed.
    pub staged: Lane,
}

/// What one mover is doing.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    pub domains: Vec<DomainMoves>,
    /// Valid pages read and not yet programmed, in all domains.
    staged: u32,
    /// Domains that have staged what fills a flash page.
    full: Bits,
    units_per_page: u32,
    /// Most 4 KiB pages being moved.
    max_moving: u32,
    /// 4 KiB pages being moved: from the generation of their read on.
    pub moving: u32,
    /// Flash operations generated and not done.
    pub outstanding: u32,
    /// Jobs with pages that have not been looked at.
    unread_jobs: u32,
    /// Jobs whose block is empty and may be erased.
    erasable: VecDeque<u32>,
    /// Whether the generation of the next operation is scheduled.
    ticking: bool,
    /// The job whose turn it is to read.
    turn: usize,
}

impl Moves {
    /// At rest, with room for so many flash pages in the controller.
    fn new(domains: u32, units_per_page: u32, pages: u32) -> Self {
        let mut full = Bits::default();
        full.grow(domains);
        Moves {
            domains: vec![DomainMoves { jobs: 0, staged: Lane::EMPTY }; domains as usize],
            staged: 0,
            full,
            units_per_page,
            max_moving: pages * units_per_page,
            moving: 0,
            outstanding: 0,
            unread_jobs: 0,
            erasable: VecDeque::new(),
            ticking: false,
            turn: 0,
        }
    }

    /// Whether anything is generated or on its way. Blocks may be half emptied
    /// all the same: their data waits for a free block.
    pub fn is_at_work(&self) -> bool {
        self.ticking || self.outstanding > 0
    }

    /// Puts a valid page behind the others that wait to be programmed.
    #[inline]
    fn stage(&mut self, entries: &mut Entries, domain: u32, entry: Entry) {
        let staged = &mut self.domains[domain as usize].staged;
        entries.push(staged, entry, None);
        self.staged += 1;
        if staged.len == self.units_per_page {
            self.full.set(domain, true);
        }
    }

    /// Puts back the lane of a domain from which `count` pages have been taken.
    #[inline]
    fn unstage(&mut self, domain: u32, left: Lane, count: u32) {
        self.domains[domain as usize].staged = left;
        self.staged -= count;
        self.full.set(domain, left.len >= self.units_per_page);
    }

    /// Blocks being emptied.
    pub fn jobs(&self) -> u32 {
        self.domains.iter().map(|domain| domain.jobs).sum()
    }
}

/// The relocation of one partition: what each mover is doing, and the blocks
/// being emptied. Other tasks move nothing.
#[derive(Clone, Debug)]
pub(crate) struct Relocation {
    movers: [Moves; Task::COUNT],
    pub jobs: Vec<Job>,
}

impl Relocation {
    /// At rest. `pages_in_flight` counts the flash pages that each mover may
    /// hold in the controller.
    pub fn new(layout: &PartitionLayout, pages_in_flight: impl Fn(Task) -> u32) -> Self {
        let (domains, units_per_page) = (layout.domains, layout.geometry.units_per_page);
        // Each domain may hold part of a page that the others must not wait for.
        let moves = |pages: u32| Moves::new(domains, units_per_page, pages.max(domains + 4));
        let movers = std::array::from_fn(|task| moves(pages_in_flight(Task::ALL[task])));
        Relocation { movers, jobs: Vec::new() }
    }

    /// Blocks being emptied in `domain`.
    pub fn jobs_of(&self, mover: Task, domain: u32) -> u32 {
        self[mover].domains[domain as usize].jobs
    }

    /// Whether a mover is emptying a block of `chip`.
    pub fn empties_on(&self, mover: Task, chip: u32, blocks: &Blocks) -> bool {
        let is_there = |job: &Job| {
            job.progress != Progress::Unused && job.mover == mover && blocks.chip(job.block) == chip
        };
        self.jobs.iter().any(is_there)
    }
}

impl Index<Task> for Relocation {
    type Output = Moves;
    #[inline]
    fn index(&self, mover: Task) -> &Moves {
        &self.movers[mover as usize]
    }
}

impl IndexMut<Task> for Relocation {
    #[inline]
    fn index_mut(&mut self, mover: Task) -> &mut Moves {
        &mut self.movers[mover as usize]
    }
}
