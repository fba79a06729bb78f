//! Real data: bytes given with writes and taken with reads, and flash that
//! fails under them.

use std::collections::BTreeMap;

use flashkeel_engine::{Operation, RequestId, Status, Time};

use super::Ssd;
use crate::address::{LOGICAL_PAGE_BYTES, Lpn};
use crate::ftl::{Page, Pages, Part};

const PAGE_BYTES: usize = LOGICAL_PAGE_BYTES as usize;

/// The bytes of requests inside the device.
#[derive(Clone, Default)]
pub(crate) struct Payloads {
    /// Of writes, given before they are submitted; of reads, not taken yet.
    of: BTreeMap<u64, Vec<u8>>,
    /// Pages of requests that were rebuilt from the rest of their stripe.
    rebuilt: BTreeMap<u64, Vec<(usize, Lpn)>>,
}

/// What fails, in chips of the device (channel by channel), blocks of the chip
/// and flash pages of the block. What it held is lost, and what is written
/// there from then on is not: a spare takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One flash page.
    Page {
        /// Its chip.
        chip: u32,
        /// Its block.
        block: u32,
        /// Its number in the block.
        page: u32,
    },
    /// One plane of a chip.
    Plane {
        /// Its chip.
        chip: u32,
        /// Its number.
        plane: u32,
    },
    /// A whole chip.
    Chip(u32),
    /// Every chip of a channel.
    Channel(u32),
}

impl Ssd {
    /// From now on pages hold bytes: zeros, until others are given. For tests
    /// and servers; it costs memory and time.
    pub fn keep_data(&mut self) {
        self.payloads = Some(Payloads::default());
        for partition in &mut self.partitions {
            partition.ftl.pages = Some(Pages::default());
        }
    }

    /// Gives the bytes of a write that is about to be submitted.
    pub fn give(&mut self, id: RequestId, bytes: Vec<u8>) {
        self.payloads.as_mut().expect("data is kept").of.insert(id.0, bytes);
    }

    /// Takes the bytes of a read that has completed.
    pub fn take(&mut self, id: RequestId) -> Option<Vec<u8>> {
        self.payloads.as_mut()?.of.remove(&id.0)
    }

    /// Lets a part of the flash fail. Needs logical stripes, from which what is
    /// lost can be rebuilt.
    ///
    /// # Errors
    /// If there are none, or no such part.
    pub fn fail(&mut self, now: Time, fault: Fault) -> Result<(), String> {
        if self.layout.partition.static_stripes.is_none() {
            return Err("only a device with redundancy \"logical\" survives a fault".into());
        }
        let geometry = self.layout.geometry;
        let planes = self.layout.planes_per_chip;
        let (blocks, pages, slots) =
            (geometry.blocks_per_chip, geometry.pages_per_block, geometry.slots_per_page);
        let all = |chip| Part { chip, blocks: 0..blocks, pages: 0..pages, slots: 0..slots };
        let parts: Vec<Part> = match fault {
            Fault::Page { chip, block, page } => {
                vec![Part { blocks: block..block + 1, pages: page..page + 1, ..all(chip) }]
            }
            Fault::Plane { chip, plane } if plane < planes && self.layout.multi_plane => {
                let each = slots / planes;
                vec![Part { slots: plane * each..(plane + 1) * each, ..all(chip) }]
            }
            Fault::Plane { chip, plane } if plane < planes => {
                let each = blocks / planes;
                vec![Part { blocks: plane * each..(plane + 1) * each, ..all(chip) }]
            }
            Fault::Plane { plane, .. } => {
                return Err(format!("there is no plane {plane}; {planes} to a chip"));
            }
            Fault::Chip(chip) => vec![all(chip)],
            Fault::Channel(channel) => {
                let each = geometry.chips_per_channel;
                (channel * each..(channel + 1) * each).map(all).collect()
            }
        };
        let per_partition = self.layout.partition.chips;
        for mut part in parts {
            let exists = part.chip < geometry.chips() && part.blocks.end <= blocks && part.pages.end <= pages;
            if !exists {
                return Err(format!("there is no such part of the flash: {fault:?}"));
            }
            let partition = &mut self.partitions[(part.chip / per_partition) as usize];
            part.chip %= per_partition;
            partition.ftl.fail(now, &part, &mut self.machine);
        }
        (self.may_rebuild, self.has_failed) = (true, true);
        Ok(())
    }

    /// Pages of 4 KiB whose copy in flash is lost and not restored yet.
    pub fn lost_pages(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.ftl.lost_pages()).sum()
    }

    /// How a request ends that has been served: a read may have asked for pages
    /// that are lost for good.
    #[cold]
    pub(crate) fn read_status(&mut self, index: u32) -> Status {
        let request = &self.requests[index];
        let is_gone = |lpn: &u64| {
            let (part, local) = self.layout.locate(*lpn);
            self.partitions[part].ftl.is_gone(local)
        };
        if request.operation != Operation::Read || !(request.first..request.end).any(|lpn| is_gone(&lpn)) {
            return Status::Ok;
        }
        self.machine.counters.lost_reads += 1;
        Status::Lost
    }

    /// Gives the buffered copy of a page the bytes that its write brought.
    #[inline]
    pub(crate) fn hold(&mut self, index: u32, part: usize, entry: u32) {
        if self.payloads.is_some() {
            self.hold_payload(index, part, entry);
        }
    }

    #[cold]
    fn hold_payload(&mut self, index: u32, part: usize, entry: u32) {
        let request = &self.requests[index];
        let first = (request.next - request.first) as usize * PAGE_BYTES;
        let given = self.payloads.as_ref().and_then(|payloads| payloads.of.get(&request.id.0));
        let page: Page = match given.and_then(|bytes| bytes.get(first..first + PAGE_BYTES)) {
            Some(bytes) => bytes.try_into().expect("a page of bytes"),
            None => [0; _],
        };
        self.partitions[part].ftl.hold(entry, &page);
    }

    /// Notes that a page is rebuilt for a request.
    pub(crate) fn note_rebuilt_page(&mut self, index: u32, part: usize, lpn: Lpn) {
        if let Some(payloads) = &mut self.payloads {
            payloads.rebuilt.entry(self.requests[index].id.0).or_default().push((part, lpn));
        }
    }

    /// Gathers the bytes that a completed request has read, or drops those that
    /// it has written.
    #[cold]
    pub(crate) fn settle_payload(&mut self, index: u32) {
        let request = &self.requests[index];
        let (id, first, end) = (request.id.0, request.first, request.end);
        let is_read = request.operation == Operation::Read;
        let Some(mut payloads) = self.payloads.take() else { return };
        payloads.of.remove(&id);
        let rebuilt = payloads.rebuilt.remove(&id).unwrap_or_default();
        if is_read {
            let mut bytes = Vec::with_capacity((end - first) as usize * PAGE_BYTES);
            for lpn in first..end {
                let (part, local) = self.layout.locate(lpn);
                let ftl = &self.partitions[part].ftl;
                let from_mates = || ftl.rebuilt(local).filter(|_| rebuilt.contains(&(part, local)));
                match from_mates().or_else(|| ftl.content(local)) {
                    Some(page) => bytes.extend_from_slice(&page),
                    None => bytes.extend_from_slice(&[0; PAGE_BYTES]),
                }
            }
            payloads.of.insert(id, bytes);
        }
        self.payloads = Some(payloads);
    }
}
