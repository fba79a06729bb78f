//! What every part of the simulator stands on: time, events, random streams,
//! requests with their blame ledger, and the leaf/stage seam.
//!
//! Nothing here reads a clock, a file, a socket or the environment; a driver
//! outside decides what "now" is.

pub mod blame;
pub mod events;
pub mod leaf;
pub mod predictor;
pub mod random;
pub mod request;
pub mod stack;
pub mod stage;
pub mod time;
pub mod units;

pub use blame::{Cause, Ledger, Waits};
pub use events::EventQueue;
pub use leaf::{Leaf, Submit};
pub use predictor::{Prediction, Predictor};
pub use random::Stream;
pub use request::{Completion, Lba, Operation, Request, RequestId, SECTOR_BYTES, Status, TenantId};
pub use stack::Stack;
pub use stage::{Outbox, Stage};
pub use time::{Span, Time};
