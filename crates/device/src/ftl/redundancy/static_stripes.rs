//! How logical stripes lie on chips.

use std::ops::Range;

use crate::address::Lpn;
use crate::ftl::divisor::Divisor;

/// The logical stripes of one partition. A stripe has a flash page of data on
/// each chip of its plane group but one, and parity there. Chips of a plane
/// group lie on different channels. Stripes go round the groups, and within a
/// group parity goes round the chips. A parity page is a logical page too,
/// numbered after those of the host and the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticStripes {
    width: u32,
    groups: u32,
    units_per_page: u32,
    /// Logical pages of the host.
    lpns: u32,
    first_parity: u32,
    /// Divides by the data pages of a stripe.
    by_stripe: Divisor,
    by_unit: Divisor,
}

impl StaticStripes {
    /// Stripes of `width` flash pages over `chips` chips for `lpns` pages of
    /// the host; parity pages are numbered from `first_parity` on.
    pub fn new(width: u32, chips: u32, units_per_page: u32, lpns: u32, first_parity: u32) -> Self {
        StaticStripes {
            width,
            groups: chips / width,
            units_per_page,
            lpns,
            first_parity,
            by_stripe: Divisor::new((width - 1) * units_per_page),
            by_unit: Divisor::new(units_per_page),
        }
    }

    /// Chips of a plane group.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Plane groups.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The chip within the partition of a plane group's member.
    #[inline]
    pub fn chip_at(&self, group: u32, member: u32) -> u32 {
        member * self.groups + group
    }

    /// Number of stripes; the last may have less data than the others.
    pub fn len(&self) -> u32 {
        self.lpns.div_ceil((self.width - 1) * self.units_per_page)
    }

    /// Logical pages that hold parity.
    pub fn parity_lpns(&self) -> u32 {
        self.len() * self.units_per_page
    }

    /// Logical pages of one chip, data and parity, at most.
    pub fn lpns_per_chip(&self) -> u32 {
        self.len().div_ceil(self.groups) * self.units_per_page
    }

    /// The stripe of a page of the host.
    #[inline]
    pub fn stripe_of(&self, lpn: Lpn) -> u32 {
        self.by_stripe.divide(lpn.0)
    }

    /// The pages of the host in a stripe.
    #[inline]
    pub fn data(&self, stripe: u32) -> Range<u32> {
        let each = (self.width - 1) * self.units_per_page;
        stripe * each..((stripe + 1) * each).min(self.lpns)
    }

    /// Whether a page of the host is the last of its stripe.
    #[inline]
    pub fn is_last(&self, lpn: Lpn) -> bool {
        self.data(self.stripe_of(lpn)).end == lpn.0 + 1
    }

    /// Which of the 4 KiB pages of its flash page a page of the host is.
    #[inline]
    pub fn unit_of(&self, lpn: Lpn) -> u32 {
        lpn.0 % self.units_per_page
    }

    /// The page that holds the parity of unit `unit` of each flash page of a
    /// stripe.
    #[inline]
    pub fn parity(&self, stripe: u32, unit: u32) -> Lpn {
        Lpn(self.first_parity + stripe * self.units_per_page + unit)
    }

    /// The stripe of a page of the host or of parity.
    pub fn stripe_of_any(&self, lpn: Lpn) -> u32 {
        if lpn.0 < self.first_parity {
            self.stripe_of(lpn)
        } else {
            self.by_unit.divide(lpn.0 - self.first_parity)
        }
    }

    /// Which of the 4 KiB pages of its flash page a page of parity is.
    pub fn unit_of_parity(&self, lpn: Lpn) -> u32 {
        (lpn.0 - self.first_parity) % self.units_per_page
    }

    /// The pages, of data and parity, from which a page of either follows.
    pub fn mates(&self, lpn: Lpn) -> impl Iterator<Item = Lpn> + use<> {
        let (stripes, stripe) = (*self, self.stripe_of_any(lpn));
        let is_parity = lpn.0 >= self.first_parity;
        let unit = if is_parity { self.unit_of_parity(lpn) } else { self.unit_of(lpn) };
        let data =
            self.data(stripe).map(Lpn).filter(move |&mate| stripes.unit_of(mate) == unit && mate != lpn);
        data.chain((!is_parity).then(|| self.parity(stripe, unit)))
    }

    /// Whether two pages, of the host or of parity, belong to one flash page.
    pub fn share_page(&self, one: Lpn, other: Lpn) -> bool {
        let page = |lpn: Lpn| {
            let first = if lpn.0 < self.first_parity { 0 } else { self.first_parity };
            (first, self.by_unit.divide(lpn.0 - first))
        };
        page(one) == page(other)
    }

    /// The chip within the partition on which a page of the host, or of
    /// parity, stays.
    #[inline]
    pub fn chip_of(&self, lpn: Lpn) -> u32 {
        let (stripe, place) = if lpn.0 < self.first_parity {
            let stripe = self.stripe_of(lpn);
            let within = lpn.0 - stripe * (self.width - 1) * self.units_per_page;
            (stripe, 1 + self.by_unit.divide(within))
        } else {
            (self.by_unit.divide(lpn.0 - self.first_parity), 0)
        };
        let member = (stripe / self.groups + place) % self.width;
        self.chip_at(stripe % self.groups, member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight channels of two chips, 16 KiB flash pages.
    fn stripes() -> StaticStripes {
        StaticStripes::new(8, 16, 4, 10_000, 10_003)
    }

    #[test]
    fn members_of_a_stripe_lie_on_different_channels() {
        let stripes = stripes();
        for stripe in 0..stripes.len() - 1 {
            let unit = stripe % 4;
            let mut chips: Vec<u32> = stripes.data(stripe).map(|lpn| stripes.chip_of(Lpn(lpn))).collect();
            assert!(chips.chunks(4).all(|page| page.iter().all(|chip| *chip == page[0])));
            chips.dedup();
            chips.push(stripes.chip_of(stripes.parity(stripe, unit)));
            assert!(chips.iter().all(|chip| chip % 2 == stripe % 2));
            let mut channels: Vec<u32> = chips.iter().map(|chip| chip / 2).collect();
            channels.sort_unstable();
            assert_eq!(channels, [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    }

    #[test]
    fn every_chip_holds_its_share_of_parity() {
        let stripes = stripes();
        let mut parity = [0; 16];
        for stripe in 0..160 {
            parity[stripes.chip_of(stripes.parity(stripe, 0)) as usize] += 1;
        }
        assert_eq!(parity, [10; 16]);
    }

    #[test]
    fn every_page_of_the_host_belongs_to_one_stripe() {
        let stripes = stripes();
        let all: Vec<u32> = (0..stripes.len()).flat_map(|stripe| stripes.data(stripe)).collect();
        assert!(all.iter().copied().eq(0..10_000));
        assert!(all.iter().all(|&lpn| stripes.data(stripes.stripe_of(Lpn(lpn))).contains(&lpn)));
        assert_eq!(stripes.parity_lpns(), 10_000u32.div_ceil(28) * 4);
    }
}
