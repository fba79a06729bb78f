//! The allocation axis: where in the flash array a logical page may be placed.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use crate::address::Lpn;

flashkeel_config::axis! {
    /// Which chips a logical page may be written to.
    pub enum AllocationConfig as "allocation": Allocation {
        /// Any chip: the least loaded one with room.
        Dynamic(Dynamic) in dynamic = "dynamic",
        /// The chip fixed by the logical address, page by page.
        Striped(Striped) in striped = "striped",
    }
}

impl Default for AllocationConfig {
    fn default() -> Self {
        AllocationConfig::Dynamic(dynamic::Dynamic::default())
    }
}

/// An allocation policy divides a partition's chips into domains of equal
/// size. Writes are aggregated, blocks are allocated and garbage is collected
/// within a domain; a logical page stays in its domain for good.
pub trait Allocation {
    /// How many domains `chips` chips form; a divisor of `chips`.
    fn domains(&self, chips: u32) -> u32;

    /// Whether each domain is a chip, so that a logical page stays on its own.
    fn keeps_to_chips(&self) -> bool {
        false
    }

    /// The domain of a logical page.
    fn domain_of(&self, lpn: Lpn, spread: Spread) -> u32;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What pages are spread over.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Logical pages of a flash page.
    pub units_per_page: u32,
    /// Domains, channel by channel.
    pub domains: u32,
    /// Domains of a channel, where each is a chip; 1 where they are not.
    pub per_channel: u32,
}
