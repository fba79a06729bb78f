//! The host side of a run: the driver that feeds a workload to a device, or
//! to a stack of host stages over devices, and hands what completes to the
//! statistics.

mod driver;
mod flight;
mod measured;

pub use driver::{DriveError, drive};
pub use measured::Measured;
