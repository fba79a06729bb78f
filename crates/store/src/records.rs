//! The records of the file. Each has a checksum, of its number too, so that one that has
//! come to a wrong place is damaged. Where nothing has been written yet there are zeros with their
//! checksum: zeros alone are what is found where something has been lost.

use flashkeel_device::{Cycle, Lpn, Place};
use flashkeel_engine::Time;

/// The length of a record of a page, in flash or in the write buffer.
pub(crate) const PLACE_BYTES: usize = 32;
/// The length of a record of a block.
pub(crate) const CYCLE_BYTES: usize = 32;
/// The length of a record of a trim.
pub(crate) const TRIM_BYTES: usize = 16;
/// The length of a record of an epoch.
pub(crate) const EPOCH_BYTES: usize = 16;

/// A checksum of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A record that is not as it was written.
#[derive(Debug)]
pub(crate) struct Damaged;

/// What is found in a record's place, if it is not damaged.
pub(crate) type Read<T> = Result<Option<T>, Damaged>;

/// A record.
pub(crate) trait Record<const BYTES: usize>: Sized {
    /// What sets records of this kind apart from others.
    const KIND: u32;

    /// All but the last four bytes.
    fn write(&self, bytes: &mut Writer<'_>);

    /// The same.
    fn read(bytes: &mut Reader<'_>) -> Self;

    /// Record number `index`, as it is written.
    fn encode(&self, index: u32) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        self.write(&mut Writer(&mut bytes[..BYTES - 4]));
        let sum = sum(Self::KIND, index, &bytes[..BYTES - 4]);
        bytes[BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// What there is in the place of record number `index` before it is written.
    fn none(index: u32) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let sum = sum(Self::KIND, index, &bytes[..BYTES - 4]);
        bytes[BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Record number `index`, as it is read. None is written as zeros: of those of an epoch its number
    /// is not, of a trim its place in the order, and of a block of which all is zero nothing is known.
    fn decode(bytes: &[u8], index: u32) -> Read<Self> {
        let (body, end) = bytes.split_at(BYTES - 4);
        if end != sum(Self::KIND, index, body).to_le_bytes() {
            return Err(Damaged);
        }
        let is_none = body.iter().all(|&byte| byte == 0);
        Ok((!is_none).then(|| Self::read(&mut Reader(body))))
    }
}

fn sum(kind: u32, index: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&kind.to_le_bytes());
    hasher.update(&index.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Little-endian numbers one after another.
pub(crate) struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put(&mut self, number: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(number.len());
        place.copy_from_slice(number);
        self.0 = rest;
    }
}

/// The same.
pub(crate) struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (number, rest) = self.0.split_first_chunk().expect("records have one length");
        self.0 = rest;
        *number
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// What lies out of band beside a page in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Programmed {
    pub place: Place,
    /// Erases of its block when it was programmed: later ones have erased it.
    pub erases: u32,
    /// When it was written.
    pub epoch: u32,
    /// The checksum of its bytes; `None` where it has been given none.
    pub page: Option<u32>,
    /// It is a copy of bytes that were damaged: the checksum, which it came with, is of those that
    /// it should hold.
    pub is_damaged: bool,
}

/// What a record says of the bytes of its page: none, these, or others than it should have.
const NO_BYTES: u32 = 0;
const WHOLE: u32 = 1;
const DAMAGED: u32 = 2;

impl Record<PLACE_BYTES> for Programmed {
    const KIND: u32 = 1;

    fn write(&self, bytes: &mut Writer<'_>) {
        bytes.put(&self.place.lpn.0.to_le_bytes());
        bytes.put(&self.erases.to_le_bytes());
        bytes.put(&self.place.sequence.to_le_bytes());
        bytes.put(&self.epoch.to_le_bytes());
        let kind = match self.page {
            None => NO_BYTES,
            Some(_) if self.is_damaged => DAMAGED,
            Some(_) => WHOLE,
        };
        bytes.put(&kind.to_le_bytes());
        bytes.put(&self.page.unwrap_or(0).to_le_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Programmed {
        let (lpn, erases, sequence) = (Lpn(bytes.u32()), bytes.u32(), bytes.u64());
        let (epoch, kind, page) = (bytes.u32(), bytes.u32(), bytes.u32());
        let page = (kind != NO_BYTES).then_some(page);
        Programmed { place: Place { lpn, sequence }, erases, epoch, page, is_damaged: kind == DAMAGED }
    }
}

/// A page of the write buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub place: Place,
    /// When it was written.
    pub epoch: u32,
    /// Its place in the order of all that were held.
    pub stamp: u64,
    /// The checksum of its bytes; `None` where it has none: zeros, or parity on its way.
    pub page: Option<u32>,
}

/// In the place of a stamp, that there are no bytes.
const ZEROS: u64 = 1 << 63;

impl Record<PLACE_BYTES> for Held {
    const KIND: u32 = 2;

    fn write(&self, bytes: &mut Writer<'_>) {
        bytes.put(&self.place.lpn.0.to_le_bytes());
        bytes.put(&self.epoch.to_le_bytes());
        bytes.put(&self.place.sequence.to_le_bytes());
        bytes.put(&(self.stamp | if self.page.is_none() { ZEROS } else { 0 }).to_le_bytes());
        bytes.put(&self.page.unwrap_or(0).to_le_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Held {
        let (lpn, epoch, sequence) = (Lpn(bytes.u32()), bytes.u32(), bytes.u64());
        let (stamp, page) = (bytes.u64(), bytes.u32());
        let page = (stamp & ZEROS == 0).then_some(page);
        Held { place: Place { lpn, sequence }, epoch, stamp: stamp & !ZEROS, page }
    }
}

impl Record<CYCLE_BYTES> for Cycle {
    const KIND: u32 = 3;

    fn write(&self, bytes: &mut Writer<'_>) {
        bytes.put(&self.erases.to_le_bytes());
        bytes.put(&u32::from(self.is_retired).to_le_bytes());
        bytes.put(&self.worn.to_bits().to_le_bytes());
        bytes.put(&self.erased_at.0.to_le_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Cycle {
        let (erases, is_retired) = (bytes.u32(), bytes.u32() != 0);
        Cycle { erases, is_retired, worn: f64::from_bits(bytes.u64()), erased_at: Time(bytes.u64()) }
    }
}

/// A trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trim {
    /// Its place in the order of writes.
    pub sequence: u64,
}

impl Record<TRIM_BYTES> for Trim {
    const KIND: u32 = 4;

    fn write(&self, bytes: &mut Writer<'_>) {
        bytes.put(&self.sequence.to_le_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Trim {
        Trim { sequence: bytes.u64() }
    }
}

/// An epoch that has ended: all that was written in it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub number: u32,
    /// How far the device's time had come.
    pub now: Time,
}

impl Record<EPOCH_BYTES> for Epoch {
    const KIND: u32 = 5;

    fn write(&self, bytes: &mut Writer<'_>) {
        bytes.put(&self.number.to_le_bytes());
        bytes.put(&self.now.0.to_le_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Epoch {
        Epoch { number: bytes.u32(), now: Time(bytes.u64()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_where_it_was() {
        let place = Place { lpn: Lpn(77), sequence: 1 << 40 };
        let record = Programmed { place, erases: 3, epoch: 9, page: Some(0xdead_beef), is_damaged: false };
        let bytes = record.encode(12);
        assert_eq!(Programmed::decode(&bytes, 12).unwrap(), Some(record));
        assert!(Programmed::decode(&bytes, 13).is_err());
        assert!(Held::decode(&bytes, 12).is_err());
        for at in 0..bytes.len() * 8 {
            let mut bytes = bytes;
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(Programmed::decode(&bytes, 12).is_err());
        }
        assert!(Programmed::decode(&[0; PLACE_BYTES], 12).is_err());
        assert_eq!(Programmed::decode(&Programmed::none(12), 12).unwrap(), None);
        assert!(Programmed::decode(&Programmed::none(12), 13).is_err());
        for record in [Programmed { is_damaged: true, ..record }, Programmed { page: None, ..record }] {
            assert_eq!(Programmed::decode(&record.encode(1), 1).unwrap(), Some(record));
        }
    }

    #[test]
    fn what_is_known_of_a_block_is_kept() {
        let cycle = Cycle { erases: 5, worn: 4.25, erased_at: Time(123_456), is_retired: true };
        assert_eq!(Cycle::decode(&cycle.encode(1), 1).unwrap(), Some(cycle));
    }
}
