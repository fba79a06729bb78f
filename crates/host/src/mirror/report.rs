//! What a mirror has done.

use serde::Serialize;

/// What a mirror has done since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MirrorReport {
    /// Reads of the host, in parts that lie on the same copies.
    pub reads: u64,
    /// Reads for which a second copy was asked because the first took long.
    pub hedged_reads: u64,
    /// Those in which the second was first to answer.
    pub hedges_won: u64,
    /// Bytes that were read twice for it: the extra load.
    pub hedged_bytes: u64,
    /// Reads that went to another copy because one had failed.
    pub retried_reads: u64,
    /// Writes and the like of the host, in parts.
    pub changes: u64,
    /// Those that had to wait for another change of the same pages.
    pub changes_held: u64,
    /// Times that a copy took none, being full or read-only by then: it lacks what they wrote until
    /// it takes writes again.
    pub changes_refused: u64,
    /// Those that had to wait because a deterministic window could take no more.
    pub changes_held_for_windows: u64,
    /// Deterministic windows that copies have begun; those that were on at the reset are some
    /// of them.
    pub windows_begun: u64,
    /// Those that ended without a command; such as were given up before they had begun are not
    /// among them.
    pub windows_ended_early: u64,
    /// How often, after the first, no copy was in a deterministic window.
    pub none_deterministic: u64,
    /// For how long in all, as far as it has ended.
    pub none_deterministic_ns: u64,
    /// Copies that are gone.
    pub lost_copies: u64,
    /// Regions looked through after power cuts.
    pub dirty_regions: u64,
    /// Bytes written to copies so that they agree again.
    pub resynced_bytes: u64,
    /// Bytes written again to a copy that had them, so that its buffer is full at another
    /// time than that of the others.
    pub rewritten_bytes: u64,
}
