//! What NAND does: geometry, timing, chips contending for channels, and wear.

mod array;
mod endurance;
mod geometry;
mod meter;
mod suspension;
mod timing;
pub mod wear;

pub use array::{Array, FlashCommand, Job, Step};
pub(crate) use endurance::BlockWear;
pub use endurance::Endurance;
pub use geometry::{Geometry, GeometryConfig};
pub use meter::Meter;
pub use suspension::{Budget as SuspensionBudget, Suspension, SuspensionConfig};
pub use timing::{Timing, TimingConfig};
pub use wear::WearConfig;
