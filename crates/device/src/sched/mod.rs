//! Arbitrates the flash among FTL tasks.
//!
//! Each task has its own request queue per chip; each chip has a few slots in
//! the controller. A policy decides whose operation takes a free slot. A
//! request to a busy chip never blocks one to an idle chip.

mod background;
mod chip_log;
mod dispatcher;
mod express;
mod held;
mod operation;
pub mod policy;
mod purpose;
mod queue;
pub mod share;
pub(crate) mod tasks;

pub use chip_log::{Doing, Interval};
pub use dispatcher::Dispatcher;
pub use operation::{FlashOp, FlashOpId, FlashOps};
use policy::ALL_TASKS;
pub use policy::{Arbiter, SchedulerConfig, Signals};
pub use purpose::{Activity, Purpose, Task};

#[cfg(test)]
mod tests;
