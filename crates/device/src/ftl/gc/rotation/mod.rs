//! The rotation axis: which chips may collect garbage at the same time.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// Which chips may collect garbage at the same time.
    pub enum RotationConfig as "rotation": Rotation {
        /// Any.
        None(None) in none = "none",
        /// One of each plane group, in turn, as long as enough blocks are free.
        PlaneGroup(PlaneGroup) in plane_group = "plane-group",
    }
}

impl Default for RotationConfig {
    fn default() -> Self {
        RotationConfig::None(none::None::default())
    }
}

/// A rotation policy.
pub trait Rotation {
    /// Whether the chips of a plane group collect one after another.
    fn is_exclusive(&self) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
