//! The host side of a run: the driver that feeds a workload to a device, or
//! to a stack of host stages over devices, and hands what completes to the
//! statistics.

pub mod blocks;
pub mod device;
mod driver;
mod feed;
mod flight;
mod gates;
mod measured;
pub mod mirror;
pub mod network;
mod parts;
pub mod predictor;
pub mod scheduler;
pub mod stack;
#[cfg(test)]
mod tests;
pub mod tier;
pub mod volume;

pub use driver::{DriveError, Tenant, drive};
pub use measured::{Measured, Part, parts, reports};
pub use stack::StackConfig;
