//! Static wear levelling: where blocks have been erased much less often than
//! others, the cold data that sits on them moves to the most worn free block, and
//! they go back into use.

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::background::{Background, Gauge, Room, Settings};
use super::{Ftl, PartitionLayout, Tables};
use crate::address::BlockId;
use crate::machine::Machine;
use crate::sched::{Activity, Task};

/// When wear is levelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WearLevellingConfig {
    /// Whether wear is levelled at all.
    pub enabled: bool,
    /// Erases by which a free block may be ahead of the least worn one whose data
    /// are cold, before they change places. Cold is what has lain there for as long
    /// as it took to fill as many other blocks as are full.
    pub threshold: u32,
    /// Flash pages held in the controller while they are moved; never fewer than four and
    /// one for each allocation domain.
    pub pages_in_flight: u32,
}

impl Default for WearLevellingConfig {
    /// Values of ours.
    fn default() -> Self {
        WearLevellingConfig { enabled: false, threshold: 100, pages_in_flight: 16 }
    }
}

/// Wear levelling of one partition in plain numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WearLevellingLayout {
    /// Erases that blocks may be apart; there is no threshold where wear is not
    /// levelled.
    pub threshold: u32,
    /// Most blocks (of all chips of a stripe) levelled at the same time; 0 where
    /// none is.
    pub jobs: u32,
    /// Flash pages held in the controller.
    pub pages_in_flight: u32,
}

impl Settings for WearLevellingConfig {
    type Layout = WearLevellingLayout;

    fn resolve(&self, _stripe_width: u32) -> Result<WearLevellingLayout, String> {
        let &WearLevellingConfig { enabled, threshold, pages_in_flight } = self;
        if !(1..=1_000_000).contains(&threshold) {
            return Err(format!("wear_levelling.threshold is {threshold}; 1 to 1000000"));
        }
        if !(1..=1 << 16).contains(&pages_in_flight) {
            return Err(format!("wear_levelling.pages_in_flight is {pages_in_flight}; 1 to 65536"));
        }
        let threshold = if enabled { threshold } else { u32::MAX };
        Ok(WearLevellingLayout { threshold, jobs: u32::from(enabled), pages_in_flight })
    }

    /// It has one block open, whatever the chips.
    fn room(layout: &WearLevellingLayout, _chips: u32) -> Room {
        Room { open: layout.jobs, moved: layout.jobs }
    }
}

/// Wear levelling in one allocation domain.
#[derive(Clone, Copy, Debug, Default)]
struct Domain {
    /// A full block is to change places with a free one.
    due: bool,
    /// No block has been erased less often.
    least_erased: u32,
}

/// The wear levelling task of one partition.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct WearLevelling {
    threshold: u32,
    domains: Vec<Domain>,
}

impl Background for WearLevelling {
    const ACTIVITY: Activity = Activity::WearLevelling;
    const EMPTIES_BLOCKS: bool = true;
    const GAUGES: &'static [Gauge] = &[Gauge {
        name: "erase_count_spread",
        read: |ftl| {
            (0..ftl.shape.domains).map(|domain| ftl.tables.blocks.erase_spread(domain)).max().unwrap_or(0)
        },
        is_largest: true,
    }];

    fn new(layout: &PartitionLayout, _index: u16, _seed: u64) -> Self {
        WearLevelling {
            threshold: layout.tasks.wear_levelling.threshold,
            domains: vec![Domain::default(); layout.domains as usize],
        }
    }

    fn error(ftl: &Ftl) -> u32 {
        ftl.tasks.wear_levelling.excess(&ftl.tables)
    }

    fn pages_in_flight(layout: &PartitionLayout) -> u32 {
        layout.tasks.wear_levelling.pages_in_flight
    }

    #[inline]
    fn wants_victim(ftl: &Ftl) -> bool {
        ftl.tasks.wear_levelling.domains.iter().any(|domain| domain.due)
            && ftl.tasks.relocation[Task::WearLevelling].jobs() == 0
    }

    fn start_jobs(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        for domain in 0..ftl.shape.domains {
            if ftl.tasks.relocation[Task::WearLevelling].jobs() > 0 {
                return;
            }
            let is_due = ftl.tasks.wear_levelling.domains[domain as usize].due;
            if is_due
                && ftl.tables.has_spare_block_for(Activity::WearLevelling, domain)
                && let Some(block) = ftl.tasks.wear_levelling.next(&ftl.tables, domain)
            {
                ftl.start_job(now, Task::WearLevelling, domain, block, machine);
            }
        }
    }

    fn next_untimed(ftl: &mut Ftl, domain: u32) -> Option<BlockId> {
        ftl.tasks.wear_levelling.next(&ftl.tables, domain)
    }

    fn choose_block(ftl: &mut Ftl, domain: u32) -> Option<bool> {
        Some(open_worn_block(&mut ftl.tables, domain))
    }

    #[inline]
    fn erased(ftl: &mut Ftl, domain: u32, block: BlockId) {
        ftl.tasks.wear_levelling.check(&ftl.tables, domain, block);
    }
}

impl WearLevelling {
    /// `block` of `domain` has been erased: it may be worn too much for what
    /// the host writes.
    #[inline]
    fn check(&mut self, tables: &Tables, domain: u32, block: BlockId) {
        let erases = tables.blocks.erase_count(block);
        let state = &mut self.domains[domain as usize];
        if erases.saturating_sub(state.least_erased) <= self.threshold {
            return;
        }
        state.least_erased = tables.blocks.erase_range(domain).0;
        if !state.due && self.worn_pair(tables, domain).is_some() {
            self.domains[domain as usize].due = true;
        }
    }

    /// The least worn full block of `domain` with cold data, where the most worn
    /// free one is ahead of it by more than the threshold. Data that are soon
    /// written again would wear that one all the more.
    fn worn_pair(&self, tables: &Tables, domain: u32) -> Option<BlockId> {
        let blocks = &tables.blocks;
        let (coldest, most_worn) = (blocks.least_worn_cold(domain)?, blocks.most_worn_free(domain)?);
        let ahead = blocks.erase_count(most_worn).saturating_sub(blocks.erase_count(coldest));
        (ahead > self.threshold).then_some(coldest)
    }

    /// Erases by which the spread is above the threshold, in the worst domain at
    /// work.
    fn excess(&self, tables: &Tables) -> u32 {
        let due = (0..).zip(&self.domains).filter(|(_, domain)| domain.due);
        let spread = due.map(|(domain, _)| tables.blocks.erase_spread(domain)).max().unwrap_or(0);
        spread.saturating_sub(self.threshold)
    }

    /// The full block of `domain` that is to change places now, if any.
    fn next(&mut self, tables: &Tables, domain: u32) -> Option<BlockId> {
        if !self.domains[domain as usize].due || !tables.has_spare_block(domain) {
            return None;
        }
        let block = self.worn_pair(tables, domain);
        self.domains[domain as usize].due = block.is_some();
        block
    }
}

/// Opens the most worn free block of `domain` for the data that wear levelling
/// moves, if there is none open; whether it did.
fn open_worn_block(tables: &mut Tables, domain: u32) -> bool {
    let writer = Task::WearLevelling;
    if tables.points.room(writer, domain) > 0 || !tables.has_spare_block(domain) {
        return false;
    }
    let Some(block) = tables.blocks.most_worn_free(domain) else { return false };
    tables.blocks.take(block);
    tables.points.waits.opened(writer, domain);
    tables.points.reopen(writer, tables.blocks.chip(block), block, 0);
    true
}
