//! How often the frames of a list have been used.

/// Frames by their uses, and which numbers of uses any has.
#[derive(Clone)]
pub struct Uses {
    frames: [u32; 256],
    /// A bit for each number of uses.
    any: [u64; 4],
}

impl Default for Uses {
    fn default() -> Uses {
        Uses { frames: [0; 256], any: [0; 4] }
    }
}

impl Uses {
    /// A frame with so many uses comes.
    #[inline]
    pub fn add(&mut self, uses: u8) {
        self.frames[usize::from(uses)] += 1;
        self.any[usize::from(uses) / 64] |= 1 << (uses % 64);
    }

    /// One leaves.
    #[inline]
    pub fn take_off(&mut self, uses: u8) {
        let frames = &mut self.frames[usize::from(uses)];
        *frames -= 1;
        if *frames == 0 {
            self.any[usize::from(uses) / 64] &= !(1 << (uses % 64));
        }
    }

    /// The least and the most uses of any.
    pub fn range(&self) -> Option<(u8, u8)> {
        let first = self.any.iter().position(|&word| word != 0)?;
        let last = self.any.iter().rposition(|&word| word != 0)?;
        let least = first as u32 * 64 + self.any[first].trailing_zeros();
        let most = last as u32 * 64 + self.any[last].ilog2();
        Some((least as u8, most as u8))
    }
}
