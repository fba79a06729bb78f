//! Read scrubbing: blocks that have been read so often that their data may
//! suffer are rewritten elsewhere (AutoSSD, §4.2).

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BlockState, Ftl, Mover};
use crate::address::BlockId;
use crate::config::Layout;
use crate::machine::Machine;

/// When and how fast blocks are scrubbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScrubConfig {
    /// Whether blocks are scrubbed at all.
    pub enabled: bool,
    /// Reads of a block since its last erase above which scrubbing starts. The
    /// blocks of a stripe are scrubbed together.
    pub start_above: u32,
    /// Largest read count of any block below which scrubbing stops.
    pub stop_below: u32,
    /// Blocks of a partition scrubbed at the same time: where counts are spread
    /// evenly, thousands are due as soon as the first is.
    pub concurrent_blocks: u32,
    /// Flash pages held in the controller while they are moved.
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

impl ScrubConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn validate(&self) -> Result<(), String> {
        if self.stop_below > self.start_above {
            return Err(format!(
                "scrub.stop_below ({}) is above scrub.start_above ({})",
                self.stop_below, self.start_above
            ));
        }
        if self.stop_below == 0 || self.start_above > MOST_READS {
            return Err(format!(
                "scrub.stop_below is {} and scrub.start_above {}; both lie between 1 and {MOST_READS}",
                self.stop_below, self.start_above
            ));
        }
        if !(1..=4096).contains(&self.concurrent_blocks) {
            return Err(format!("scrub.concurrent_blocks is {}; 1 to 4096", self.concurrent_blocks));
        }
        if !(1..=1 << 16).contains(&self.pages_in_flight) {
            return Err(format!("scrub.pages_in_flight is {}; 1 to 65536", self.pages_in_flight));
        }
        Ok(())
    }
}

/// More reads than any block survives.
const MOST_READS: u32 = 1 << 24;

/// The scrubbing task of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Scrub {
    /// Thresholds of a block's read count.
    start_above: u32,
    stop_below: u32,
    /// Most blocks scrubbed at the same time.
    max_jobs: u32,
    /// Between the start and the stop threshold.
    active: bool,
}

impl Scrub {
    /// At rest.
    pub fn new(layout: &Layout) -> Self {
        let config = &layout.scrub;
        // Counts have no threshold where nothing is scrubbed.
        Scrub {
            start_above: if config.enabled { config.start_above } else { u32::MAX },
            stop_below: config.stop_below,
            max_jobs: layout.partition.scrub_jobs,
            active: false,
        }
    }
}

impl Ftl {
    /// A block's read count, or state, has changed: scrubbing may be due.
    #[inline]
    pub(super) fn scrub_check(&mut self, now: Time, block: BlockId, machine: &mut Machine) {
        if self.blocks.read_count(block) > self.scrub.start_above {
            self.scrub_start(now, block, machine);
        }
    }

    #[cold]
    fn scrub_start(&mut self, now: Time, block: BlockId, machine: &mut Machine) {
        // Others cannot be emptied now, or are being.
        if !self.scrub.active && self.blocks.state(block) == BlockState::Full {
            self.scrub.active = true;
            self.wake(now, Mover::Scrub, machine);
        }
    }

    /// Reads by which the most read block is above the start threshold
    /// (AutoSSD, §3.3), or 0 at rest.
    pub(super) fn scrub_excess(&self) -> u32 {
        if !self.scrub.active {
            return 0;
        }
        self.blocks.max_read_count().saturating_sub(self.scrub.start_above)
    }

    /// Blocks, counted chip by chip, that scrubbing has to rewrite before it
    /// stops.
    pub fn scrub_blocks_due(&self) -> u32 {
        if !self.scrub.active {
            return 0;
        }
        self.blocks.read_at_least(self.scrub.stop_below)
    }

    #[inline]
    pub(super) fn scrub_wants_victim(&self) -> bool {
        self.scrub.active && self.relocation[Mover::Scrub].jobs() < self.scrub.max_jobs
    }

    /// Chooses the most read blocks while there is room to move their pages.
    pub(super) fn scrub_start_jobs(&mut self, now: Time, machine: &mut Machine) {
        while self.scrub_wants_victim() {
            let most_read = self.blocks.most_read();
            let Some(block) =
                most_read.filter(|&block| self.blocks.read_count(block) >= self.scrub.stop_below)
            else {
                self.scrub.active = false;
                return;
            };
            let domain = self.blocks.domain(block);
            if !self.has_spare_block(domain) {
                // Tried again when a block has become free.
                return;
            }
            self.start_job(now, Mover::Scrub, domain, block, machine);
        }
    }
}
