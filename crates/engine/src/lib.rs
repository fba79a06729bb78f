//! What every part of the simulator stands on: time, events, random streams,
//! requests with their blame ledger, and the leaf/stage seam.
//!
//! Nothing here reads a clock, a file, a socket or the environment; a driver
//! outside decides what "now" is.

pub mod arena;
pub mod blame;
pub mod command;
pub mod events;
pub mod keeper;
pub mod leaf;
pub mod limits;
pub mod outside;
pub mod patience;
pub mod predictor;
pub mod random;
pub mod request;
pub mod sector;
pub mod stack;
pub mod stage;
pub mod time;
pub mod units;
pub mod wake;

pub use arena::{Arena, Payload};
pub use blame::{Cause, Ledger, Waits, add_each, subtract_each};
pub use command::{Access, Answer, Command, Event, Notice, Place, Refusal, Window, WindowEnd, WindowLimit};
pub use events::EventQueue;
pub use keeper::{FoundPages, Keeper, Keeping, Kept, PageBytes};
pub use leaf::{Coming, Holds, Leaf, Submit};
pub use limits::{Durable, Limits};
pub use outside::{Outside, reason};
pub use patience::Patience;
pub use predictor::{Filling, Prediction, Predictor};
pub use random::Stream;
pub use request::{Completion, Hint, Lba, Operation, Request, RequestId, Status, TenantId};
pub use sector::{LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, SECTOR_BYTES};
pub use stack::Stack;
pub use stage::{Outbox, Stage};
pub use time::{Span, Time};
pub use wake::Wake;

/// How this is compiled, which speeds depend on.
pub const BUILD: &str = if cfg!(debug_assertions) {
    "debug"
} else if cfg!(profile_guided) {
    "release, profile-guided"
} else {
    "release"
};
