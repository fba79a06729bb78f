//! `fold = "compact"`: what a trace touches, laid out without what it leaves
//! out between, for a trace that reaches further than it touches.
//!
//! The address space is cut into extents of one size, and the touched ones are
//! put one behind another in their order. So neighbours stay neighbours, a
//! request stays in one piece, and addresses within an extent keep their
//! distances. The extents are as large as fit the device, up to 1 MiB.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Operation, SECTOR_BYTES};

use crate::pages::Pages;

/// Largest extent: that at whose multiples devices are laid out.
const MOST_PAGES: u64 = (1 << 20) / LOGICAL_PAGE_BYTES;

/// Touched extents in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    device: u32,
    /// First sector on its device.
    first: u64,
    /// Sector behind its last.
    end: u64,
    /// Where its first sector lies.
    base: u64,
}

/// Where each sector of a trace goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compaction {
    runs: Vec<Run>,
    /// Size of an extent in bytes.
    pub extent_bytes: u64,
}

/// What each device of a trace reads and writes.
#[derive(Default)]
pub(super) struct Touched {
    devices: Vec<Pages>,
}

impl Touched {
    pub(super) fn insert(&mut self, device: u32, operation: Operation, lba: u64, sectors: u32) {
        // A trim of the whole device touches nothing of it.
        if !matches!(operation, Operation::Read | Operation::Write) {
            return;
        }
        let device = device as usize;
        if self.devices.len() <= device {
            self.devices.resize_with(device + 1, Pages::default);
        }
        self.devices[device].insert(lba * SECTOR_BYTES, u64::from(sectors) * SECTOR_BYTES);
    }

    /// Bytes touched on all devices.
    pub(super) fn bytes(&self) -> u64 {
        self.devices.iter().map(Pages::bytes).sum()
    }

    /// Lays out what is touched; none if it does not fit.
    pub(super) fn compact(&self, device_sectors: u64) -> Option<Compaction> {
        let sizes = std::iter::successors(Some(MOST_PAGES), |pages| (*pages > 1).then(|| pages / 2));
        for extent_pages in sizes {
            let runs = self.runs(extent_pages);
            let used = runs.last().map_or(0, |run| run.base + (run.end - run.first));
            if used <= device_sectors {
                return Some(Compaction { runs, extent_bytes: extent_pages * LOGICAL_PAGE_BYTES });
            }
        }
        None
    }

    fn runs(&self, extent_pages: u64) -> Vec<Run> {
        let extent = extent_pages * LOGICAL_PAGE_SECTORS;
        let mut runs: Vec<Run> = Vec::new();
        let mut base = 0;
        for (device, pages) in (0..).zip(&self.devices) {
            // Behind the last extent that is laid out.
            let mut next = 0;
            for range in pages.ranges() {
                let (first, end) = (range.start / extent_pages, range.end.div_ceil(extent_pages));
                let first = first.max(next);
                if first >= end {
                    continue;
                }
                next = end;
                match runs.last_mut() {
                    Some(run) if run.device == device && run.end == first * extent => run.end = end * extent,
                    _ => runs.push(Run { device, first: first * extent, end: end * extent, base }),
                }
                base += (end - first) * extent;
            }
        }
        runs
    }
}

impl Compaction {
    /// First sector and length of a range; of length 0 where nothing of it is
    /// touched, as of a trim.
    pub(super) fn place(&self, device: u32, lba: u64, sectors: u32) -> (u64, u32) {
        let first = self.position(device, lba);
        let end = self.position(device, lba + u64::from(sectors));
        (first, (end - first) as u32)
    }

    /// Where a sector lies, or what is touched next behind it.
    fn position(&self, device: u32, lba: u64) -> u64 {
        let at = self.runs.partition_point(|run| (run.device, run.end) <= (device, lba));
        match self.runs.get(at) {
            Some(run) if run.device == device => run.base + lba.saturating_sub(run.first),
            Some(run) => run.base,
            None => self.runs.last().map_or(0, |run| run.base + (run.end - run.first)),
        }
    }

    /// What a result says of it.
    pub(super) fn note(&self, touched: &Touched) -> String {
        format!(
            "its addresses do not fit the device: the {} that it touches are laid out one behind another, in extents \
             of {}",
            Bytes(touched.bytes()),
            Bytes(self.extent_bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_stay_neighbours() {
        let mut touched = Touched::default();
        // Three pages in a row far out, one before them, one on another device.
        touched.insert(0, Operation::Write, 1 << 30, 24);
        touched.insert(0, Operation::Read, 100 << 20, 8);
        touched.insert(1, Operation::Read, 8, 4);
        touched.insert(0, Operation::Trim, 0, u32::MAX);
        assert_eq!(touched.bytes(), 5 * 4096);
        let compaction = touched.compact(40).unwrap();
        assert_eq!(compaction.extent_bytes, 4096);
        assert_eq!(compaction.place(0, 1 << 30, 24), (8, 24));
        assert_eq!(compaction.place(0, (1 << 30) + 5, 9), (13, 9));
        assert_eq!(compaction.place(0, 100 << 20, 8), (0, 8));
        assert_eq!(compaction.place(1, 8, 4), (32, 4));
        // A trim of everything is one of all that is touched; one between is of nothing.
        assert_eq!(compaction.place(0, 0, u32::MAX), (0, 32));
        assert_eq!(compaction.place(0, 0, 8), (0, 0));
        assert_eq!(touched.compact(39), None);
        // With room, extents are larger, and what lies in one keeps its place in it.
        let compaction = touched.compact(3 * 2048).unwrap();
        assert_eq!(compaction.extent_bytes, 1 << 20);
        assert_eq!(compaction.place(1, 8, 4), (4096 + 8, 4));
    }
}
