//! The redundancy axis: which flash pages protect each other.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod stripes;

pub(crate) use stripes::Stripes;

flashkeel_config::axis! {
    /// Which flash pages protect each other.
    pub enum RedundancyConfig as "redundancy": Redundancy {
        /// None do.
        None(None) in none = "none",
        /// Pages programmed one after another, by a parity page behind them.
        Physical(Physical) in physical = "physical",
    }
}

impl Default for RedundancyConfig {
    fn default() -> Self {
        RedundancyConfig::None(none::None::default())
    }
}

/// A redundancy policy.
pub trait Redundancy {
    /// Flash pages of a stripe, parity included, on as many chips; 1 for no
    /// redundancy. A divisor of `chips` and a power of two.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    fn width(&self, chips: u32) -> Result<u32, String>;
}
