//! What NAND does: geometry, timing, and chips contending for channels.

mod array;
mod geometry;
mod meter;
mod timing;

pub use array::{Array, Command, Job};
pub use geometry::{Geometry, GeometryConfig};
pub use meter::Meter;
pub use timing::{Timing, TimingConfig};
