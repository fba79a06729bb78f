//! Write points: the open block of each writer on each chip.

use crate::address::{BlockId, NONE};

use super::Blocks;
use super::waits::Waits;
use crate::sched::Task;

/// Free blocks of a domain that each writer must leave to those after it:
/// garbage collection needs room to move data into, and map pages come before
/// host data because garbage collection may need them. Other tasks gain no space
/// in the end, so they leave what the host leaves: they may have to wait for
/// garbage collection, which never waits for them. While one of them waits, the host
/// leaves a block more ([`Waits`]).
#[derive(Clone, Copy, Debug)]
pub struct Reserves {
    /// Blocks the host leaves: as many as garbage collection empties at the
    /// same time, those that map pages may open meanwhile, and one.
    pub host: u32,
    /// Blocks that map pages leave.
    pub map: u32,
    /// Blocks that map pages may open while data is being moved.
    pub map_margin: u32,
}

impl Reserves {
    /// What `writer` leaves at least.
    pub fn of(&self, writer: Task) -> u32 {
        match writer {
            Task::Map => self.map,
            Task::Gc => 0,
            _ => self.host,
        }
    }
}

/// A page to program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Chip within the partition.
    pub chip: u32,
    /// Block within the partition.
    pub block: BlockId,
    /// Page within the block.
    pub page: u32,
    /// Whether a free block was opened for it.
    pub opened: bool,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    block: u32,
    next_page: u32,
}

const CLOSED: Point = Point { block: NONE, next_page: 0 };

/// The write points of one partition.
#[derive(Clone, Debug)]
pub struct Points {
    /// By writer, in the order of `order`.
    points: [Vec<Point>; Task::COUNT],
    /// Each domain's chips, one domain after another, neighbours on different channels.
    order: Vec<u32>,
    /// The place of each chip in that order.
    places: Vec<u32>,
    chips_per_domain: usize,
    cursors: [Vec<usize>; Task::COUNT],
    pages_per_block: u32,
    reserves: Reserves,
    /// Others than the host who wait for a free block.
    pub waits: Waits,
    /// Free blocks of a chip that are opened only where no chip has more: room for what
    /// is moved within it.
    kept_on_chip: usize,
}

impl Points {
    /// No block open. `chips` counts the partition's chips, `per_channel`
    /// those that share a channel.
    pub fn new(
        chips: u32,
        per_channel: u32,
        domains: u32,
        pages_per_block: u32,
        reserves: Reserves,
        kept_on_chip: usize,
    ) -> Self {
        let per_domain = chips / domains;
        let mut order: Vec<u32> = (0..chips).collect();
        order.sort_by_key(|chip| (chip / per_domain, chip % per_channel, chip / per_channel));
        let mut places = vec![0; chips as usize];
        order.iter().zip(0..).for_each(|(&chip, place)| places[chip as usize] = place);
        Points {
            points: std::array::from_fn(|_| vec![CLOSED; chips as usize]),
            order,
            places,
            chips_per_domain: per_domain as usize,
            cursors: std::array::from_fn(|_| vec![0; domains as usize]),
            pages_per_block,
            reserves,
            waits: Waits::new(domains),
            kept_on_chip,
        }
    }

    /// Free blocks that each writer leaves.
    pub fn reserves(&self) -> &Reserves {
        &self.reserves
    }

    /// Allocates the next page of `writer` in `domain`: on the chip with the
    /// least `load` among those with room, in rotation. `None` when the
    /// writer has no block open and may not open one, because only `keep` are
    /// free.
    #[inline(always)]
    pub fn allocate(
        &mut self,
        writer: Task,
        domain: u32,
        keep: u32,
        blocks: &mut Blocks,
        load: impl Fn(u32) -> u32,
    ) -> Option<Allocated> {
        let found = self.allocate_above(self.kept_on_chip, writer, domain, keep, blocks, &load);
        if found.is_none() && self.kept_on_chip > 0 {
            return self.allocate_above(0, writer, domain, keep, blocks, &load);
        }
        found
    }

    /// The same, opening no block of a chip with only `kept_on_chip` free ones.
    #[inline(always)]
    fn allocate_above(
        &mut self,
        kept_on_chip: usize,
        writer: Task,
        domain: u32,
        keep: u32,
        blocks: &mut Blocks,
        load: impl Fn(u32) -> u32,
    ) -> Option<Allocated> {
        let may_open = blocks.free_in(domain) > keep;
        let domain_places = self.places_of(domain);
        let order = &self.order[domain_places.clone()];
        let points = &mut self.points[writer as usize][domain_places];
        let cursor = &mut self.cursors[writer as usize][domain as usize];
        let mut best = (u32::MAX, 0);
        'search: for (from, to) in [(*cursor, order.len()), (0, *cursor)] {
            let places = from..to.min(order.len()).min(points.len());
            for at in places {
                let chip = order[at];
                if points[at].block == NONE && !(may_open && blocks.free_on(chip) > kept_on_chip) {
                    continue;
                }
                let load = load(chip);
                if load < best.0 {
                    best = (load, at);
                    if load == 0 {
                        break 'search;
                    }
                }
            }
        }
        if best.0 == u32::MAX {
            return None;
        }
        let (chip, next) = (order[best.1], best.1 + 1);
        *cursor = if next == order.len() { 0 } else { next };
        let point = &mut points[best.1];
        let opened = point.block == NONE;
        if opened {
            *point = Point { block: blocks.open(chip).0, next_page: 0 };
            self.waits.opened(writer, domain);
        }
        let place = Allocated { chip, block: BlockId(point.block), page: point.next_page, opened };
        blocks.begin_program(place.block);
        point.next_page += 1;
        if point.next_page == self.pages_per_block {
            *point = CLOSED;
        }
        Some(place)
    }

    /// Allocates the next page of an open block to something else than data.
    pub fn skip(&mut self, writer: Task, blocks: &mut Blocks, block: BlockId) {
        let pages_per_block = self.pages_per_block;
        let point = self.point_mut(writer, blocks.chip(block));
        debug_assert_eq!(point.block, block.0);
        point.next_page += 1;
        if point.next_page == pages_per_block {
            *point = CLOSED;
        }
        blocks.begin_program(block);
    }

    /// Whether the last page of `block` has been allocated.
    #[inline]
    pub fn is_exhausted(&self, writer: Task, chip: u32, block: BlockId) -> bool {
        self.point(writer, chip).block != block.0
    }

    /// Pages left in the open blocks of `writer` in `domain`.
    pub fn room(&self, writer: Task, domain: u32) -> u32 {
        let open = self.points[writer as usize][self.places_of(domain)].iter();
        open.filter(|point| point.block != NONE).map(|point| self.pages_per_block - point.next_page).sum()
    }

    /// Pages left in the open block of `writer` on a chip.
    #[inline]
    pub fn room_on(&self, writer: Task, chip: u32) -> u32 {
        let point = self.point(writer, chip);
        if point.block == NONE { 0 } else { self.pages_per_block - point.next_page }
    }

    /// Pages left in every open block of the partition.
    pub fn room_total(&self) -> u32 {
        let domains = (self.order.len() / self.chips_per_domain) as u32;
        let rooms = |&writer: &Task| (0..domains).map(move |domain| self.room(writer, domain));
        Task::ALL.iter().flat_map(rooms).sum()
    }

    /// Starts every rotation anew; nobody waits.
    pub fn rest(&mut self) {
        self.waits = Waits::new((self.order.len() / self.chips_per_domain) as u32);
        self.cursors.iter_mut().for_each(|cursors| cursors.fill(0));
    }

    /// Opens a block that is taken already, at its next page.
    pub fn reopen(&mut self, writer: Task, chip: u32, block: BlockId, next_page: u32) {
        *self.point_mut(writer, chip) = Point { block: block.0, next_page };
    }

    /// Takes a writer's open block on a chip, if there is one, out of use.
    pub fn close(&mut self, writer: Task, chip: u32) {
        *self.point_mut(writer, chip) = CLOSED;
    }

    /// Open blocks with their next page, as (writer, chip, block, page).
    pub fn open_blocks(&self) -> impl Iterator<Item = (Task, u32, BlockId, u32)> + '_ {
        Task::ALL.iter().copied().flat_map(move |writer| {
            (0..self.order.len() as u32)
                .map(move |chip| (chip, self.point(writer, chip)))
                .filter(|(_, point)| point.block != NONE)
                .map(move |(chip, point)| (writer, chip, BlockId(point.block), point.next_page))
        })
    }

    /// The places of a domain's chips in the order.
    #[inline]
    fn places_of(&self, domain: u32) -> std::ops::Range<usize> {
        domain as usize * self.chips_per_domain..(domain as usize + 1) * self.chips_per_domain
    }

    #[inline]
    fn point(&self, writer: Task, chip: u32) -> Point {
        self.points[writer as usize][self.places[chip as usize] as usize]
    }

    #[inline]
    fn point_mut(&mut self, writer: Task, chip: u32) -> &mut Point {
        &mut self.points[writer as usize][self.places[chip as usize] as usize]
    }
}
