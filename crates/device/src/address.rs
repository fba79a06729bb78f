//! Addresses inside one partition of the device.

/// "No index": ends linked lists and marks empty fields in dense tables.
pub(crate) const NONE: u32 = u32::MAX;

/// A logical page number: an index of 4 KiB mapping units. Numbers past the
/// logical capacity name map pages, so that both live in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// A physical page number: where a 4 KiB mapping unit lies in flash. A flash
/// page of 16 KiB holds four consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// A block: the unit of erasing. Blocks of one chip are consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A chip (one die, one LUN) of the whole device, channel-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipId(pub u32);

/// Where the current data of a logical page is: nowhere, in flash, or in an
/// entry of the write buffer. One 32-bit word; entries are numbered past the
/// last [`Ppn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home(pub u32);

impl Home {
    /// Never written, or trimmed.
    pub const UNMAPPED: Home = Home(NONE);
}
