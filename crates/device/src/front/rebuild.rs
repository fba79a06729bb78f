//! Reads of pages that are rebuilt from the rest of their stripe.

use std::ops::Range;

use flashkeel_engine::{Span, Time};

use crate::address::{Lpn, Ppn};
use crate::ftl::read_path::{ChipState, Rebuild};
use crate::sched::{Activity, FlashOpId};
use crate::ssd::{FlashRead, Ssd};

impl Ssd {
    /// Reads what `pages` of a request, which lie in one flash page at `ppn`,
    /// are rebuilt from, if its chip is better avoided; whether it does.
    pub(super) fn rebuild(
        &mut self,
        now: Time,
        index: u32,
        part: usize,
        pages: Range<u32>,
        ppn: Ppn,
    ) -> bool {
        let ftl = &self.partitions[part].ftl;
        let page = ppn.0 / self.layout.geometry.units_per_page;
        let chip = self.chip_state(now, part, page);
        let is_lost = ftl.tables.is_lost(ppn);
        if !is_lost && !self.layout.policies.read_path.policy().avoids(chip) {
            return false;
        }
        let mut reads = std::mem::take(&mut self.rebuild_reads);
        reads.clear();
        let found = match ftl.shape.static_stripes {
            Some(_) => self.logical_mates(now, index, part, &pages, is_lost, &mut reads),
            None => self.physical_mates(now, part, page, &mut reads),
        };
        let rebuilds = found.is_some_and(|others| {
            let rebuild = Rebuild {
                is_clear: !others.avoided,
                background: others.background,
                extra_reads: reads.len() as u32,
                extra_time: self.time_of_reads(part, &reads, pages.len() as u32),
            };
            is_lost || self.layout.policies.read_path.policy().rebuilds(chip, rebuild)
        });
        if rebuilds {
            // One read is counted already. What is lost may also be in memory.
            let outstanding = &mut self.requests[index].outstanding;
            *outstanding = *outstanding + reads.len() as u32 - 1;
            for &page in &reads {
                let units = pages.len() as u16;
                let id = self.issue_read(now, index, part, Activity::Rebuild.read(), page, units);
                self.note_read(id, index, part, pages.clone(), true);
            }
            if reads.is_empty() {
                self.serve_rebuilt(index, part, pages.clone());
            }
            self.note_rebuilt(index, part, pages);
        }
        self.rebuild_reads = reads;
        rebuilds
    }

    /// Reads what a page of a request is rebuilt from that its flash read `id`, which has just
    /// ended, has found damaged. It is lost from now on, until it has been restored elsewhere.
    #[cold]
    pub(crate) fn rebuild_damaged(
        &mut self,
        now: Time,
        index: u32,
        part: usize,
        id: FlashOpId,
        damaged: FlashRead,
    ) {
        let (lpn, ppn) = damaged.first();
        let pages = lpn.0..lpn.0 + 1;
        self.may_rebuild = true;
        self.partitions[part].ftl.restore_damaged(now, lpn, ppn, &mut self.machine);
        let mut reads = std::mem::take(&mut self.rebuild_reads);
        reads.clear();
        self.logical_mates(now, index, part, &pages, true, &mut reads);
        let request = &mut self.requests[index];
        request.take_blame(now, self.machine.dispatcher.operations.ledger(id));
        request.outstanding += reads.len() as u32;
        for &page in &reads {
            let id = self.issue_read(now, index, part, Activity::Rebuild.read(), page, 1);
            self.note_flash_read(id, damaged.clone());
        }
        if reads.is_empty() {
            self.serve(index, part, damaged);
        }
        self.note_rebuilt(index, part, pages);
        self.rebuild_reads = reads;
    }

    /// How long flash reads of `units` mapping units of each of `pages` take one after another.
    pub(crate) fn time_of_reads(&self, part: usize, pages: &[u32], units: u32) -> Span {
        let (timing, tables) = (self.machine.dispatcher.timing(), &self.partitions[part].ftl.tables);
        let one = |&page: &u32| (timing.read(tables.place_of(page).1) + timing.transfer(units)).0;
        Span(pages.iter().map(one).sum())
    }

    fn chip_state(&self, now: Time, part: usize, page: u32) -> ChipState {
        let chip = self.partitions[part].ftl.tables.chip_of(page);
        let dispatcher = &self.machine.dispatcher;
        ChipState { occupant: dispatcher.occupant(chip), background: dispatcher.background_left(now, chip) }
    }

    /// The other pages of a physical stripe, if it is complete.
    fn physical_mates(&self, now: Time, part: usize, page: u32, reads: &mut Vec<u32>) -> Option<Others> {
        reads.extend(self.partitions[part].ftl.tables.stripe_mates(page)?);
        let mut others = Others::default();
        for &mate in reads.iter() {
            others.meet(self, now, part, mate);
        }
        Some(others)
    }

    /// The flash pages beside those of the request that the copies of `pages`
    /// can be rebuilt from, if the stripe is not being updated and none of its
    /// pages is rebuilt for the request already.
    fn logical_mates(
        &self,
        now: Time,
        index: u32,
        part: usize,
        pages: &Range<u32>,
        is_lost: bool,
        reads: &mut Vec<u32>,
    ) -> Option<Others> {
        let ftl = &self.partitions[part].ftl;
        let stripes = ftl.shape.static_stripes?;
        let units_per_page = self.layout.geometry.units_per_page;
        let stripe = stripes.stripe_of(Lpn(pages.start));
        let may_wait = self.partitions[part].buffer.stripes().is_updating(stripe)
            || self.has_rebuilt(index, part, stripe);
        if may_wait && !is_lost {
            return None;
        }
        let units = pages.start % units_per_page..pages.start % units_per_page + pages.len() as u32;
        let own = pages.start - units.start..pages.start - units.start + units_per_page;
        let data = stripes.data(stripe).filter(|lpn| !own.contains(lpn));
        let parity = units.clone().map(|unit| stripes.parity(stripe, unit));
        let mates = data.map(Lpn).filter(|&lpn| units.contains(&stripes.unit_of(lpn)));
        let mut others = Others::default();
        for lpn in mates.chain(parity) {
            let Some(ppn) = ftl.tables.flash_copy(lpn).filter(|&ppn| !ftl.tables.is_lost(ppn)) else {
                continue;
            };
            let page = ppn.0 / units_per_page;
            others.meet(self, now, part, page);
            if !self.is_read_anyway(index, part, lpn) && !reads.contains(&page) {
                reads.push(page);
            }
        }
        Some(others)
    }

    /// Whether a request reads the flash copy of `lpn` for itself.
    fn is_read_anyway(&self, index: u32, part: usize, lpn: Lpn) -> bool {
        let ftl = &self.partitions[part].ftl;
        let request = &self.requests[index];
        lpn.0 < self.layout.partition.lpns
            && (request.first..request.end).contains(&self.global(part, lpn))
            && ftl.tables.map.flash_home(lpn).is_some()
            && !ftl.tables.is_trimmed(lpn)
    }

    fn note_rebuilt(&mut self, index: u32, part: usize, pages: Range<u32>) {
        if let Some(stripes) = self.partitions[part].ftl.shape.static_stripes {
            self.requests[index].rebuilt = Some((part as u16, stripes.stripe_of(Lpn(pages.start))));
        }
    }

    /// Whether a page of a stripe is rebuilt for a request: then the others
    /// must be read.
    fn has_rebuilt(&self, index: u32, part: usize, stripe: u32) -> bool {
        self.requests[index].rebuilt == Some((part as u16, stripe))
    }
}

/// What is going on at the other chips of a stripe.
#[derive(Default)]
struct Others {
    avoided: bool,
    background: Span,
}

impl Others {
    fn meet(&mut self, ssd: &Ssd, now: Time, part: usize, page: u32) {
        let chip = ssd.chip_state(now, part, page);
        self.avoided |= ssd.layout.policies.read_path.policy().avoids(chip);
        self.background = self.background.max(chip.background);
    }
}
