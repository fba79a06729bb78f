//! Memory as a leaf: a non-volatile device, fast, without erases, and worn only
//! by what is written to it; and the host's own memory, which forgets.

mod config;
mod device;
mod dram;
mod latency;
mod memory;
mod presets;
mod served;

pub use config::{Bandwidth, Endurance, Layout, NvmConfig};
pub use device::{Nvm, Report};
pub use dram::DramConfig;
pub use latency::{Latency, LatencyConfig};
pub use presets::PRESETS;
