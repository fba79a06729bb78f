//! What a power cut leaves of a partition, and how its tables are made again.
//!
//! In flash lies what has been programmed, each page with its number and the
//! place of its write in the order of all writes beside it (out of band): the map
//! follows from that. Pages that were being programmed are spoilt. Of the
//! controller's memory the write buffer survives, on capacitors, unless it is
//! volatile; with it whatever parity is being programmed for. The journal of
//! trims always survives.
//!
//! Ours: a device has started again at once. What it does for that takes no time; the
//! flash pages it reads are counted, and the wear of its erases, and map pages in
//! flash are taken to be brought up to date by the way.

use std::collections::BTreeSet;
use std::ops::Range;

use flashkeel_engine::Time;

use super::entries::Entries;
use super::pages::Content;
use super::{LPNS_PER_MAP_PAGE, Page, Place, Tables};
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::flash::FlashCommand;
use crate::ftl::PartitionLayout;
use crate::sched::{Activity, FlashOp, Task};

/// A page in memory that has survived.
pub(crate) struct Kept {
    /// Its number.
    pub lpn: Lpn,
    /// What it holds, where data is real.
    pub page: Option<Page>,
    /// Its place in the order of writes.
    sequence: u64,
}

impl Kept {
    /// A page that came into the buffer at a place in the order of writes.
    pub(super) fn new(place: Place, page: Page) -> Kept {
        Kept { lpn: place.lpn, page: Some(page), sequence: place.sequence }
    }

    /// Its place in the order of writes.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// What recovery goes by.
pub(crate) struct Known {
    /// Flash pages whose out-of-band areas have to be read.
    pub to_scan: Vec<Range<u32>>,
    /// Where pages hold bytes: by logical page, where it lies as far as the map in
    /// flash tells; none where that tells nothing.
    pub copies: Vec<Option<Ppn>>,
    /// The place in the order of writes up to which that holds.
    pub sequence: u64,
}

/// A page of a block that is read out, with what it holds.
struct Held {
    lpn: Lpn,
    content: Content,
    is_lost: bool,
}

impl Tables {
    /// Power is cut: makes the tables again from what is left. `broken_off` has
    /// the operations that were on their way. Returns how many flash pages were read
    /// for that.
    pub fn cut_power(
        &mut self,
        now: Time,
        layout: &PartitionLayout,
        known: Known,
        broken_off: &[FlashOp],
    ) -> u32 {
        let (copies, failed, pages_read) = self.durable_copies(known);
        let open: Vec<(Task, u32, BlockId, u32)> = self.points.open_blocks().collect();

        let former = std::mem::replace(self, Tables::new(layout, &self.shape));
        self.entries = Entries::after(&former.entries);
        self.blocks = former.blocks;
        (self.wear, self.spares) = (former.wear, former.spares);
        self.pages = former.pages;
        (self.lost, self.gone, self.trimmed) = (former.lost, former.gone, former.trimmed);
        failed.into_iter().for_each(|lpn| self.set_gone(lpn, true));

        let mut valid = vec![0; self.blocks.len() as usize];
        for (lpn, ppn) in copies {
            self.map.set_home(lpn, Home(ppn.0));
            self.map.set_valid(ppn, lpn);
            valid[self.shape.block_of(ppn).0 as usize] += 1;
        }
        self.blocks.restart(&valid);
        for &(writer, chip, block, page) in &open {
            self.points.reopen(writer, chip, block, page);
        }
        for (writer, blocks) in self.spoilt_blocks(broken_off, &open) {
            self.repack(now, writer, &blocks);
        }
        if let Some(pages) = &mut self.pages {
            pages.forget_memory();
        }
        pages_read
    }

    /// What is in memory and survives: the pages of the buffer, and those that
    /// have left it but whose parity is not in flash yet. Of each update under way,
    /// `updates` has the stripe, and a bit for each of its pages that is programmed.
    pub fn kept_pages(&self, updates: impl Iterator<Item = (u32, u128)>) -> Vec<Kept> {
        let bytes = |page: &dyn Fn() -> Page| self.pages.is_some().then(page);
        let mut kept = Vec::new();
        for (stripe, written) in updates {
            let first = self.shape.static_stripes.expect("only stripes are updated").data(stripe).start;
            let pages = (0..u128::BITS).filter(|at| written >> at & 1 == 1).map(|at| Lpn(first + at));
            for lpn in pages.filter(|&lpn| self.map.flash_home(lpn).is_some()) {
                let page = bytes(&|| self.recovered(lpn).unwrap_or([0; _]));
                kept.push(Kept { lpn, page, sequence: 0 });
            }
        }
        for lpn in (0..self.shape.lpns).map(Lpn) {
            if let Some(entry) = self.buffered(self.map.home(lpn)) {
                let page = bytes(&|| self.buffered_page(entry));
                kept.push(Kept { lpn, page, sequence: self.entries[entry].sequence });
            }
        }
        kept.sort_by_key(|kept| kept.sequence);
        kept
    }

    /// The newest version of each logical page that is known, or found in flash, and
    /// has not been trimmed since, a readable copy before a lost one, where pages hold
    /// bytes; and how many flash pages are read for that.
    fn scan(&self, known: Known) -> (Option<Vec<Option<Ppn>>>, u32) {
        let Known { to_scan, mut copies, sequence: known_until } = known;
        let scanned = to_scan.iter().map(|pages| pages.len() as u32).sum();
        let Some(pages) = &self.pages else { return (None, scanned) };
        let is_readable = |ppn| !self.is_lost(ppn) && !pages.has_failed(ppn);
        copies.resize(self.map.lpns() as usize, None);
        let kept =
            |(lpn, copy): (u32, Option<Ppn>)| copy.filter(|_| !pages.is_trimmed_since(Lpn(lpn), known_until));
        let known: Vec<Option<Ppn>> = (0..).zip(copies).map(kept).collect();
        // Besides those that are scanned: what is known of pages that have moved.
        let mut looked_up = BTreeSet::new();
        let mut newest: Vec<Option<(u64, bool, Ppn)>> = vec![None; known.len()];
        let units = self.shape.units_per_page;
        for ppn in
            to_scan.iter().cloned().flatten().flat_map(|page| page * units..(page + 1) * units).map(Ppn)
        {
            let Some((lpn, sequence)) = pages.version(ppn) else { continue };
            let best = &mut newest[lpn.0 as usize];
            if let Some(ppn) = known[lpn.0 as usize].filter(|_| best.is_none() && sequence <= known_until) {
                looked_up.insert(ppn.0 / units);
                let version = pages.version(ppn).filter(|version| version.0 == lpn);
                *best = version.map(|(_, sequence)| (sequence, is_readable(ppn), ppn));
            }
            let found = (sequence, is_readable(ppn), ppn);
            let is_newer = best.is_none_or(|best| (best.0, best.1) < (found.0, found.1));
            if is_newer && !pages.is_trimmed_since(lpn, sequence) {
                *best = Some(found);
            }
        }
        looked_up.retain(|page| !to_scan.iter().any(|pages| pages.contains(page)));
        let found = newest.iter().map(|found| found.map(|(.., ppn)| ppn)).zip(known);
        (Some(found.map(|(found, known)| found.or(known)).collect()), scanned + looked_up.len() as u32)
    }

    /// Where the newest copy of each page is found in flash, if it is not of an
    /// older version than the one in the buffer; the pages whose newest copy has
    /// failed, so that an older one must not be read for it; and how many flash pages
    /// are read for that.
    fn durable_copies(&self, known: Known) -> (Vec<(Lpn, Ppn)>, Vec<Lpn>, u32) {
        let (found, pages_read) = self.scan(known);
        let mut failed = Vec::new();
        let has_failed = |ppn| self.pages.as_ref().is_some_and(|pages| pages.has_failed(ppn));
        let mut copy = |lpn: Lpn| {
            if !self.shape.keeps_behind && self.buffered(self.map.home(lpn)).is_some() {
                return None;
            }
            let known = self.flash_copy(lpn);
            let Some(found) = &found else { return known };
            let ppn = found[lpn.0 as usize].filter(|_| lpn.0 >= self.shape.lpns || !self.is_gone(lpn));
            if ppn.is_some_and(has_failed) {
                failed.push(lpn);
                return None;
            }
            // Two programs of a page of the map may end in either order.
            let is_map = (self.shape.lpns..self.shape.lpns.div_ceil(LPNS_PER_MAP_PAGE) + self.shape.lpns)
                .contains(&lpn.0);
            debug_assert!(
                is_map || self.pages.as_ref().is_some_and(|pages| pages.are_alike(ppn, known)),
                "{lpn:?} was at {known:?} and is found at {ppn:?}"
            );
            ppn
        };
        let copies = (0..self.map.lpns()).map(Lpn).filter_map(|lpn| Some((lpn, copy(lpn)?))).collect();
        (copies, failed, pages_read)
    }

    /// By writer and chip, the blocks in which a program was broken off, those
    /// first whose last page had been allocated; and the block that is open.
    fn spoilt_blocks(
        &self,
        broken_off: &[FlashOp],
        open: &[(Task, u32, BlockId, u32)],
    ) -> Vec<(Task, Vec<BlockId>)> {
        let mut groups: Vec<(Task, Vec<BlockId>)> = Vec::new();
        for operation in broken_off.iter().filter(|operation| operation.target != NONE) {
            let writer = match operation.purpose.command() {
                // Without a chip it has no place yet.
                FlashCommand::Program if operation.chip.0 == NONE => continue,
                FlashCommand::Program
                    if operation.purpose == Activity::Parity.program() && operation.update == NONE =>
                {
                    Task::ALL[operation.owner as usize]
                }
                FlashCommand::Program => operation.purpose.activity().writer(),
                FlashCommand::Move | FlashCommand::Copyback => Task::Gc,
                FlashCommand::Read | FlashCommand::Erase => continue,
            };
            let block = self.shape.block_of_page(operation.target);
            let chip = self.blocks.chip(block);
            let same =
                |group: &&mut (Task, Vec<BlockId>)| group.0 == writer && self.blocks.chip(group.1[0]) == chip;
            match groups.iter_mut().find(same) {
                Some((_, blocks)) if blocks.contains(&block) => {}
                Some((_, blocks)) => blocks.push(block),
                None => groups.push((writer, vec![block])),
            }
        }
        for (writer, blocks) in &mut groups {
            let chip = self.blocks.chip(blocks[0]);
            let open = open.iter().find(|open| (open.0, open.1) == (*writer, chip)).map(|open| open.2);
            blocks.retain(|&block| Some(block) != open);
            blocks.sort_unstable();
            blocks.extend(open);
        }
        groups.sort_by_key(|(writer, blocks)| (*writer as usize, blocks[0]));
        groups
    }

    /// Reads out the blocks of a writer on one chip, erases them, and programs
    /// what they held again, so that no room is lost by spoilt pages.
    fn repack(&mut self, now: Time, writer: Task, blocks: &[BlockId]) {
        let held: Vec<Held> = blocks.iter().flat_map(|&block| self.read_out(now, block)).collect();
        let chip = self.blocks.chip(blocks[0]);
        self.points.close(writer, chip);
        let mut free = blocks.iter();
        let mut place = None;
        let mut left = held.into_iter().peekable();
        while left.peek().is_some() {
            let (block, page) = place.take().unwrap_or_else(|| {
                let block = *free.next().expect("what they held has room in the same blocks");
                self.blocks.take(block);
                (block, 0)
            });
            let first = (self.shape.page_of(block, page)) * self.shape.units_per_page;
            for (ppn, Held { lpn, content, is_lost }) in
                (first..first + self.shape.units_per_page).map(Ppn).zip(left.by_ref())
            {
                self.map.set_home(lpn, Home(ppn.0));
                self.map.set_valid(ppn, lpn);
                self.blocks.gain(block, 1);
                self.set_lost(ppn, is_lost);
                self.set_content(ppn, content);
            }
            let next = page + 1 + u32::from(self.shape.stripes.is_parity(page + 1));
            if next < self.shape.pages_per_block {
                place = Some((block, next));
            } else {
                self.blocks.close(block);
            }
        }
        if let Some((block, next)) = place {
            self.points.reopen(writer, chip, block, next);
        }
    }

    /// Takes the valid pages out of an open block and erases it.
    fn read_out(&mut self, now: Time, block: BlockId) -> Vec<Held> {
        let mut held = Vec::new();
        for ppn in self.shape.units_of_block(block) {
            let (content, is_read) = self.take_content(ppn);
            if self.map.is_valid(ppn) {
                let lpn = self.map.holds(ppn);
                if !is_read && lpn.0 < self.shape.lpns {
                    self.set_gone(lpn, true);
                }
                held.push(Held { lpn, content, is_lost: self.is_lost(ppn) });
                self.map.set_invalid(ppn);
                self.blocks.lose(block, 1);
            }
            self.set_lost(ppn, false);
        }
        self.blocks.free(block);
        if let Some(wear) = &mut self.wear {
            wear.erased(now, block.0);
        }
        self.data_erased(block);
        held
    }
}
