//! What has been done about windows.

use serde::Serialize;

/// What has been done about the windows of a device since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowedReport {
    /// Deterministic windows that have begun; one that was on at the reset is one of them.
    pub windows_begun: u64,
    /// Those that ended, or could not begin after all, because too much was held.
    pub windows_ended_urgent: u64,
    /// Those that ended because more was written in them at once than they allow.
    pub windows_ended_typical_exceeded: u64,
    /// Those that ended because their time was over.
    pub windows_ended_time_exceeded: u64,
    /// For how long deterministic windows that have ended lasted in all, since the reset.
    pub deterministic_ns: u64,
    /// Writes, trims and the like that were held back.
    pub changes_held: u64,
    /// Bytes held back at most.
    pub held_bytes_max: u64,
    /// Writes that were given at once in a deterministic window.
    pub direct_writes: u64,
}
