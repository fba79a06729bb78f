//! Buffers for what is on its way to and from a drive, aligned as `O_DIRECT` wants them.

/// Alignment that every block device takes (open(2), "O_DIRECT").
const ALIGNMENT: usize = 4096;

/// One buffer. Its bytes stay where they are for as long as it is not told to grow.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// So many bytes of it, which hold anything; whatever was there may move.
    pub fn room(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + length {
            self.bytes = vec![0; length + ALIGNMENT];
            self.start = self.bytes.as_ptr().align_offset(ALIGNMENT);
        }
        &mut self.bytes[self.start..self.start + length]
    }

    /// The first bytes of it.
    pub fn filled(&self, length: usize) -> &[u8] {
        &self.bytes[self.start..self.start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_grow() {
        let mut buffer = Buffer::default();
        for length in [512, 4096, 100 << 10, 512] {
            let room = buffer.room(length);
            assert_eq!((room.len(), room.as_ptr().align_offset(ALIGNMENT)), (length, 0));
            room.fill(7);
            assert!(buffer.filled(length).iter().all(|&byte| byte == 7));
        }
    }
}
