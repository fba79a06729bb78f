//! The host side of a run: the driver that feeds a workload to a device, or
//! to a stack of host stages over devices, and hands what completes to the
//! statistics.

pub mod blocks;
mod books;
mod claim;
pub mod coordinator;
pub mod device;
mod driver;
mod feed;
mod flight;
mod gates;
mod limits;
mod measured;
pub mod mirror;
pub mod network;
mod part;
mod parts;
pub mod predictor;
pub mod scheduler;
pub mod stack;
#[cfg(test)]
mod tests;
pub mod tier;
mod turns;
pub mod urgency;
pub mod volume;
pub mod windowed;

pub use claim::{Claim, Priority, TenantClass};
pub use driver::{DriveError, drive};
pub use feed::Tenant;
pub use measured::{Measured, parts, reports};
pub use part::Part;
pub use stack::StackConfig;
