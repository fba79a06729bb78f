//! Where the addresses of a mirror lie: what has copies, and what has one place.

use flashkeel_engine::{
    Durable, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Limits, SECTOR_BYTES, units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of addresses with copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeConfig {
    /// Where it begins, a multiple of 4 KiB.
    pub from: Bytes,
    /// How long it is, a multiple of 4 KiB.
    pub length: Bytes,
}

/// Where a stretch of addresses lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// On every copy, at the same address.
    Copied(Lba),
    /// On one device.
    Single(usize, Lba),
}

/// What has copies stands first on every device, in the order of its addresses;
/// behind it each has a part of the rest, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Beginning and end in sectors of the ranges with copies, in order, and where
    /// each lies on the devices.
    ranges: Vec<(u64, u64, u64)>,
    copied: u64,
    /// Of the rest, on each device.
    single: u64,
    devices: u64,
}

impl Layout {
    /// Over so many devices of so many sectors; everything has copies where there
    /// are no ranges.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn new(ranges: &[RangeConfig], device: u64, devices: u64) -> Result<Layout, String> {
        let device = device - device % LOGICAL_PAGE_SECTORS;
        if ranges.is_empty() {
            return Ok(Layout { ranges: vec![(0, device, 0)], copied: device, single: 0, devices });
        }
        let mut sorted: Vec<(u64, u64, usize)> = Vec::new();
        for (index, RangeConfig { from, length }) in ranges.iter().enumerate() {
            for (key, bytes) in [("from", from), ("length", length)] {
                if !bytes.0.is_multiple_of(LOGICAL_PAGE_BYTES) || (key == "length" && bytes.0 == 0) {
                    return Err(format!("ranges.{index}.{key} is {bytes}; a multiple of 4KiB is needed"));
                }
            }
            let end = from.0.checked_add(length.0);
            let end = end.ok_or_else(|| format!("ranges.{index}: ends beyond every device"))?;
            sorted.push((from.0 / SECTOR_BYTES, end / SECTOR_BYTES, index));
        }
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            return Err(format!("ranges.{}: overlaps ranges.{}", pair[1].2, pair[0].2));
        }
        let copied: u64 = sorted.iter().map(|(from, end, _)| end - from).sum();
        if copied > device {
            return Err(format!(
                "ranges: {} of them have copies, but a device holds {}",
                Bytes(copied * SECTOR_BYTES),
                Bytes(device * SECTOR_BYTES)
            ));
        }
        let single = device - copied;
        let sectors = copied + devices * single;
        if let Some((.., index)) = sorted.iter().find(|(_, end, _)| *end > sectors) {
            return Err(format!(
                "ranges.{index}: ends beyond the {} that the mirror holds with these ranges",
                Bytes(sectors * SECTOR_BYTES)
            ));
        }
        let mut at = 0;
        let placed = sorted.into_iter().map(|(from, end, _)| {
            at += end - from;
            (from, end, at - (end - from))
        });
        Ok(Layout { ranges: placed.collect(), copied, single, devices })
    }

    /// Addresses in all, in sectors.
    pub fn sectors(&self) -> u64 {
        self.copied + self.devices * self.single
    }

    /// Addresses with copies, in sectors.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Where an address lies, and for how many sectors that goes on.
    pub fn place(&self, lba: Lba) -> (Located, u64) {
        let after = self.ranges.partition_point(|&(from, ..)| from <= lba.0);
        let next = self.ranges.get(after).map_or(u64::MAX, |&(from, ..)| from);
        let Some(&(from, end, at)) = after.checked_sub(1).map(|before| &self.ranges[before]) else {
            return self.rest(lba.0, next - lba.0);
        };
        if lba.0 < end {
            return (Located::Copied(Lba(at + lba.0 - from)), end - lba.0);
        }
        self.rest(lba.0 - (at + end - from), next - lba.0)
    }

    /// Where an address of the rest lies.
    fn rest(&self, index: u64, run: u64) -> (Located, u64) {
        let (device, offset) = (index / self.single, index % self.single);
        (Located::Single(device as usize, Lba(self.copied + offset)), run.min(self.single - offset))
    }
}

/// What a mirror over such devices has to state of itself. Where some keep what
/// they are given and others do not, the former count, unless the latter have
/// something of which there is no copy.
pub(super) fn over(layout: &Layout, below: &[Limits]) -> Limits {
    let page = LOGICAL_PAGE_SECTORS as u32;
    let is_partial = layout.copied() < layout.sectors();
    let each = below.iter().map(|each| each.durable);
    let counting = each.filter(|&durable| is_partial || durable != Durable::Never);
    let durable = counting.max().unwrap_or(Durable::Never);
    below.iter().fold(
        Limits { sectors: layout.sectors(), block_sectors: page, preferred_sectors: page, durable },
        |all, each| Limits {
            block_sectors: all.block_sectors.max(each.block_sectors),
            preferred_sectors: all.preferred_sectors.max(each.preferred_sectors),
            ..all
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(from: u64, length: u64) -> RangeConfig {
        RangeConfig { from: Bytes(from << 12), length: Bytes(length << 12) }
    }

    #[test]
    fn every_address_has_a_place_of_its_own() {
        for ranges in [vec![], vec![range(0, 3)], vec![range(20, 4), range(2, 5)], vec![range(0, 16)]] {
            let layout = Layout::new(&ranges, 16 * 8, 3).expect("a layout");
            let (mut places, mut runs) = (BTreeSet::new(), 0);
            let mut lba = 0;
            while lba < layout.sectors() {
                let (place, run) = layout.place(Lba(lba));
                assert!(run > 0 && lba + run <= layout.sectors(), "{ranges:?} {lba} {run}");
                for sector in 0..run {
                    let (single, at) = match place {
                        Located::Copied(Lba(at)) => (None, at),
                        Located::Single(device, Lba(at)) => (Some(device), at),
                    };
                    assert!(at + sector < 16 * 8);
                    assert!(places.insert((single, at + sector)), "{ranges:?}: {lba} lies on another");
                    let is_copied = ranges.is_empty()
                        || ranges.iter().any(|RangeConfig { from, length }| {
                            (from.0 / 512..(from.0 + length.0) / 512).contains(&(lba + sector))
                        });
                    assert_eq!(is_copied, single.is_none());
                }
                lba += run;
                runs += 1;
            }
            assert!(runs <= 2 * ranges.len() + 4);
        }
    }

    #[test]
    fn wrong_ranges_are_refused() {
        let refused = |ranges: &[RangeConfig]| Layout::new(ranges, 16 * 8, 2).unwrap_err();
        let odd = RangeConfig { from: Bytes(512), length: Bytes(4096) };
        assert_eq!(refused(&[odd]), "ranges.0.from is 512B; a multiple of 4KiB is needed");
        assert_eq!(refused(&[range(0, 0)]), "ranges.0.length is 0B; a multiple of 4KiB is needed");
        assert_eq!(refused(&[range(4, 4), range(0, 5)]), "ranges.0: overlaps ranges.1");
        assert_eq!(refused(&[range(0, 17)]), "ranges: 68KiB of them have copies, but a device holds 64KiB");
        assert_eq!(
            refused(&[range(24, 8)]),
            "ranges.0: ends beyond the 96KiB that the mirror holds with these ranges"
        );
        let beyond = RangeConfig { from: Bytes(4096), length: Bytes(u64::MAX - 4095) };
        assert_eq!(refused(&[beyond]), "ranges.0: ends beyond every device");
    }
}
