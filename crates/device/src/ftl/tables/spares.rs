//! Blocks that retire: worn out, and used no more (`ftl/retirement`).
//!
//! Each allocation domain can do without as many blocks as it has beyond what its
//! part of the capacity and its tasks need (`config/validate.rs`). A block retires
//! when it has been erased, and only while the host may open another without it, so
//! that collection always has room for what it has begun; otherwise it is used once
//! more, and the host leaves one more free block until another has retired: a host
//! that takes each block as soon as it is free would keep all of them in use. (Ours.)

use flashkeel_engine::Time;

use super::{BlockState, Tables};
use crate::address::{BlockId, Home, Lpn};

/// The blocks of a partition that may retire, in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparesLayout {
    /// Cycles that a block endures.
    pub rated_cycles: f64,
    /// Blocks of each domain beyond what it needs.
    pub blocks: u32,
    /// Pages for which a domain has no room once it has lost a block more; none
    /// where it has to keep the block.
    pub shrinks_by: Option<u32>,
}

/// How far the blocks of a partition have retired.
#[derive(Clone, Debug)]
pub(crate) struct Spares {
    layout: SparesLayout,
    /// Spare blocks left, by domain.
    left: Vec<u32>,
    /// Whether a domain is to have one more free block, so that one can retire.
    wanted: Vec<bool>,
    /// The room of each domain that has shrunk.
    rooms: Vec<Option<Room>>,
    /// A worn-out block has had to stay in use.
    is_at_end: bool,
}

/// Pages of the host in a domain.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Those that hold something.
    held: u32,
    /// Those that may.
    most: u32,
}

/// What has become of an erased block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Erased {
    /// It is free.
    Freed,
    /// It is used no more.
    Retired,
    /// It is free, and the first that is worn out and has to stay in use.
    Overdue,
}

impl Spares {
    /// Of a new partition of so many domains.
    pub fn new(layout: SparesLayout, domains: u32) -> Spares {
        let domains = domains as usize;
        Spares {
            layout,
            left: vec![layout.blocks; domains],
            wanted: vec![false; domains],
            rooms: vec![None; domains],
            is_at_end: false,
        }
    }
}

impl Tables {
    /// An emptied block has been erased.
    pub fn end_cycle(&mut self, now: Time, block: BlockId) -> Erased {
        if let Some(wear) = &mut self.wear {
            wear.erased(now, block.0);
        }
        let erased = if self.spares.is_some() { self.judge(block) } else { Erased::Freed };
        if erased == Erased::Retired {
            self.blocks.retire(block);
        } else {
            self.blocks.free(block);
        }
        erased
    }

    /// What becomes of a block that has just been erased.
    fn judge(&mut self, block: BlockId) -> Erased {
        let domain = self.blocks.domain(block);
        let is_short = !self.has_spare_block(domain);
        let (Some(spares), Some(wear)) = (&mut self.spares, &self.wear) else { return Erased::Freed };
        let SparesLayout { rated_cycles, shrinks_by, .. } = spares.layout;
        if wear.worn()[block.0 as usize] < rated_cycles {
            return Erased::Freed;
        }
        let left = &mut spares.left[domain as usize];
        let wanted = &mut spares.wanted[domain as usize];
        match shrinks_by {
            None if *left == 0 => {
                let is_known = std::mem::replace(&mut spares.is_at_end, true);
                return if is_known { Erased::Freed } else { Erased::Overdue };
            }
            _ if is_short => {
                *wanted = true;
                return Erased::Freed;
            }
            _ => *wanted = false,
        }
        if *left > 0 {
            *left -= 1;
            return Erased::Retired;
        }
        if shrinks_by.is_some_and(|pages| self.shrink(domain, pages, false)) {
            Erased::Retired
        } else {
            Erased::Freed
        }
    }

    /// Free blocks of a domain that the host leaves. Collection goes on until more are free.
    #[inline]
    pub fn left_by_host(&self, domain: u32) -> u32 {
        let is_wanted = |spares: &Spares| spares.wanted[domain as usize];
        let leaves_one = self.points.waits.hold_host(domain) || self.spares.as_deref().is_some_and(is_wanted);
        self.points.reserves().host + u32::from(leaves_one)
    }

    /// A block is found to have retired.
    pub(super) fn count_retired(&mut self, block: BlockId) {
        let domain = self.blocks.domain(block);
        let Some(spares) = &mut self.spares else { return };
        let left = &mut spares.left[domain as usize];
        if *left > 0 {
            *left -= 1;
        } else if let Some(pages) = spares.layout.shrinks_by {
            self.shrink(domain, pages, true);
        }
    }

    /// Whether a worn-out block has to stay in use, after all have been found.
    pub fn are_spares_at_end(&mut self) -> bool {
        let (Some(spares), Some(wear)) = (&mut self.spares, &self.wear) else { return false };
        let SparesLayout { rated_cycles, shrinks_by, .. } = spares.layout;
        let blocks = &self.blocks;
        spares.is_at_end |= shrinks_by.is_none()
            && (0..).map(BlockId).zip(wear.worn()).any(|(block, &worn)| {
                worn >= rated_cycles
                    && blocks.state(block) != BlockState::Retired
                    && spares.left[blocks.domain(block) as usize] == 0
            });
        spares.is_at_end
    }

    /// Takes room for so many pages from a domain, if it is not in use. Of a block that
    /// `has_retired` it was taken: what a trim had freed for it may be back after a power cut.
    fn shrink(&mut self, domain: u32, pages: u32, has_retired: bool) -> bool {
        let known = self.spares.as_ref().and_then(|spares| spares.rooms[domain as usize]);
        let room = known.unwrap_or_else(|| Room {
            held: self.held_in(domain),
            most: self.pages_in(domain).count() as u32,
        });
        let left = room.most.checked_sub(pages).filter(|&most| has_retired || room.held <= most);
        if let Some(spares) = &mut self.spares {
            spares.rooms[domain as usize] = Some(Room { most: left.unwrap_or(room.most), ..room });
        }
        left.is_some()
    }

    /// The host's pages that lie in a domain.
    fn pages_in(&self, domain: u32) -> impl Iterator<Item = Lpn> + '_ {
        (0..self.shape.lpns).map(Lpn).filter(move |&lpn| self.shape.domain_of(lpn) == domain)
    }

    /// How many of them hold something.
    fn held_in(&self, domain: u32) -> u32 {
        self.pages_in(domain).filter(|&lpn| self.map.home(lpn) != Home::UNMAPPED).count() as u32
    }

    /// Whether there is room for a page that holds nothing and that the host is
    /// about to write; if so, it is taken.
    #[inline]
    pub fn takes(&mut self, lpn: Lpn) -> bool {
        self.spares.is_none() || self.takes_room(lpn)
    }

    #[cold]
    fn takes_room(&mut self, lpn: Lpn) -> bool {
        let domain = self.shape.domain_of(lpn) as usize;
        let Some(room) = self.spares.as_mut().and_then(|spares| spares.rooms[domain].as_mut()) else {
            return true;
        };
        let has_room = room.held < room.most;
        room.held += u32::from(has_room);
        has_room
    }

    /// A page is about to hold nothing: its room, if it has any, is free.
    pub fn gives(&mut self, lpn: Lpn) {
        let domain = self.shape.domain_of(lpn) as usize;
        if let Some(room) = self.spares.as_mut().and_then(|spares| spares.rooms[domain].as_mut())
            && self.map.home(lpn) != Home::UNMAPPED
        {
            room.held -= 1;
        }
    }

    /// Counts what is held anew, after a power cut.
    pub fn count_held(&mut self) {
        for domain in 0..self.shape.domains {
            let is_shrunk =
                self.spares.as_ref().is_some_and(|spares| spares.rooms[domain as usize].is_some());
            let held = if is_shrunk { self.held_in(domain) } else { 0 };
            if let Some(room) = self.spares.as_mut().and_then(|spares| spares.rooms[domain as usize].as_mut())
            {
                room.held = held;
            }
        }
    }

    /// Checks that what is held is counted right, and that each block that has retired
    /// was spare or took room with it. Slow; for tests.
    pub(super) fn check_spares(&self) {
        let Some(spares) = &self.spares else { return };
        for (domain, room) in (0..).zip(&spares.rooms) {
            let mut took_room = 0;
            if let (Some(Room { held, most }), Some(pages)) = (*room, spares.layout.shrinks_by) {
                assert_eq!(held, self.held_in(domain), "pages held in domain {domain}");
                took_room = (self.pages_in(domain).count() as u32 - most) / pages;
            }
            let blocks = self.blocks.domain_range(domain).map(|block| BlockId(block as u32));
            let retired = blocks.filter(|&block| self.blocks.state(block) == BlockState::Retired).count();
            let spared = spares.layout.blocks - spares.left[domain as usize];
            assert_eq!(retired as u32, spared + took_room, "blocks of domain {domain} that have retired");
        }
    }
}
