//! How blocks and pages lie on chips.

use crate::address::ChipId;

/// The layout of one partition's blocks. A block of the translation layer
/// consists of one block on each chip of a group; its pages run over the
/// group's chips row by row. The last page of each row is parity, and rows are
/// rotated against each other so that every chip has its share of parity.
/// Without redundancy a group is a single chip and nothing is parity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripes {
    first_chip: u32,
    groups: u32,
    width_shift: u32,
}

impl Stripes {
    /// Stripes of `width` pages over `chips` chips from `first_chip` on.
    pub fn new(first_chip: u32, chips: u32, width: u32) -> Self {
        Stripes { first_chip, groups: chips / width, width_shift: width.trailing_zeros() }
    }

    /// Pages of a stripe, and chips of a group.
    #[inline]
    pub fn width(&self) -> u32 {
        1 << self.width_shift
    }

    /// Groups of chips.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The chip of a group's member. Neighbours in a group lie on different
    /// channels as far as there are any.
    #[inline]
    pub fn member(&self, group: u32, member: u32) -> ChipId {
        ChipId(self.first_chip + member * self.groups + group)
    }

    /// The chip of a page of a block of `group`, and its number in that
    /// chip's own block.
    #[inline]
    pub fn locate(&self, group: u32, page: u32) -> (ChipId, u32) {
        (self.member(group, self.member_of(page)), page >> self.width_shift)
    }

    /// Which member of a group holds a page of its block.
    #[inline]
    pub fn member_of(&self, page: u32) -> u32 {
        (page + (page >> self.width_shift)) & (self.width() - 1)
    }

    /// Whether a page of a block holds parity.
    #[inline]
    pub fn is_parity(&self, page: u32) -> bool {
        let last = self.width() - 1;
        last > 0 && page & last == last
    }

    /// First page of the stripe of a page.
    #[inline]
    pub fn first_of_row(&self, page: u32) -> u32 {
        page & !(self.width() - 1)
    }

    /// Pages that programming `data` pages takes, their parity included.
    #[inline]
    pub fn with_parity(&self, data: u32) -> u32 {
        match self.width() {
            1 => data,
            width => data + data.div_ceil(width - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_lies_on_different_chips_and_parity_rotates() {
        let stripes = Stripes::new(16, 16, 4);
        for group in 0..4 {
            let mut parity_chips = Vec::new();
            for row in 0..4 {
                let pages: Vec<u32> = (row * 4..row * 4 + 4).collect();
                let mut chips: Vec<u32> = pages.iter().map(|&page| stripes.locate(group, page).0.0).collect();
                assert!(pages.iter().all(|&page| stripes.locate(group, page).1 == row));
                let parity: Vec<_> = pages.iter().filter(|&&page| stripes.is_parity(page)).collect();
                assert_eq!(parity, [&(row * 4 + 3)]);
                parity_chips.push(chips[3]);
                chips.sort_unstable();
                assert_eq!(chips, [16 + group, 20 + group, 24 + group, 28 + group]);
            }
            parity_chips.sort_unstable();
            parity_chips.dedup();
            assert_eq!(parity_chips.len(), 4, "every chip has its share of parity");
        }
    }

    #[test]
    fn without_redundancy_a_block_lies_on_one_chip() {
        let stripes = Stripes::new(0, 8, 1);
        assert_eq!(stripes.locate(5, 77), (ChipId(5), 77));
        assert!(!stripes.is_parity(0));
        assert_eq!(stripes.with_parity(9), 9);
    }
}
