//! `striped`: consecutive flash pages of the logical space lie on chips of
//! consecutive channels, so that an address alone tells its chip (ttFlash's
//! static mapping: LPN 0 on channel 0, LPN 1 on channel 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Allocation, Spread};
use crate::address::Lpn;

/// Settings of `striped`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Striped {}

impl Allocation for Striped {
    fn domains(&self, chips: u32) -> u32 {
        chips
    }

    fn keeps_to_chips(&self) -> bool {
        true
    }

    #[inline]
    fn domain_of(&self, lpn: Lpn, spread: Spread) -> u32 {
        let channels = spread.domains / spread.per_channel;
        let page = lpn.0 / spread.units_per_page;
        let (row, channel) = (page / channels, page % channels);
        channel * spread.per_channel + row % spread.per_channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_on_different_channels_and_every_chip_gets_its_share() {
        // Four channels of two chips, 8 KiB flash pages.
        let spread = Spread { units_per_page: 2, domains: 8, per_channel: 2 };
        let chips: Vec<u32> = (0..32).map(|lpn| Striped {}.domain_of(Lpn(lpn), spread)).collect();
        let chip_of_each = [0, 2, 4, 6, 1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7];
        assert!(chips.chunks(2).zip(chip_of_each).all(|(pages, chip)| pages == [chip, chip]), "{chips:?}");
    }
}
