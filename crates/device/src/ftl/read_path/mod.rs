//! The read-path axis: from where a page of the host is read.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use flashkeel_engine::Cause;

flashkeel_config::axis! {
    /// From where a page of the host is read.
    pub enum ReadPathConfig as "read path": ReadPath {
        /// From its own chip, whenever that is free.
        Plain(Plain) in plain = "plain",
        /// From the rest of its stripe while its chip does background work.
        Reconstruct(Reconstruct) in reconstruct = "reconstruct",
    }
}

impl Default for ReadPathConfig {
    fn default() -> Self {
        ReadPathConfig::Plain(plain::Plain::default())
    }
}

/// A read path.
pub trait ReadPath {
    /// Whether pages are ever rebuilt; that takes redundancy.
    fn needs_redundancy(&self) -> bool;

    /// Whether a page is rebuilt when its chip is occupied by an operation
    /// that others are told `occupant` of; `None` if it is idle.
    fn rebuilds(&self, occupant: Option<Cause>) -> bool;
}
