//! Flash that fails, and how reads of what it held end.

use flashkeel_engine::{Operation, Status, Time};

use super::Ssd;
use crate::ftl::Part;

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
    /// Lets a part of the flash fail. What logical stripes cannot rebuild is lost:
    /// reads of it end as [`Status::Lost`], or as [`Status::MediaError`] where there
    /// are no stripes, until it is written again or trimmed.
    ///
    /// # Errors
    /// If there is no such part, or its stripes are made of pages that happen to be
    /// programmed together (redundancy `physical`), which are not restored.
    pub fn fail(&mut self, now: Time, fault: Fault) -> Result<(), String> {
        if self.layout.partition.stripe_width > 1 {
            return Err("a device with redundancy \"physical\" does not restore what fails".into());
        }
        let geometry = self.layout.geometry;
        let planes = self.layout.planes_per_chip;
        let (blocks, pages, units) =
            (geometry.blocks_per_chip, geometry.pages_per_block, geometry.units_per_page);
        let all = |chip| Part { chip, blocks: 0..blocks, pages: 0..pages, units: 0..units };
        let parts: Vec<Part> = match fault {
            Fault::Page { chip, block, page } => {
                vec![Part { blocks: block..block + 1, pages: page..page + 1, ..all(chip) }]
            }
            Fault::Plane { chip, plane } if plane < planes && self.layout.multi_plane => {
                let each = units / planes;
                vec![Part { units: plane * each..(plane + 1) * each, ..all(chip) }]
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
        self.may_rebuild |= self.layout.partition.static_stripes.is_some();
        self.may_fail = true;
        Ok(())
    }

    /// Pages of 4 KiB whose copy in flash is lost and not restored yet.
    pub fn lost_pages(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.ftl.tables.lost_pages()).sum()
    }

    /// How a request ends that has been served: a read may have asked for pages
    /// that are lost for good, and a write for room that there was not.
    #[cold]
    pub(crate) fn end_status(&mut self, index: u32) -> Status {
        let request = &self.requests[index];
        if request.lacks_room {
            return Status::NoSpace;
        }
        if request.is_unreadable {
            self.machine.counters.lost_reads += 1;
            return Status::MediaError;
        }
        let is_gone = |lpn: &u64| {
            let (part, local) = self.layout.locate(*lpn);
            self.partitions[part].ftl.tables.is_gone(local)
        };
        // What was on its way from flash may have failed since, and what was lost then may
        // have been written since.
        let is_lost = request.is_lost || (request.first..request.end).any(|lpn| is_gone(&lpn));
        if request.operation != Operation::Read || !is_lost {
            return Status::Ok;
        }
        self.machine.counters.lost_reads += 1;
        match self.layout.partition.static_stripes {
            Some(_) => Status::Lost,
            None => Status::MediaError,
        }
    }
}
