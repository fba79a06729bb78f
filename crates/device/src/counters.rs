//! What the device has done, in whole operations and pages.

use std::ops::AddAssign;

use flashkeel_engine::LOGICAL_PAGE_BYTES;
use serde::Serialize;

use crate::sched::{Activity, Purpose};

/// Running totals since the last reset. Those that are not serialised are in
/// a [`Report`] in other units, or within its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    #[serde(skip)]
    operations: Operations,
    /// 4 KiB pages the host wrote.
    #[serde(skip)]
    pub host_pages_written: u64,
    /// 4 KiB pages the host read.
    #[serde(skip)]
    pub host_pages_read: u64,
    /// 4 KiB pages the host trimmed.
    #[serde(skip)]
    pub host_pages_trimmed: u64,
    /// 4 KiB pages the host had filled with zeros.
    #[serde(skip)]
    pub host_pages_zeroed: u64,
    /// Pages read without flash: never written.
    pub unmapped_pages_read: u64,
    /// Pages read from the write buffer.
    pub buffered_pages_read: u64,
    /// Pages of reads whose own flash read, or one that they were rebuilt from, waited for
    /// garbage collection; a page that was rebuilt, once for each of the reads that waited.
    pub gc_blocked_pages_read: u64,
    /// Writes merged into a page still in the buffer.
    pub coalesced_pages: u64,
    /// 4 KiB units programmed with nothing in them.
    pub padding_pages: u64,
    /// Valid 4 KiB pages moved from one block to another.
    pub moved_pages: u64,
    /// Flash pages programmed by moves within a chip.
    #[serde(skip)]
    pub programmed_inside: u64,
    /// Of the pages moved, those copied back without a check of their ECC; one that is valid
    /// in part is not.
    pub unchecked_pages: u64,
    /// Valid pages that were read afterwards, to check them.
    pub checked_pages: u64,
    /// Lost 4 KiB pages that were rebuilt and programmed again.
    pub restored_pages: u64,
    /// 4 KiB pages of the host that were lost for good.
    pub given_up_pages: u64,
    /// Reads that ended in `Status::Lost` or `Status::MediaError`.
    pub lost_reads: u64,
    /// Blocks that were worn out and are used no more.
    pub retired_blocks: u64,
    /// Blocks that garbage collection chose to empty.
    pub victims: u64,
    /// Of these, those that `greedy` chose although another policy was asked for.
    pub victims_by_greedy: u64,
    /// Blocks that were collected although it was another chip's turn.
    pub collections_out_of_turn: u64,
    /// Map look-ups served by the map cache: one for each 4 KiB page of a request.
    pub map_hits: u64,
    /// Map look-ups that had to load a map page, or wait for one being loaded; of 4 KiB pages,
    /// too.
    pub map_misses: u64,
    /// Host page programs that had to wait for a free block.
    pub free_block_stalls: u64,
    /// Deterministic windows, each of one set: those that were on at the start, and those that began.
    pub deterministic_windows: u64,
    /// Of these, those in which chips were not left alone: the host had no free block, so that
    /// garbage collection went on, or pages in the buffer had to be flushed.
    pub broken_windows: u64,
}

/// Flash operations by purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Operations([u64; Purpose::END]);

impl Default for Operations {
    fn default() -> Self {
        Operations([0; Purpose::END])
    }
}

impl Counters {
    #[inline]
    pub(crate) fn count(&mut self, purpose: Purpose) {
        self.operations.0[purpose.index()] += 1;
    }

    /// Flash operations of one purpose.
    pub fn operations(&self, purpose: Purpose) -> u64 {
        self.operations.0[purpose.index()]
    }

    /// Flash pages programmed for every purpose.
    pub fn programs(&self) -> u64 {
        self.sum(Purpose::is_program) + self.programmed_inside
    }

    /// Erase operations of every purpose.
    pub fn erases(&self) -> u64 {
        self.sum(Purpose::is_erase)
    }

    /// What wears the flash: folds leave the address of a page, and its block's cycles, as they are.
    pub(crate) fn wearing(&self) -> Wearing {
        let folds = self.operations(Activity::Fold.program());
        Wearing { host_pages: self.host_pages_written, flash_pages: self.programs() - folds }
    }

    fn sum(&self, is_counted: fn(Purpose) -> bool) -> u64 {
        let purposes = Purpose::ALL.into_iter().filter(|&purpose| is_counted(purpose));
        purposes.map(|purpose| self.operations(purpose)).sum()
    }

    /// All bytes programmed per byte the host wrote, for flash pages of
    /// `units_per_page` units; none if it wrote none.
    pub fn write_amplification(&self, units_per_page: u32) -> Option<f64> {
        let programmed = self.programs() * u64::from(units_per_page);
        (self.host_pages_written > 0).then(|| programmed as f64 / self.host_pages_written as f64)
    }

    /// A report for a device whose flash page holds `units_per_page` units, without its wear.
    pub fn report(&self, units_per_page: u32) -> Report {
        let programmed = self.programs() * u64::from(units_per_page);
        Report {
            waf: self.write_amplification(units_per_page),
            erases: self.erases(),
            programmed_bytes: programmed * LOGICAL_PAGE_BYTES,
            host_bytes_written: self.host_pages_written * LOGICAL_PAGE_BYTES,
            host_bytes_read: self.host_pages_read * LOGICAL_PAGE_BYTES,
            host_bytes_trimmed: self.host_pages_trimmed * LOGICAL_PAGE_BYTES,
            host_bytes_zeroed: self.host_pages_zeroed * LOGICAL_PAGE_BYTES,
            flash_operations: Purpose::ALL.iter().map(|&p| (p.label(), self.operations(p))).collect(),
            wear: None,
            counters: self.clone(),
        }
    }
}

/// What was written, by the host and in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wearing {
    /// 4 KiB pages that the host wrote.
    pub host_pages: u64,
    /// Flash pages programmed by which blocks fill.
    pub flash_pages: u64,
}

impl AddAssign for Wearing {
    fn add_assign(&mut self, other: Wearing) {
        self.host_pages += other.host_pages;
        self.flash_pages += other.flash_pages;
    }
}

/// [`Counters`] in the units results are written in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Write amplification: all bytes programmed (data, map, parity, padding) per byte
    /// the host wrote; absent when it wrote none.
    pub waf: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Bytes programmed for any purpose, padding included.
    pub programmed_bytes: u64,
    /// Bytes the host wrote, in whole 4 KiB pages.
    pub host_bytes_written: u64,
    /// Bytes the host read, in whole 4 KiB pages.
    pub host_bytes_read: u64,
    /// Bytes the host trimmed, in whole 4 KiB pages.
    pub host_bytes_trimmed: u64,
    /// Bytes the host had filled with zeros, in whole 4 KiB pages.
    pub host_bytes_zeroed: u64,
    /// Flash operations by purpose.
    pub flash_operations: std::collections::BTreeMap<&'static str, u64>,
    /// The wear of its blocks; absent where wear is not accounted for.
    pub wear: Option<Worn>,
    /// What has no other unit.
    #[serde(flatten)]
    pub counters: Counters,
}

/// The wear of a device's blocks since the run began, its warm-up included, in rated cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worn {
    /// Cycles that a block endures without idle time between them.
    pub rated_cycles: f64,
    /// Of all blocks.
    pub mean_cycles: f64,
    /// Of the block that is worn most.
    pub most_cycles: f64,
}
