//! A set of pages, or of anything else that is numbered.

/// One bit for each number below a limit. While no bit is set, nothing is
/// looked up: tables as large as the device would miss the caches each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    ones: usize,
}

impl Bits {
    /// Makes room for numbers below `len`.
    pub fn grow(&mut self, len: u32) {
        self.words.resize(len.div_ceil(64) as usize, 0);
    }

    /// Whether there is room for any number.
    pub fn has_room(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether `index` is in the set.
    #[inline]
    pub fn get(&self, index: u32) -> bool {
        self.ones > 0 && self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Puts `index` into the set, or takes it out.
    ///
    /// # Panics
    /// If there is no room for it, unless the set is empty and remains so.
    #[inline]
    pub fn set(&mut self, index: u32, value: bool) {
        if self.ones == 0 && !value {
            return;
        }
        let word = &mut self.words[index as usize / 64];
        let former = *word >> (index % 64) & 1 == 1;
        *word ^= u64::from(former != value) << (index % 64);
        self.ones = self.ones + usize::from(value) - usize::from(former);
    }

    /// Whether nothing is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ones == 0
    }

    /// The least number of the set that is not below `first`.
    #[inline]
    pub fn next(&self, first: u32) -> Option<u32> {
        if self.ones == 0 {
            return None;
        }
        let at = first as usize / 64;
        let rest = self.words.get(at)? >> (first % 64);
        if rest != 0 {
            return Some(first + rest.trailing_zeros());
        }
        let later = self.words[at + 1..].iter().position(|&word| word != 0)? + at + 1;
        Some(later as u32 * 64 + self.words[later].trailing_zeros())
    }

    /// The numbers in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).zip(&self.words).filter(|(_, word)| **word != 0);
        words.flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_was_put_in_and_not_taken_out() {
        let (mut bits, mut reference) = (Bits::default(), std::collections::BTreeSet::new());
        assert!(!bits.has_room() && !bits.get(1_000));
        bits.set(1_000, false);
        bits.grow(130);
        let mut random = flashkeel_engine::Stream::new(1, "bits");
        for _ in 0..2_000 {
            let (index, value) = (random.below(130) as u32, random.chance(0.3));
            bits.set(index, value);
            if value {
                reference.insert(index);
            } else {
                reference.remove(&index);
            }
            assert!(bits.iter().eq(reference.iter().copied()));
            assert!((0..130).all(|index| bits.get(index) == reference.contains(&index)));
        }
    }
}
