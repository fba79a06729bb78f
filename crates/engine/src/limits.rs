//! What a device states of itself.

/// What whoever submits to a device has to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Capacity in 512-byte sectors.
    pub sectors: u64,
    /// Sectors of a logical block: requests begin and end at multiples.
    pub block_sectors: u32,
    /// Sectors that the device likes requests to begin and end at multiples
    /// of; itself a multiple of a logical block.
    pub preferred_sectors: u32,
    /// From when on a power cut takes nothing of a write.
    pub durable: Durable,
}

/// From when on what has been written survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durable {
    /// As soon as the write is acknowledged.
    Acknowledged,
    /// Once a flush behind it is acknowledged, or the write itself where it
    /// forced unit access.
    Flushed,
    /// Never: the device is volatile.
    Never,
}

impl Limits {
    /// Whether a range can be served at all: inside, not empty, and whole
    /// blocks.
    #[inline]
    pub fn admit(&self, lba: u64, sectors: u32) -> bool {
        let block = u64::from(self.block_sectors);
        sectors > 0
            && lba.is_multiple_of(block)
            && u64::from(sectors).is_multiple_of(block)
            && lba.checked_add(u64::from(sectors)).is_some_and(|end| end <= self.sectors)
    }
}
