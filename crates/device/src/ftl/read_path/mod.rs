//! The read-path axis: from where a page of the host is read.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use flashkeel_engine::{Cause, Span};

flashkeel_config::axis! {
    /// From where a page of the host is read.
    pub enum ReadPathConfig as "read path": ReadPath {
        /// From its own chip, whenever that is free.
        Plain(Plain) in plain = "plain",
        /// From the rest of its stripe while its chip does background work.
        Reconstruct(Reconstruct) in reconstruct = "reconstruct",
        /// From the rest of its stripe where that takes less time than the
        /// background work on its chip.
        GcTolerant(GcTolerant) in gc_tolerant = "gc-tolerant",
    }
}

impl Default for ReadPathConfig {
    fn default() -> Self {
        ReadPathConfig::Plain(plain::Plain::default())
    }
}

/// What a read path knows of a chip.
#[derive(Clone, Copy, Debug)]
pub struct ChipState {
    /// What others are told of the operation that occupies it; `None` if it is
    /// idle.
    pub occupant: Option<Cause>,
    /// How long background work will still occupy it: what is queued or
    /// running, and the erase that follows where a block is being emptied.
    pub background: Span,
}

/// What rebuilding a page takes.
#[derive(Clone, Copy, Debug)]
pub struct Rebuild {
    /// Whether the page's chip is the only one of its stripe that is to be
    /// avoided.
    pub is_clear: bool,
    /// The longest background work on another chip of the stripe.
    pub background: Span,
    /// Flash reads beside those of the request itself.
    pub extra_reads: u32,
    /// What those would take one after another.
    pub extra_time: Span,
}

/// A read path.
pub trait ReadPath {
    /// Whether pages are ever rebuilt; that takes redundancy.
    fn needs_redundancy(&self) -> bool {
        true
    }

    /// Whether a page of this chip may be better rebuilt than read.
    fn avoids(&self, chip: ChipState) -> bool;

    /// Whether a page of `chip`, which is to be avoided, is rebuilt.
    fn rebuilds(&self, chip: ChipState, rebuild: Rebuild) -> bool;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
