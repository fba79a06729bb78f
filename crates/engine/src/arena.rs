//! The bytes that requests carry, where data is real.

use crate::SECTOR_BYTES;

/// Where the bytes of a request are: a buffer of an [`Arena`] and a place in
/// it. Copied freely; whoever took the buffer gives it back.
///
/// In simulation requests carry none, and nobody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    buffer: u32,
    /// In sectors.
    offset: u32,
}

impl Payload {
    /// No bytes.
    pub const NONE: Payload = Payload { buffer: u32::MAX, offset: 0 };

    /// Whether there are any.
    #[inline]
    pub fn is_some(self) -> bool {
        self.buffer != u32::MAX
    }

    /// What follows the first `sectors`.
    #[inline]
    pub fn skip(self, sectors: u32) -> Payload {
        Payload { offset: self.offset.wrapping_add(sectors), ..self }
    }
}

/// Bytes of a buffer that are kept for the next request: of a longer one the system gets its memory
/// back, or in the end each buffer would be as long as the longest request.
const MOST_KEPT: usize = 64 << 10;

/// Buffers for the bytes of requests on their way.
///
/// Whoever drives a leaf owns the arena and lends it with every call, so that a
/// leaf takes the bytes of a write, and fills in those of a read, at the moment
/// at which it serves them.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Arena {
    /// An arena without buffers.
    pub fn new() -> Arena {
        Arena::default()
    }

    /// Takes a buffer of `sectors` zeroed sectors.
    pub fn take(&mut self, sectors: u32) -> Payload {
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        });
        let bytes = &mut self.buffers[buffer as usize];
        bytes.clear();
        bytes.resize(sectors as usize * SECTOR_BYTES as usize, 0);
        Payload { buffer, offset: 0 }
    }

    /// Gives a buffer back, by any place in it. Nothing happens where there is
    /// none.
    pub fn give_back(&mut self, payload: Payload) {
        if payload.is_some() {
            debug_assert!(!self.free.contains(&payload.buffer), "a buffer is given back once");
            let bytes = &mut self.buffers[payload.buffer as usize];
            if bytes.capacity() > MOST_KEPT {
                *bytes = Vec::new();
            }
            self.free.push(payload.buffer);
        }
    }

    /// Buffers that have been taken and not given back.
    pub fn taken(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    /// The bytes of `sectors` sectors; `None` where there are none.
    ///
    /// # Panics
    /// If the buffer ends before.
    #[inline]
    pub fn read(&self, payload: Payload, sectors: u32) -> Option<&[u8]> {
        payload.is_some().then(|| &self.buffers[payload.buffer as usize][range(payload, sectors)])
    }

    /// The same, to change.
    ///
    /// # Panics
    /// If the buffer ends before.
    #[inline]
    pub fn write(&mut self, payload: Payload, sectors: u32) -> Option<&mut [u8]> {
        payload.is_some().then(|| &mut self.buffers[payload.buffer as usize][range(payload, sectors)])
    }

    /// Copies `sectors` sectors from one buffer to another, if both exist.
    ///
    /// # Panics
    /// If either ends before, or both are the same.
    pub fn copy(&mut self, from: Payload, to: Payload, sectors: u32) {
        if !from.is_some() || !to.is_some() {
            return;
        }
        let indices = [from.buffer as usize, to.buffer as usize];
        let [source, target] = self.buffers.get_disjoint_mut(indices).expect("two buffers of the arena");
        target[range(to, sectors)].copy_from_slice(&source[range(from, sectors)]);
    }
}

fn range(payload: Payload, sectors: u32) -> std::ops::Range<usize> {
    let sector = SECTOR_BYTES as usize;
    let first = payload.offset as usize * sector;
    first..first + sectors as usize * sector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_buffer_is_a_place_in_it() {
        let mut arena = Arena::new();
        let whole = arena.take(4);
        arena.write(whole.skip(1), 2).unwrap().fill(7);
        let sums: Vec<u32> = (0..4)
            .map(|sector| {
                arena.read(whole.skip(sector), 1).unwrap().iter().map(|&byte| u32::from(byte)).sum()
            })
            .collect();
        assert_eq!(sums, [0, 7 * 512, 7 * 512, 0]);
        let copy = arena.take(2);
        arena.copy(whole.skip(2), copy, 2);
        assert_eq!(arena.read(copy, 2).unwrap()[..512], [7; 512]);
        assert_eq!(arena.read(copy, 2).unwrap()[512..], [0; 512]);
    }

    #[test]
    fn a_buffer_that_was_long_does_not_stay_so() {
        let mut arena = Arena::new();
        for _ in 0..10 {
            let short = arena.take(8);
            let long = arena.take(16_384);
            // The long one is the next to be taken.
            [short, long].into_iter().for_each(|payload| arena.give_back(payload));
            let short = [arena.take(8), arena.take(8), arena.take(8)];
            short.into_iter().for_each(|payload| arena.give_back(payload));
        }
        let bytes: usize = arena.buffers.iter().map(Vec::capacity).sum();
        assert!(bytes <= 4 * MOST_KEPT, "{bytes} bytes");
    }

    #[test]
    fn a_buffer_is_used_again_and_comes_zeroed() {
        let mut arena = Arena::new();
        let first = arena.take(1);
        arena.write(first, 1).unwrap().fill(9);
        assert_eq!(arena.taken(), 1);
        arena.give_back(first);
        arena.give_back(Payload::NONE);
        assert_eq!(arena.taken(), 0);
        let second = arena.take(2);
        assert_eq!(arena.read(second, 2).unwrap(), [0; 1024]);
        assert_eq!(arena.read(Payload::NONE, 8), None);
    }
}
