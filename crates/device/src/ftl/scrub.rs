//! Read scrubbing: blocks that have been read so often that their data may
//! suffer are rewritten elsewhere (AutoSSD, §4.2).

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::background::{Background, Gauge, Room, Settings};
use super::{BlockState, Ftl, PartitionLayout, Tables};
use crate::address::BlockId;
use crate::machine::Machine;
use crate::sched::{Activity, Task};

/// When and how fast blocks are scrubbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubConfig {
    /// Whether blocks are scrubbed at all.
    pub enabled: bool,
    /// Reads of a block since its last erase above which scrubbing starts. The
    /// blocks of a stripe are scrubbed together. A block that is open for writing is
    /// closed for it, unless a free one to take its place would be short.
    pub start_above: u32,
    /// Largest read count of any full block below which scrubbing stops.
    pub stop_below: u32,
    /// Blocks of a partition scrubbed at the same time: where counts are spread
    /// evenly, thousands are due as soon as the first is.
    pub concurrent_blocks: u32,
    /// Flash pages held in the controller while they are moved; never fewer than four and
    /// one for each allocation domain.
    pub pages_in_flight: u32,
}

impl Default for ScrubConfig {
    /// Thresholds: AutoSSD, §4.2. The paper gives no figure for the last two.
    fn default() -> Self {
        ScrubConfig {
            enabled: false,
            start_above: 100_000,
            stop_below: 80_000,
            concurrent_blocks: 4,
            pages_in_flight: 16,
        }
    }
}

/// Read scrubbing of one partition in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScrubLayout {
    /// Thresholds of a block's read count; there is none where nothing is
    /// scrubbed.
    pub start_above: u32,
    pub stop_below: u32,
    /// Most blocks (of all chips of a stripe) scrubbed at the same time; 0 where
    /// none is.
    pub jobs: u32,
    /// Flash pages held in the controller.
    pub pages_in_flight: u32,
}

impl Settings for ScrubConfig {
    type Layout = ScrubLayout;

    fn resolve(&self, stripe_width: u32) -> Result<ScrubLayout, String> {
        let &ScrubConfig { enabled, start_above, stop_below, concurrent_blocks, pages_in_flight } = self;
        if stop_below > start_above {
            return Err(format!(
                "scrub.stop_below is {stop_below}, above scrub.start_above, which is {start_above}"
            ));
        }
        for (key, reads) in [("stop_below", stop_below), ("start_above", start_above)] {
            if !(1..=MOST_READS).contains(&reads) {
                return Err(format!("scrub.{key} is {reads}; it must lie between 1 and {MOST_READS}"));
            }
        }
        if !(1..=4096).contains(&concurrent_blocks) {
            return Err(format!("scrub.concurrent_blocks is {concurrent_blocks}; 1 to 4096"));
        }
        if !(1..=1 << 16).contains(&pages_in_flight) {
            return Err(format!("scrub.pages_in_flight is {pages_in_flight}; 1 to 65536"));
        }
        Ok(ScrubLayout {
            start_above: if enabled { start_above } else { u32::MAX },
            stop_below,
            jobs: if enabled { concurrent_blocks.div_ceil(stripe_width) } else { 0 },
            pages_in_flight,
        })
    }

    fn room(layout: &ScrubLayout, chips: u32) -> Room {
        Room { open: if layout.jobs > 0 { chips } else { 0 }, moved: layout.jobs }
    }
}

/// More reads than any block survives.
const MOST_READS: u32 = 1 << 24;

/// The scrubbing task of one partition.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Scrub {
    /// Thresholds of a block's read count.
    start_above: u32,
    stop_below: u32,
    /// Most blocks scrubbed at the same time.
    max_jobs: u32,
    /// Between the start and the stop threshold.
    active: bool,
}

impl Background for Scrub {
    const ACTIVITY: Activity = Activity::Scrub;
    const EMPTIES_BLOCKS: bool = true;
    const GAUGES: &'static [Gauge] = &[Gauge {
        name: "scrub_blocks_due",
        read: |ftl| ftl.tasks.scrub.blocks_due(&ftl.tables),
        is_largest: false,
    }];

    fn new(layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        let ScrubLayout { start_above, stop_below, jobs, .. } = layout.tasks.scrub;
        Scrub { start_above, stop_below, max_jobs: jobs, active: false }
    }

    fn error(ftl: &Ftl) -> u32 {
        ftl.tasks.scrub.excess(&ftl.tables)
    }

    fn pages_in_flight(layout: &PartitionLayout) -> u32 {
        layout.tasks.scrub.pages_in_flight
    }

    #[inline]
    fn wants_victim(ftl: &Ftl) -> bool {
        let scrub = &ftl.tasks.scrub;
        scrub.active && ftl.tasks.relocation[Task::Scrub].jobs() < scrub.max_jobs
    }

    /// Chooses the most read blocks while there is room to move their pages: where a domain
    /// has none those of others.
    fn start_jobs(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        while Self::wants_victim(ftl) {
            let (tables, stop_below) = (&ftl.tables, ftl.tasks.scrub.stop_below);
            let is_due = |block: &BlockId| tables.blocks.read_count(*block) >= stop_below;
            let Some(first) = tables.blocks.most_read(|_| true).filter(is_due) else {
                ftl.tasks.scrub.active = false;
                return;
            };
            let of_others = || tables.blocks.most_read(|domain| tables.has_spare_block(domain));
            let domain = tables.blocks.domain(first);
            let other = if tables.has_spare_block(domain) { None } else { Some(of_others().filter(is_due)) };
            if other.is_some() {
                ftl.tables.points.waits.begin(Activity::Scrub, domain);
            }
            let Some(block) = other.unwrap_or(Some(first)) else {
                // Tried again when a block has become free.
                return;
            };
            let domain = ftl.tables.blocks.domain(block);
            ftl.start_job(now, Task::Scrub, domain, block, machine);
        }
    }
}

impl Scrub {
    /// Reads by which the most read block is above the start threshold
    /// (AutoSSD, §3.3), or 0 at rest. Open blocks do not count: no share of the chips corrects
    /// them.
    fn excess(&self, tables: &Tables) -> u32 {
        if self.active { tables.blocks.max_closed_reads().saturating_sub(self.start_above) } else { 0 }
    }

    /// Blocks, counted chip by chip, that scrubbing has to rewrite before it
    /// stops.
    fn blocks_due(&self, tables: &Tables) -> u32 {
        if self.active { tables.blocks.read_at_least(self.stop_below) } else { 0 }
    }

    /// A block's read count, or state, has changed: scrubbing may be due.
    #[inline]
    pub fn check(ftl: &mut Ftl, now: Time, block: BlockId, machine: &mut Machine) {
        if ftl.tables.blocks.read_count(block) > ftl.tasks.scrub.start_above {
            Scrub::start(ftl, now, block, machine);
        }
    }

    #[cold]
    fn start(ftl: &mut Ftl, now: Time, block: BlockId, machine: &mut Machine) {
        match ftl.tables.blocks.state(block) {
            BlockState::Full => {}
            BlockState::Open => return Scrub::close(ftl, now, block, machine),
            // It is being emptied.
            _ => return,
        }
        // While it waits for a block of one domain it may have one of another.
        let may_go_on = ftl.tasks.relocation[Task::Scrub].jobs() == 0
            && ftl.tables.has_spare_block(ftl.tables.blocks.domain(block));
        if !ftl.tasks.scrub.active || may_go_on {
            ftl.tasks.scrub.active = true;
            ftl.wake(now, Task::Scrub, machine);
        }
    }

    /// An open block has been read too often, and no write may ever fill it: the pages it has
    /// left are given up, so that it is scrubbed as soon as its programs are done. Where that is
    /// not possible now, the next read asks again: within a stripe, whose parity is missing, and
    /// where a block less would be short, as for collection until what it moves has a place.
    fn close(ftl: &mut Ftl, now: Time, block: BlockId, machine: &mut Machine) {
        let Tables { points, blocks, shape, .. } = &ftl.tables;
        let (chip, domain) = (blocks.chip(block), blocks.domain(block));
        let is_open_for = |writer: &Task| !points.is_exhausted(*writer, chip, block);
        let Some(writer) = Task::ALL.iter().copied().find(is_open_for) else { return };
        let next_page = shape.pages_per_block - points.room_on(writer, chip);
        let is_needed = writer == Task::Gc && ftl.tasks.relocation.jobs_of(Task::Gc, domain) > 0;
        if is_needed
            || !ftl.background_allowed
            || !ftl.tables.has_spare_block(domain)
            || !next_page.is_multiple_of(shape.stripes.width())
        {
            return;
        }
        ftl.tables.points.close(writer, chip);
        if ftl.tables.blocks.programs_under_way(block) == 0 {
            ftl.tables.blocks.close(block);
            ftl.block_filled(now, writer, block, machine);
        }
    }
}
