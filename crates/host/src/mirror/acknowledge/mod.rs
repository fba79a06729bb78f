//! The acknowledgement axis: when a write to a mirror is acknowledged.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// When a write to a mirror is acknowledged.
    pub enum AcknowledgeConfig as "acknowledgement": Build {
        /// Once every copy has it.
        All(All) in all = "all",
        /// Once the first copy has it; the others follow, and until then nothing is
        /// read from them.
        Any(Any) in any = "any",
    }
}

impl Default for AcknowledgeConfig {
    fn default() -> Self {
        AcknowledgeConfig::All(all::All::default())
    }
}

/// Settings of a rule.
pub trait Build {
    /// How many of so many copies have to have a write.
    fn needed(&self, copies: u32) -> u32;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
