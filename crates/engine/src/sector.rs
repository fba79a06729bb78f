//! The sizes of what is addressed.

/// Bytes in a sector, the unit of an [`Lba`](crate::Lba).
pub const SECTOR_BYTES: u64 = 512;

/// Bytes of a logical page: what devices map, read and write, and what latencies of
/// memories are given for.
pub const LOGICAL_PAGE_BYTES: u64 = 4096;

/// Sectors of a logical page.
pub const LOGICAL_PAGE_SECTORS: u64 = LOGICAL_PAGE_BYTES / SECTOR_BYTES;
