//! The redundancy axis: which flash pages protect each other.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod static_stripes;
mod stripes;
pub mod update;

pub(crate) use static_stripes::StaticStripes;
pub(crate) use stripes::Stripes;
pub use update::UpdateConfig;

flashkeel_config::axis! {
    /// Which flash pages protect each other.
    pub enum RedundancyConfig as "redundancy": Redundancy {
        /// None do.
        None(None) in none = "none",
        /// Pages programmed one after another, by a parity page behind them.
        Physical(Physical) in physical = "physical",
        /// Neighbouring logical pages on different channels, by a parity page
        /// that is updated with them; a trim frees nothing.
        Logical(Logical) in logical = "logical",
    }
}

impl Default for RedundancyConfig {
    fn default() -> Self {
        RedundancyConfig::None(none::None::default())
    }
}

/// A redundancy policy. It has physical stripes, or logical ones, or neither.
pub trait Redundancy {
    /// Flash pages of a physical stripe, parity included, on as many chips; 1
    /// for none. A divisor of `chips` and a power of two.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    fn width(&self, _chips: u32) -> Result<u32, String> {
        Ok(1)
    }

    /// Flash pages of a logical stripe, parity included, on as many of a
    /// partition's `channels`; a divisor of their number.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    fn logical_width(&self, _channels: u32) -> Result<Option<u32>, String> {
        Ok(None)
    }

    /// How the parity of logical stripes is updated, where there are any.
    fn update(&self) -> UpdateConfig {
        UpdateConfig::default()
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
