//! Which copies hold the newest data of each page, and the log of the regions in
//! which they may differ after a power cut.

use std::collections::BTreeSet;
use std::ops::Range;

use flashkeel_engine::LOGICAL_PAGE_SECTORS;

/// No copy.
const NOBODY: u8 = u8::MAX;

/// A region of the log.
#[derive(Clone, Debug)]
struct Region {
    /// Changes of its pages on their way.
    changes: u32,
    /// Pairs of a page and a copy that does not have its newest data.
    stale: u32,
    /// The copy that every write acknowledged since the region was clean is on.
    leader: u8,
    /// The newest change that no flush has followed; 0 for none.
    unflushed: u64,
}

/// The state of the pages with copies. Which page is stale where, which regions
/// are dirty and who leads them is taken to survive a power cut, such as in an NVM;
/// what is on its way is not.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    /// Copies that are there, a bit each, spares that stand in included.
    present: u8,
    /// Copies that keep what they are given, unless none does.
    keeping: u8,
    /// Whether what a copy acknowledges survives a power cut only behind a flush.
    needs_flush: bool,
    /// Copies that do not have a page's newest data.
    stale: Vec<u8>,
    /// Those of them that had all that was acknowledged when the power was cut, and may
    /// differ from the one that counts only in what was not. Nobody has read the page
    /// since.
    doubtful: Vec<u8>,
    /// Pages of which some copy is in doubt.
    doubts: u64,
    /// Pages of which nobody knows the newest data, until they are changed: every copy is stale.
    damaged: BTreeSet<usize>,
    /// Whether a page is being changed.
    locked: Vec<bool>,
    regions: Vec<Region>,
    region_pages: usize,
    /// Pairs of a page and a copy in all regions.
    stale_pairs: u64,
    /// Counts changes that have been done.
    sequence: u64,
    /// Regions with changes that no flush has followed.
    unflushed: Vec<u32>,
}

impl Agreement {
    /// Over so many sectors with copies, on the first `copies` devices.
    pub fn new(
        sectors: u64,
        region_sectors: u64,
        copies: usize,
        keeping: u8,
        needs_flush: bool,
    ) -> Agreement {
        let pages = (sectors / LOGICAL_PAGE_SECTORS) as usize;
        let region_pages = (region_sectors / LOGICAL_PAGE_SECTORS) as usize;
        let clean = Region { changes: 0, stale: 0, leader: NOBODY, unflushed: 0 };
        Agreement {
            present: ((1u16 << copies) - 1) as u8,
            keeping,
            needs_flush,
            stale: vec![0; pages],
            doubtful: vec![0; pages],
            doubts: 0,
            damaged: BTreeSet::new(),
            locked: vec![false; pages],
            regions: vec![clean; pages.div_ceil(region_pages)],
            region_pages,
            stale_pairs: 0,
            sequence: 0,
            unflushed: Vec::new(),
        }
    }

    pub fn present(&self) -> u8 {
        self.present
    }

    /// Pairs of a page and a copy that has not got its newest data.
    pub fn stale_pairs(&self) -> u64 {
        self.stale_pairs
    }

    /// Regions that would be looked through after a power cut now.
    pub fn dirty_regions(&self) -> u64 {
        self.regions.iter().filter(|region| region.changes > 0 || region.unflushed > 0).count() as u64
    }

    /// Copies that have the newest data of a page.
    pub fn valid(&self, page: usize) -> u8 {
        self.present & !self.stale[page]
    }

    /// Copies that have the newest data of all these pages.
    pub fn valid_all(&self, pages: Range<usize>) -> u8 {
        if self.stale_pairs == 0 {
            return self.present;
        }
        self.stale[pages].iter().fold(self.present, |valid, stale| valid & !stale)
    }

    /// Copies that lack some of the pages, where it takes a flush to keep what they are
    /// given. What they have kept is older than what they may be asked for after a power
    /// cut, so it is not enough that they take new data into a cache.
    pub fn lacking(&self, pages: Range<usize>) -> u8 {
        match self.needs_flush {
            true if self.damaged.is_empty() => self.present & !self.valid_all(pages),
            // What was kept of a damaged page stays until the change is durable.
            true => {
                let others = pages.filter(|page| !self.damaged.contains(page));
                others.fold(0, |lacking, page| lacking | self.present & self.stale[page])
            }
            false => 0,
        }
    }

    /// How many of the pages follow the first with the same valid copies.
    pub fn run(&self, pages: Range<usize>) -> usize {
        if self.stale_pairs == 0 {
            return pages.len();
        }
        let first = pages.start;
        let alike = |&page: &usize| {
            self.stale[page] == self.stale[first] && self.doubtful[page] == self.doubtful[first]
        };
        pages.take_while(alike).count()
    }

    /// Whether copies of any page are in doubt.
    pub fn has_doubts(&self) -> bool {
        self.doubts > 0
    }

    /// Whether copies of any of the pages are in doubt: what is read of those before
    /// they agree could be gone with the copy that it was read from.
    pub fn is_in_doubt(&self, pages: Range<usize>) -> bool {
        self.doubts > 0 && self.doubtful[pages].iter().any(|&copies| copies != 0)
    }

    /// Whether any of the pages is being changed.
    pub fn is_locked(&self, pages: Range<usize>) -> bool {
        self.locked[pages].contains(&true)
    }

    /// The pages are being changed, by the host or to agree; nobody else may.
    pub fn lock(&mut self, pages: Range<usize>) {
        self.locked[pages].fill(true);
    }

    pub fn unlock(&mut self, pages: Range<usize>) {
        self.locked[pages].fill(false);
    }

    fn regions_of(&self, pages: &Range<usize>) -> Range<usize> {
        if pages.is_empty() {
            return 0..0;
        }
        pages.start / self.region_pages..(pages.end - 1) / self.region_pages + 1
    }

    /// A change is noted in the log before any copy gets it.
    pub fn begin(&mut self, pages: Range<usize>) {
        self.lock(pages.clone());
        for region in self.regions_of(&pages) {
            self.regions[region].changes += 1;
        }
    }

    /// A copy has the change.
    pub fn done(&mut self, pages: Range<usize>, copy: usize) {
        for region in self.regions_of(&pages) {
            let leader = &mut self.regions[region].leader;
            if *leader == NOBODY && self.keeping >> copy & 1 == 1 {
                *leader = copy as u8;
            }
        }
        if !self.damaged.is_empty() {
            self.damaged.retain(|page| !pages.contains(page));
        }
        self.set_stale(pages, 0, 1 << copy);
    }

    /// A copy has got pages again that it lacked.
    pub fn caught_up(&mut self, pages: Range<usize>, copy: usize) {
        self.set_stale(pages, 0, 1 << copy);
    }

    /// Whether the copies that have a change are enough for its pages to be
    /// acknowledged: whoever leads their regions, unless it has failed.
    pub fn is_led_by(&self, pages: Range<usize>, done: u8, failed: u8) -> bool {
        done & self.keeping != 0
            && self.regions_of(&pages).all(|region| match self.regions[region].leader {
                NOBODY => true,
                leader => (done | failed) >> leader & 1 == 1,
            })
    }

    /// These copies do not have the newest data of the pages.
    pub fn behind(&mut self, pages: Range<usize>, copies: u8) {
        self.set_stale(pages.clone(), copies & self.present, 0);
        self.fall_back(pages);
    }

    /// A change has ended on every copy.
    pub fn end(&mut self, pages: Range<usize>) {
        self.unlock(pages.clone());
        self.sequence += 1;
        for index in self.regions_of(&pages) {
            let region = &mut self.regions[index];
            region.changes -= 1;
            if self.needs_flush {
                if region.unflushed == 0 {
                    self.unflushed.push(index as u32);
                }
                region.unflushed = self.sequence;
            } else if region.changes == 0 {
                region.leader = NOBODY;
            }
        }
    }

    /// What a flush that begins now is behind.
    pub fn flush_begins(&self) -> u64 {
        self.sequence
    }

    /// A flush that began behind `sequence` has ended on every copy.
    pub fn flushed(&mut self, sequence: u64) {
        let regions = &mut self.regions;
        self.unflushed.retain(|&index| {
            let region = &mut regions[index as usize];
            if region.unflushed > sequence {
                return true;
            }
            region.unflushed = 0;
            if region.changes == 0 {
                region.leader = NOBODY;
            }
            false
        });
    }

    fn set_stale(&mut self, pages: Range<usize>, set: u8, clear: u8) {
        if set == 0 && self.stale_pairs == 0 {
            return;
        }
        for page in pages {
            let before = self.stale[page];
            let after = before & !clear | set;
            if self.doubts > 0 {
                self.doubt(page, self.doubtful[page] & !(clear | set));
            }
            if after != before {
                self.stale[page] = after;
                let (more, less) = ((after & !before).count_ones(), (before & !after).count_ones());
                let region = &mut self.regions[page / self.region_pages];
                region.stale = region.stale + more - less;
                self.stale_pairs = self.stale_pairs + u64::from(more) - u64::from(less);
            }
        }
    }

    /// These copies of a page are in doubt.
    fn doubt(&mut self, page: usize, copies: u8) {
        let before = std::mem::replace(&mut self.doubtful[page], copies);
        self.doubts = self.doubts + u64::from(copies != 0) - u64::from(before != 0);
    }

    /// Where no copy has the newest data of a page any more, one that is in doubt does.
    fn fall_back(&mut self, pages: Range<usize>) {
        if self.doubts == 0 {
            return;
        }
        for page in pages {
            let doubtful = self.doubtful[page] & self.present;
            if self.valid(page) == 0 && doubtful != 0 {
                self.set_stale(page..page + 1, 0, doubtful & doubtful.wrapping_neg());
            }
        }
    }

    /// Copies of the pages that are not the same are not in doubt any more, but known
    /// to lack what the others have.
    pub fn decide(&mut self, pages: Range<usize>) {
        pages.for_each(|page| self.doubt(page, 0));
    }

    /// Nobody knows the newest data of a page, until it is changed.
    pub fn damage(&mut self, page: usize) {
        self.damaged.insert(page);
        self.behind(page..page + 1, self.present);
    }

    /// A copy is not there any more.
    pub fn lose(&mut self, copy: usize) {
        self.present &= !(1 << copy);
        self.set_stale(0..self.stale.len(), 0, 1 << copy);
        self.fall_back(0..self.stale.len());
        for region in &mut self.regions {
            if region.leader == copy as u8 {
                region.leader = NOBODY;
            }
        }
    }

    /// A device that has nothing yet becomes a copy.
    pub fn join(&mut self, copy: usize) {
        self.present |= 1 << copy;
        self.set_stale(0..self.stale.len(), 1 << copy, 0);
    }

    /// Power is cut: in dirty regions the copies may differ, so that one is what
    /// counts, and the others are in doubt and have to catch up. Returns how many
    /// regions those are.
    pub fn cut_power(&mut self) -> u64 {
        self.locked.fill(false);
        self.unflushed.clear();
        let forgetful = self.present & !self.keeping;
        let mut dirty = 0;
        for index in 0..self.regions.len() {
            let region = &mut self.regions[index];
            let is_dirty = region.changes > 0 || region.unflushed > 0;
            let leader = std::mem::replace(&mut region.leader, NOBODY);
            (region.changes, region.unflushed) = (0, 0);
            dirty += u64::from(is_dirty);
            let first = index * self.region_pages;
            let pages = first..(first + self.region_pages).min(self.stale.len());
            if forgetful != 0 {
                self.set_stale(pages.clone(), forgetful, 0);
            }
            if !is_dirty {
                continue;
            }
            for page in pages {
                let valid = self.valid(page);
                let counts = if leader != NOBODY && valid >> leader & 1 == 1 {
                    1 << leader
                } else {
                    valid & valid.wrapping_neg()
                };
                let doubtful = self.doubtful[page] | valid & !counts;
                self.set_stale(page..page + 1, valid & !counts, 0);
                self.doubt(page, doubtful);
            }
        }
        dirty
    }

    /// Power has been cut, and nothing is known of what was on its way: any region may be dirty.
    pub fn doubt_all(&mut self) {
        self.regions.iter_mut().for_each(|region| region.changes = 1);
        self.cut_power();
    }

    /// Pages from `from` on, in a circle, which the same copies lack that others
    /// have, and which nobody changes: at most `most`. What only copies lack that
    /// refuse writes is left, unless it is in doubt.
    pub fn to_agree(&self, from: usize, most: usize, refusing: u8) -> Option<Range<usize>> {
        let pages = self.stale.len();
        let mut page = from % pages;
        let mut left = pages;
        while left > 0 {
            let end_of_region = ((page / self.region_pages + 1) * self.region_pages).min(pages);
            let step = if self.regions[page / self.region_pages].stale == 0 {
                end_of_region - page
            } else if self.may_agree(page, refusing) {
                let alike = |&other: &usize| {
                    self.stale[other] == self.stale[page]
                        && self.doubtful[other] == self.doubtful[page]
                        && self.may_agree(other, refusing)
                };
                let end = (page + most).min(pages);
                return Some(page..page + (page..end).take_while(alike).count());
            } else {
                1
            };
            left = left.saturating_sub(step);
            page = (page + step) % pages;
        }
        None
    }

    /// Whether `to_agree` would find one of these pages.
    pub fn may_any_agree(&self, mut pages: Range<usize>, refusing: u8) -> bool {
        self.stale_pairs > 0 && pages.any(|page| self.may_agree(page, refusing))
    }

    fn may_agree(&self, page: usize, refusing: u8) -> bool {
        let stale = self.stale[page] & self.present;
        let is_wanted = stale & !refusing != 0 || self.doubtful[page] != 0;
        is_wanted && stale != self.present && !self.locked[page]
    }
}
