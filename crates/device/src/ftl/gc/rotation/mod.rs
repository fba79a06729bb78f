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
        /// All, a block each; the one with the fewest free blocks begins.
        FewestFree(FewestFree) in fewest_free = "fewest-free",
    }
}

impl Default for RotationConfig {
    fn default() -> Self {
        RotationConfig::None(none::None::default())
    }
}

/// On which chip the next block is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Whichever holds the best victim.
    Any,
    /// The chips of a plane group one after another.
    InTurn,
    /// The one with the fewest free blocks that is emptying none.
    FewestFree,
}

/// A rotation policy.
pub trait Rotation {
    /// On which chip the next block is emptied.
    fn order(&self) -> Order;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
