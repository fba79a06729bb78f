//! The parity-update axis: what is read to compute the parity of a logical
//! stripe of which only a part is written.
//!
//! One file per policy. To add one: write the file, add its line to the list.

flashkeel_config::axis! {
    /// What is read to compute the parity of a stripe of which a part is
    /// written.
    pub enum UpdateConfig as "parity update": Update {
        /// What takes fewer reads: the old data and the old parity, or the rest
        /// of the stripe.
        Cheaper(Cheaper) in cheaper = "cheaper",
        /// What does not lie on a chip that collects garbage; of two such, what
        /// takes fewer reads.
        GcTolerant(GcTolerant) in gc_tolerant = "gc-tolerant",
    }
}

impl Default for UpdateConfig {
    fn default() -> Self {
        UpdateConfig::Cheaper(cheaper::Cheaper::default())
    }
}

/// One of the two ways to compute a parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Flash reads that it takes.
    pub reads: u32,
    /// Whether one of them waits for a chip that collects garbage.
    pub is_blocked: bool,
}

/// A policy that chooses between the two ways.
pub trait Update {
    /// Whether to read the old data and the old parity (read-modify-write)
    /// rather than the rest of the stripe (reconstruct-write).
    fn modifies(&self, modify: Way, reconstruct: Way) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
