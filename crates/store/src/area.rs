//! Writes to one part of the file, put together as long as each follows the one before.

use std::io;

use crate::Disk;

/// Bytes put together at most.
const MOST: usize = 256 << 10;

/// Parts of the file in which writes follow one another.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Pages,
    Places,
    Slots,
    Held,
    Trims,
}

/// Bytes that are still to be written.
#[derive(Debug, Default)]
pub(crate) struct Area {
    offset: u64,
    bytes: Vec<u8>,
}

impl Area {
    /// Writes, now or later.
    pub fn write(&mut self, disk: &dyn Disk, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_next = offset == self.offset + self.bytes.len() as u64;
        if !is_next || self.bytes.len() + bytes.len() > MOST {
            self.settle(disk)?;
            self.offset = offset;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is left to write.
    pub fn settle(&mut self, disk: &dyn Disk) -> io::Result<()> {
        if !self.bytes.is_empty() {
            disk.write_at(&self.bytes, self.offset)?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// What is still to be written at a place, if it is.
    pub fn pending(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..start + length)
    }
}
