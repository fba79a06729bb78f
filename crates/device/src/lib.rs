//! One SSD, from its front door to its flash:
//! `front` → `ftl` → `sched` → `flash`.
//!
//! The folders are the data path; each axis on which policies vary is a folder
//! with one interface file and one file per policy. [`Ssd`] assembles them and
//! is a [`Leaf`](flashkeel_engine::Leaf).

mod address;
mod arrivals;
mod config;
mod counters;
mod flash;
mod front;
mod ftl;
mod idleness;
mod layout;
mod limits;
mod machine;
mod prefetch;
mod presets;
mod processor;
mod sched;
mod ssd;
mod stranger;
#[cfg(test)]
mod tests;

pub use address::{BlockId, Lpn, Ppn};
pub use config::{DeviceConfig, MapCacheSize};
pub use counters::{Counters, Report, Worn};
pub use flash::wear::Law;
pub use flash::wear::{rated::Rated, self_recovery::SelfRecovery};
pub use flash::{
    Endurance, Geometry, GeometryConfig, SuspensionBudget, SuspensionConfig, TimingConfig, WearConfig,
};
pub use front::buffer::{BufferKind, Trigger};
pub use front::throttle::{Goal, Passed, Stretch, THROTTLE_UNIT_BYTES, Throttle};
pub use front::{BufferConfig, PowerConfig, ThrottleConfig, WindowConfig};
pub use ftl::allocation::AllocationConfig;
pub use ftl::gc::{ErasingConfig, GcConfig, InvocationConfig, MovementConfig, RotationConfig, VictimConfig};
pub use ftl::settings::*;
pub use ftl::{Cycle, Found, Medium, MediumShape, Page, Place};
pub use ftl::{FillPattern, PreconditionConfig, SteadyState};
pub use ftl::{ReadPathConfig, RedundancyConfig, RetirementConfig, SlcConfig, UpdateConfig};
pub use layout::Layout;
pub use machine::{ControllerConfig, Delay};
pub use prefetch::table;
pub use presets::PRESETS;
pub use sched::{Activity, Doing, Interval, Purpose, SchedulerConfig, Task};
pub use ssd::{Fault, Ssd};
pub use stranger::stranger;
