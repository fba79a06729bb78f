//! A non-volatile memory device as a leaf: fast, without erases, and worn only
//! by what is written to it.

mod config;
mod device;
mod latency;
mod memory;
mod presets;

pub use config::{Bandwidth, Endurance, Layout, NvmConfig};
pub use device::{Nvm, Report};
pub use latency::LatencyConfig;
pub use presets::PRESETS;
