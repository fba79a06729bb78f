//! Periodic checkpoints of the map: what has changed of it is programmed, so that
//! after a power cut the rest can be had from the out-of-band areas of what was
//! programmed since. AutoSSD (§3.3) names the task, and that it depends on garbage
//! collection for its blocks; the rest is ours.
//!
//! What no checkpoint takes in, such as the list of trimmed pages, is not modelled.

use std::ops::Range;

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::background::{Background, Gauge, Room, Settings};
use super::gc::Gc;
use super::{
    Bits, BlockState, Entry, Ftl, Known, LPNS_PER_MAP_PAGE, Lane, PartitionLayout, Shape, Tables, Unsaved,
};
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::limits::LONGEST;
use crate::machine::{DeviceEvent, Machine};
use crate::sched::{Activity, FlashOp, Task};

/// When and how fast the map is checkpointed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Whether the map is checkpointed at all. Its pages then have a place in
    /// flash, even where it is in memory as a whole.
    pub enabled: bool,
    /// Time from the beginning of a checkpoint to that of the next, if the map has
    /// changed and the former is complete.
    pub period: Span,
    /// Pages of 4 KiB of a partition written, moved or trimmed since its checkpoint began
    /// after which the next does not wait for the period; without such a limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_pages: Option<u32>,
    /// Flash pages of the map that are being programmed at a time.
    pub pages_in_flight: u32,
}

impl Default for CheckpointConfig {
    /// Values of ours.
    fn default() -> Self {
        CheckpointConfig {
            enabled: false,
            period: Span::from_secs(1),
            after_pages: None,
            pages_in_flight: 16,
        }
    }
}

/// Checkpoints of one partition in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointLayout {
    pub period: Span,
    /// Changes of map entries after which the next does not wait for the period.
    pub most_changes: u32,
    /// Flash pages of the map that are being programmed at a time.
    pub pages_in_flight: u32,
}

impl Settings for CheckpointConfig {
    /// `None` where there are no checkpoints.
    type Layout = Option<CheckpointLayout>;

    fn resolve(&self, _stripe_width: u32) -> Result<Option<CheckpointLayout>, String> {
        let &CheckpointConfig { enabled, period, after_pages, pages_in_flight } = self;
        if !(SHORTEST_PERIOD..=LONGEST).contains(&period) {
            return Err(format!(
                "checkpoint.period is {period}; it must lie between {SHORTEST_PERIOD} and {LONGEST}"
            ));
        }
        if after_pages == Some(0) {
            return Err("checkpoint.after_pages is 0; at least 1, or leave it out for no such limit".into());
        }
        if !(1..=1 << 16).contains(&pages_in_flight) {
            return Err(format!("checkpoint.pages_in_flight is {pages_in_flight}; 1 to 65536"));
        }
        let most_changes = after_pages.unwrap_or(u32::MAX);
        Ok(enabled.then_some(CheckpointLayout { period, most_changes, pages_in_flight }))
    }

    fn room(layout: &Option<CheckpointLayout>, chips: u32) -> Room {
        Room { open: if layout.is_some() { chips } else { 0 }, moved: 0 }
    }

    fn keeps_map_in_flash(layout: &Option<CheckpointLayout>) -> bool {
        layout.is_some()
    }
}

/// Shorter periods would only cost time: a program lasts longer.
const SHORTEST_PERIOD: Span = Span::from_us(100);

/// What was in flash, and in the map, when a checkpoint began.
#[derive(Clone, Debug, Default)]
struct Mark {
    /// Blocks that had become full by then.
    closes: u32,
    /// Of blocks that were open, in their order: the block, its erases and its pages in the map.
    open: Vec<(BlockId, u32, u32)>,
    /// Where pages hold bytes: the newest place in the order of writes,
    sequence: u64,
    /// and where the pages lie whose map entries have changed since the checkpoint
    /// before.
    copies: Vec<(Lpn, Option<Ppn>)>,
}

impl Mark {
    /// What is in flash and in the map now. Programs on their way are not: their
    /// pages are the last of their block on each of its chips.
    fn of(tables: &Tables) -> Mark {
        let blocks = &tables.blocks;
        let pages = |block| {
            let under_way = blocks.programs_under_way(block) * tables.shape.stripes.width();
            tables.allocated_pages(block).saturating_sub(under_way)
        };
        let open = blocks.in_state(BlockState::Open);
        Mark {
            closes: blocks.closes(),
            open: open.map(|block| (block, blocks.erase_count(block), pages(block))).collect(),
            sequence: tables.entries.made(),
            copies: Vec::new(),
        }
    }

    /// Where the pages of so many map pages lie, and all map pages themselves.
    fn note_copies(&mut self, tables: &Tables, map_pages: &[u32]) {
        let hosts = tables.shape.lpns;
        let of_page = |&page: &u32| page * LPNS_PER_MAP_PAGE..((page + 1) * LPNS_PER_MAP_PAGE).min(hosts);
        let lpns = map_pages.iter().flat_map(of_page).chain(hosts..tables.map.lpns());
        self.copies = lpns.map(|lpn| (Lpn(lpn), tables.flash_copy(Lpn(lpn)))).collect();
    }
}

/// The checkpoint task of one partition.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Checkpoint {
    layout: Option<CheckpointLayout>,
    /// Map pages that have changed since the checkpoint began, or is yet to.
    changed: Bits,
    /// How often map entries have.
    changes: u32,
    begun: Time,
    /// When its next step is due, if one is.
    due: Option<Time>,
    /// As the complete checkpoint has it.
    mark: Mark,
    /// Where pages hold bytes: by logical page, where the map in flash says it lies.
    saved: Vec<Option<Ppn>>,
    /// As the checkpoint being written will have it.
    next_mark: Option<Mark>,
    /// Map pages it has yet to write, the next ones last.
    left: Vec<u32>,
    /// Those of them that are being loaded.
    loading: Vec<u32>,
    /// Programs on their way.
    writing: u32,
}

impl Checkpoint {
    /// Flash pages whose out-of-band areas have to be read to make the map whole
    /// after a power cut: those allocated since the last complete checkpoint began.
    /// Without checkpoints, all that hold anything.
    fn to_scan<'a>(&'a self, tables: &'a Tables) -> impl Iterator<Item = Range<u32>> + 'a {
        let (blocks, mark) = (&tables.blocks, &self.mark);
        let was_full = move |block: BlockId| {
            let closed = blocks.closed(block.0 as usize..block.0 as usize + 1)[0];
            self.layout.is_some() && (closed.wrapping_sub(mark.closes) as i32) < 0
        };
        (0..blocks.len()).map(BlockId).filter_map(move |block| {
            let last = match blocks.state(block) {
                BlockState::Full | BlockState::Victim if was_full(block) => return None,
                BlockState::Full | BlockState::Victim => tables.shape.pages_per_block,
                BlockState::Open => tables.allocated_pages(block),
                _ => return None,
            };
            // Erased since, it is another block.
            let erases = blocks.erase_count(block);
            let known = mark.open.binary_search_by_key(&block, |&(other, ..)| other);
            let known = known.ok().map(|at| mark.open[at]).filter(|&(_, then, _)| then == erases);
            let first = known.map_or(0, |(.., pages)| pages);
            Some(tables.shape.page_of(block, first)..tables.shape.page_of(block, last))
        })
    }

    /// How many those are.
    fn pages_to_scan(&self, tables: &Tables) -> u32 {
        let counted = || self.to_scan(tables).map(|pages| pages.len() as u32).sum();
        if self.layout.is_some() {
            return counted();
        }
        // All that has been allocated, which needs no look at each block: this is read in every
        // window of a run.
        let blocks = &tables.blocks;
        let retired = blocks.in_state(BlockState::Retired).count() as u32;
        let in_use = blocks.len() - blocks.free_total() - retired;
        let allocated = in_use * tables.shape.pages_per_block - tables.points.room_total();
        debug_assert_eq!(allocated, counted());
        allocated
    }

    /// From now on the map in flash says what the complete checkpoint does.
    fn save(&mut self, mark: Mark) {
        self.mark = mark;
        for (lpn, copy) in self.mark.copies.drain(..) {
            self.saved[lpn.0 as usize] = copy;
        }
    }

    /// When the next checkpoint begins, if the map has changed.
    fn next_begin(&self, now: Time, layout: &CheckpointLayout) -> Time {
        if self.changes >= layout.most_changes { now } else { now.max(self.begun + layout.period) }
    }
}

impl Background for Checkpoint {
    const ACTIVITY: Activity = Activity::Checkpoint;
    const GAUGES: &'static [Gauge] = &[Gauge {
        name: "pages_to_scan",
        read: |ftl| ftl.tasks.checkpoint.pages_to_scan(&ftl.tables),
        is_largest: false,
    }];

    fn new(layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        let mut changed = Bits::default();
        if layout.tasks.checkpoint.is_some() {
            changed.grow(layout.map_pages);
        }
        Checkpoint {
            layout: layout.tasks.checkpoint,
            changed,
            changes: 0,
            begun: Time::ZERO,
            due: None,
            mark: Mark::default(),
            saved: Vec::new(),
            next_mark: None,
            left: Vec::new(),
            loading: Vec::new(),
            writing: 0,
        }
    }

    fn is_active(ftl: &Ftl) -> bool {
        ftl.tasks.checkpoint.next_mark.is_some()
    }

    /// Map pages that are not written yet.
    fn error(ftl: &Ftl) -> u32 {
        (ftl.tasks.checkpoint.left.len() + ftl.tasks.checkpoint.loading.len()) as u32
    }

    #[inline]
    fn map_changed(ftl: &mut Ftl, now: Time, page: u32, machine: &mut Machine) {
        if let Some(layout) = ftl.tasks.checkpoint.layout {
            Checkpoint::note_change(ftl, now, page, &layout, machine);
        }
    }

    fn map_loaded(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let checkpoint = &mut ftl.tasks.checkpoint;
        if !checkpoint.loading.is_empty() {
            checkpoint.left.append(&mut checkpoint.loading);
            Checkpoint::program_later(ftl, now, machine);
        }
    }

    fn rest(ftl: &mut Ftl) {
        if ftl.tasks.checkpoint.layout.is_some() {
            ftl.tasks.checkpoint.mark = Mark::of(&ftl.tables);
        }
    }

    /// As if a checkpoint had just been written.
    fn data_kept(ftl: &mut Ftl) {
        if ftl.tasks.checkpoint.layout.is_some() {
            let copies = (0..ftl.tables.map.lpns()).map(|lpn| ftl.tables.flash_copy(Lpn(lpn)));
            ftl.tasks.checkpoint.saved = copies.collect();
            ftl.tasks.checkpoint.mark.sequence = ftl.tables.entries.made();
        }
    }

    fn known(&self, tables: &Tables) -> Option<Known> {
        let Mark { sequence, .. } = self.mark;
        Some(Known { to_scan: self.to_scan(tables).collect(), copies: self.saved.clone(), sequence })
    }

    /// The last complete checkpoint is still there.
    fn survive(&mut self, former: Self, _shape: &Shape, _broken_off: &[FlashOp]) {
        (self.mark, self.saved) = (former.mark, former.saved);
    }

    /// Which map pages have changed since the last checkpoint is not known any
    /// more: the next one writes them all.
    fn start_again(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let Some(layout) = ftl.tasks.checkpoint.layout else { return };
        for page in 0..ftl.shape.lpns.div_ceil(LPNS_PER_MAP_PAGE) {
            Checkpoint::note_change(ftl, now, page, &layout, machine);
        }
    }

    fn wake(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if Self::is_active(ftl) {
            Checkpoint::program_later(ftl, now, machine);
        }
    }

    fn generate(ftl: &mut Ftl, now: Time, _quiet_since: Time, machine: &mut Machine) {
        // Others were scheduled before it became due at another time.
        if ftl.tasks.checkpoint.due == Some(now) {
            ftl.tasks.checkpoint.due = None;
            Checkpoint::step(ftl, now, machine);
        }
    }

    fn done(ftl: &mut Ftl, now: Time, operation: &FlashOp, _quiet_since: Time, machine: &mut Machine) {
        Checkpoint::programmed(ftl, now, operation, machine);
    }
}

impl Checkpoint {
    /// Notes that a map page has changed.
    fn note_change(ftl: &mut Ftl, now: Time, page: u32, layout: &CheckpointLayout, machine: &mut Machine) {
        let checkpoint = &mut ftl.tasks.checkpoint;
        checkpoint.changed.set(page, true);
        checkpoint.changes += 1;
        let is_first = checkpoint.changes == 1 || checkpoint.changes == layout.most_changes;
        if is_first && checkpoint.next_mark.is_none() {
            let begin = checkpoint.next_begin(now, layout);
            Checkpoint::schedule(ftl, begin, machine);
        }
    }

    /// Schedules the next step, unless one is due sooner.
    fn schedule(ftl: &mut Ftl, time: Time, machine: &mut Machine) {
        let due = &mut ftl.tasks.checkpoint.due;
        if due.is_none_or(|due| time < due) {
            *due = Some(time);
            let activity = Activity::Checkpoint as u32;
            machine.schedule(time, DeviceEvent::Background(u32::from(ftl.shape.index), activity));
        }
    }

    /// Makes sure that the next program is generated, after a delay.
    fn program_later(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let checkpoint = &ftl.tasks.checkpoint;
        let most = checkpoint.layout.map_or(0, |layout| layout.pages_in_flight);
        let may = ftl.background_allowed && checkpoint.writing < most;
        if may && checkpoint.due.is_none() && !checkpoint.left.is_empty() {
            let delay = machine.controller.background_generation.draw(&mut machine.random);
            Checkpoint::schedule(ftl, now + delay, machine);
        }
    }

    /// Begins a checkpoint, or goes on with it.
    fn step(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if ftl.tasks.checkpoint.next_mark.is_none() {
            let mut mark = Mark::of(&ftl.tables);
            let mut pages: Vec<u32> = ftl.tasks.checkpoint.changed.iter().collect();
            // Neighbours stay together within their domain, the first ones last.
            pages
                .sort_by_key(|&page| std::cmp::Reverse((ftl.shape.domain_of(ftl.shape.map_lpn(page)), page)));
            if ftl.tables.pages.is_some() {
                mark.note_copies(&ftl.tables, &pages);
            }
            let checkpoint = &mut ftl.tasks.checkpoint;
            pages.iter().for_each(|&page| checkpoint.changed.set(page, false));
            (checkpoint.left, checkpoint.changes) = (pages, 0);
            (checkpoint.next_mark, checkpoint.begun) = (Some(mark), now);
            machine.wake_control(now);
        }
        if ftl.background_allowed && Checkpoint::program_map_pages(ftl, now, machine) {
            Checkpoint::program_later(ftl, now, machine);
        }
        Checkpoint::end(ftl, now, machine);
    }

    /// Programs a flash page of the map, if there is a place for it; whether it did.
    fn program_map_pages(ftl: &mut Ftl, now: Time, machine: &mut Machine) -> bool {
        let mut lane = Lane::EMPTY;
        let mut domain = 0;
        ftl.tables.points.waits.end(Activity::Checkpoint);
        while let Some(&page) = ftl.tasks.checkpoint.left.last() {
            let lpn = ftl.shape.map_lpn(page);
            if lane.len == ftl.shape.units_per_page || (lane.len > 0 && ftl.shape.domain_of(lpn) != domain) {
                break;
            }
            domain = ftl.shape.domain_of(lpn);
            if !ftl.tables.has_spare_block(domain) && ftl.tables.points.room(Task::Checkpoint, domain) == 0 {
                ftl.tables.points.waits.begin(Activity::Checkpoint, domain);
                // Tried again when a block has become free.
                Gc::start(ftl, now, domain, machine);
                return false;
            }
            ftl.tasks.checkpoint.left.pop();
            match ftl.tables.cache.as_mut().map_or(Unsaved::Changed, |cache| cache.save(page)) {
                Unsaved::Changed => {
                    ftl.tables.entries.push(&mut lane, Entry::new(lpn, Home::UNMAPPED, NONE, 0, now), None);
                }
                Unsaved::Loading => ftl.tasks.checkpoint.loading.push(page),
                Unsaved::Nothing => {}
            }
        }
        if lane.len == 0 {
            return false;
        }
        let count = lane.len;
        let id = ftl.form(now, &mut lane, count, Activity::Checkpoint.program(), domain, machine);
        let placed = ftl.try_place(now, id, machine);
        assert!(placed, "a checkpoint has an open block or may open one");
        ftl.tasks.checkpoint.writing += 1;
        true
    }

    /// A flash page of the map has been programmed.
    fn programmed(ftl: &mut Ftl, now: Time, operation: &FlashOp, machine: &mut Machine) {
        let block = ftl.shape.block_of_page(operation.target);
        let mut ppn = ftl.shape.first_unit(operation.target);
        let mut next = operation.entries;
        while next != NONE {
            let (entry, following) = ftl.tables.entries.release(next);
            ftl.tables.note_programmed(&entry, ppn);
            ftl.tables.install(entry.lpn, entry.from, ppn);
            ppn.0 += 1;
            next = following;
        }
        ftl.page_programmed(now, Task::Checkpoint, block, machine);
        ftl.tasks.checkpoint.writing -= 1;
        Checkpoint::program_later(ftl, now, machine);
        Checkpoint::end(ftl, now, machine);
    }

    /// Ends a checkpoint of which nothing is left to write.
    fn end(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        let checkpoint = &mut ftl.tasks.checkpoint;
        if checkpoint.writing > 0 || !checkpoint.left.is_empty() || !checkpoint.loading.is_empty() {
            return;
        }
        let Some(mark) = checkpoint.next_mark.take() else { return };
        checkpoint.save(mark);
        if let Some(layout) = checkpoint.layout.filter(|_| checkpoint.changes > 0) {
            let begin = checkpoint.next_begin(now, &layout);
            Checkpoint::schedule(ftl, begin, machine);
        }
    }
}
