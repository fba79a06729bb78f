//! A tier: an upper device in front of a lower one, and the policies that say what is
//! where. Each axis is a folder.

pub mod admission;
pub mod budget;
pub mod eviction;
mod journal;
pub mod overflow;
pub mod placement;
mod presets;
mod stage;
mod table;
pub mod writeback;

pub(crate) use journal::Room;
pub use presets::PRESETS;
pub use stage::{Plan, Tier, TierReport};
pub use table::List;
pub(crate) use table::MOST_FRAMES;
