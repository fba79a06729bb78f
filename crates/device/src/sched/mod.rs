//! Arbitrates the flash among FTL tasks.
//!
//! Each task has its own request queue per chip; each chip has a few slots in
//! the controller. A policy decides whose operation takes a free slot. A
//! request to a busy chip never blocks one to an idle chip.

mod activity;
mod dispatcher;
mod express;
mod held;
mod operation;
pub mod policy;
mod queue;

pub use activity::{Doing, Interval};
pub use dispatcher::Dispatcher;
pub use operation::{Operation, OperationId, Operations, Purpose, Task};
pub use policy::{Arbiter, SchedulerConfig, Signals};

#[cfg(test)]
mod tests;
