//! The retirement axis: what becomes of blocks that are worn out.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// What becomes of blocks that have used up their rated cycles. Those that are
    /// used no more are replaced by others as long as the device has more than its
    /// capacity and its tasks need.
    pub enum RetirementConfig as "retirement": Retirement {
        /// They are used for ever.
        None(None) in none = "none",
        /// They are used no more; once none can be replaced, nothing is written.
        ReadOnly(ReadOnly) in read_only = "read-only",
        /// They are used no more; once none can be replaced, room shrinks, and what
        /// holds nothing is written only while there is any.
        NoSpace(NoSpace) in no_space = "no-space",
    }
}

impl Default for RetirementConfig {
    fn default() -> Self {
        RetirementConfig::None(none::None::default())
    }
}

/// What becomes of blocks that are worn out.
pub trait Retirement {
    /// Whether a block is used no more that is worn out; that takes wear.
    fn retires(&self) -> bool {
        true
    }

    /// Whether a block that nothing can replace takes room with it, as far as
    /// nothing is kept there, instead of ending all writes.
    fn shrinks(&self) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
