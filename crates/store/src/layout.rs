//! What lies where in the file.

use std::io;

use flashkeel_device::{Cycle, MediumShape, Page};
use serde::{Deserialize, Serialize};

use crate::records::{CYCLE_BYTES, Held, PLACE_BYTES, Programmed, Record, TRIM_BYTES, Trim, checksum};
use crate::{Disk, Refused, Watch};

/// The first bytes of the file.
const MAGIC: &[u8; 16] = b"flashkeel data\r\n";

/// What this version writes and reads. In version 1 a record that was not written was zeros, which
/// could not be told from one that had been lost.
const VERSION: u32 = 2;

/// What everything is a multiple of.
pub(crate) const PAGE_BYTES: u64 = size_of::<Page>() as u64;

/// After the header, the records of the last epochs that have ended, one with an even number and one
/// with an odd: where each epoch ends by itself, the record of the last is not written over.
pub(crate) const EPOCHS: [u64; 2] = [PAGE_BYTES, 2 * PAGE_BYTES];

/// Bytes of records that are read or written at a time.
pub(crate) const CHUNK: usize = 1 << 20;

/// Where the sections begin.
const SECTIONS: u64 = 3 * PAGE_BYTES;

/// What the file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What the host sees, in bytes.
    pub capacity_bytes: u64,
    /// The sections, one for each partition of an SSD, one for each memory, and for each tier.
    pub sections: Vec<SectionShape>,
    /// The checksum of what says where a host's volumes lie on the devices, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<u32>,
    /// The checksum of what says which page of which section an address is, and which pages have
    /// a parity in common, of drives for which that does not follow from the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<u32>,
}

/// The numbers of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionShape {
    /// Logical pages, those of the map included.
    pub lpns: u32,
    /// Physical pages; none where pages of a memory or a tier are kept.
    pub ppns: u32,
    /// Physical pages of a block.
    pub units_per_block: u32,
    /// Places for pages of the write buffer, or of the memory or tier.
    pub slots: u32,
}

/// Places beyond those that are in use at most: they wait for a synchronisation.
const SPARE_SLOTS: u32 = 4096;

impl From<MediumShape> for SectionShape {
    /// For a partition of an SSD.
    fn from(MediumShape { lpns, ppns, units_per_block, held }: MediumShape) -> SectionShape {
        // As many again as the buffer holds are being programmed, or wait, too.
        SectionShape { lpns, ppns, units_per_block, slots: 2 * held + SPARE_SLOTS }
    }
}

impl SectionShape {
    /// For a keeper of so many pages at most, with numbers below `pages`.
    pub fn of_pages(pages: u32, most: u32) -> SectionShape {
        SectionShape { lpns: pages, ppns: 0, units_per_block: 1, slots: most.saturating_add(SPARE_SLOTS) }
    }

    /// Whether it has a keeper and no flash.
    pub(crate) fn is_keeper(&self) -> bool {
        self.ppns == 0
    }

    /// Blocks.
    pub fn blocks(&self) -> u32 {
        self.ppns / self.units_per_block
    }
}

impl Header {
    /// For a device of this capacity with such sections. Where it is put together of several, or
    /// its addresses are not those of its flash, `placement` says how: the file is then of no
    /// other that does not say the same. So are `addresses`, what its SSDs say of theirs.
    ///
    /// # Errors
    /// A sentence, if there are more partitions than a file has room for.
    pub fn new(
        capacity_bytes: u64,
        sections: Vec<SectionShape>,
        placement: &str,
        addresses: &str,
    ) -> Result<Header, String> {
        let sum = |text: &str| (!text.is_empty()).then(|| checksum(text.as_bytes()));
        let (placement, addresses) = (sum(placement), sum(addresses));
        let header = Header { capacity_bytes, sections, placement, addresses };
        if header.written().len() > PAGE_BYTES as usize {
            let partitions = header.sections.len();
            return Err(format!("it has {partitions} partitions, more than a file has room for"));
        }
        Ok(header)
    }

    /// How long the file is.
    pub fn bytes(&self) -> u64 {
        self.sections().1
    }

    /// As it is written, a page.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.written();
        bytes.resize(PAGE_BYTES as usize, 0);
        bytes
    }

    fn written(&self) -> Vec<u8> {
        let text = serde_json::to_vec(self).expect("numbers");
        let mut bytes =
            [&MAGIC[..], &VERSION.to_le_bytes(), &(text.len() as u32).to_le_bytes(), &text].concat();
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// As it is read.
    pub(crate) fn decode(page: &[u8]) -> Result<Header, Refused> {
        let unfit = |reason: &str| Refused::Unfit(reason.to_owned());
        let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
        if page[..MAGIC.len()] != *MAGIC {
            return Err(unfit("it holds something else than the data of a served drive"));
        }
        let length = word(20) as usize;
        if length > PAGE_BYTES as usize - 28 || checksum(&page[..24 + length]) != word(24 + length) {
            return Err(unfit("it is damaged: its header does not have the right checksum"));
        }
        match word(16) {
            VERSION => {}
            other => {
                return Err(Refused::Unfit(format!(
                    "it has version {other}, and this program reads {VERSION} only; the one that wrote it can \
                     serve it, so that what it holds can be copied"
                )));
            }
        }
        serde_json::from_slice(&page[24..24 + length])
            .map_err(|error| Refused::Unfit(format!("it is damaged: its header cannot be read ({error})")))
    }

    /// Where everything lies, and where it ends.
    pub(crate) fn sections(&self) -> (Vec<Section>, u64) {
        let mut end = SECTIONS;
        let mut take = |count: u32, bytes: u64| {
            let start = end;
            end += (u64::from(count) * bytes).next_multiple_of(PAGE_BYTES);
            start
        };
        let section = |shape: &SectionShape| Section {
            shape: *shape,
            cycles: take(shape.blocks(), CYCLE_BYTES as u64),
            places: take(shape.ppns, PLACE_BYTES as u64),
            trims: take(shape.lpns, TRIM_BYTES as u64),
            slots: take(shape.slots, PLACE_BYTES as u64),
            held: take(shape.slots, PAGE_BYTES),
            pages: take(shape.ppns, PAGE_BYTES),
        };
        (self.sections.iter().map(section).collect(), end)
    }
}

/// Where the parts of a section begin, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub shape: SectionShape,
    /// What is known of each block.
    pub cycles: u64,
    /// What lies out of band beside each page.
    pub places: u64,
    /// The last trim of each logical page.
    pub trims: u64,
    /// What the places of the write buffer hold,
    pub slots: u64,
    /// and their bytes.
    pub held: u64,
    /// The bytes of the pages.
    pub pages: u64,
}

impl Section {
    /// Bytes of records.
    fn record_bytes(&self) -> u64 {
        let SectionShape { lpns, ppns, slots, .. } = self.shape;
        let of = |count: u32, bytes: usize| u64::from(count) * bytes as u64;
        of(self.shape.blocks(), CYCLE_BYTES)
            + of(ppns, PLACE_BYTES)
            + of(lpns, TRIM_BYTES)
            + of(slots, PLACE_BYTES)
    }
}

/// Writes that no record has been written yet.
pub(crate) fn write_none(disk: &dyn Disk, sections: &[Section], watch: &mut Watch<'_>) -> io::Result<()> {
    let total = sections.iter().map(Section::record_bytes).sum();
    let mut blank = Blank { disk, watch, chunk: Vec::with_capacity(CHUNK), unsynced: 0, done: 0, total };
    for at in sections {
        blank.write::<_, Cycle>(at.cycles, at.shape.blocks())?;
        blank.write::<_, Programmed>(at.places, at.shape.ppns)?;
        blank.write::<_, Trim>(at.trims, at.shape.lpns)?;
        blank.write::<_, Held>(at.slots, at.shape.slots)?;
    }
    Ok(())
}

/// Bytes that are written at most before they are made durable, which nobody can break off.
const MOST_UNSYNCED: usize = 16 << 20;

/// Records that have not been written, which are being written.
struct Blank<'a, 'b> {
    disk: &'a dyn Disk,
    watch: &'a mut Watch<'b>,
    chunk: Vec<u8>,
    unsynced: usize,
    done: u64,
    total: u64,
}

impl Blank<'_, '_> {
    /// So many of a kind, from `offset` on.
    fn write<const BYTES: usize, R: Record<BYTES>>(&mut self, offset: u64, count: u32) -> io::Result<()> {
        let per_chunk = (CHUNK / BYTES) as u32;
        for first in (0..count).step_by(per_chunk as usize) {
            self.chunk.clear();
            (first..first + per_chunk.min(count - first)).for_each(|index| self.chunk.extend(R::none(index)));
            self.disk.write_at(&self.chunk, offset + u64::from(first) * BYTES as u64)?;
            self.unsynced += self.chunk.len();
            if self.unsynced >= MOST_UNSYNCED {
                self.disk.sync()?;
                self.unsynced = 0;
            }
            self.done += self.chunk.len() as u64;
            if (self.watch)("format", self.done as f64 / self.total as f64).is_break() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_version_is_refused_with_both() {
        let header = Header::new(4096, vec![SectionShape::of_pages(1, 1)], "", "").expect("it has room");
        let mut written = header.written();
        assert_eq!(Header::decode(&header.encode()).expect("it is whole"), header);
        let end = written.len() - 4;
        written[MAGIC.len()] = 1;
        let sum = checksum(&written[..end]);
        written[end..].copy_from_slice(&sum.to_le_bytes());
        written.resize(PAGE_BYTES as usize, 0);
        let Err(Refused::Unfit(said)) = Header::decode(&written) else { panic!("it is taken") };
        assert!(said.starts_with("it has version 1, and this program reads 2 only"), "{said}");
    }
}
