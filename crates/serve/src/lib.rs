//! A drive in real time: the same stages and leaves as in virtual time, under the wall
//! clock and for clients of other programs.
//!
//! [`nbd`] is the protocol without input and output; what moves bytes and keeps the time
//! goes around it.

mod clock;
mod complaints;
mod connection;
mod drive;
mod lateness;
pub mod nbd;
mod pieces;
mod seen;
mod server;
mod sleep;
mod sockets;
mod window;

pub use flashkeel_engine::{Time, reason};
pub use lateness::Late;
pub use seen::{BOUNDS_NS, Counted, Recent, Tally};
pub use server::{Kept, Served, Server, Settings, Watch};
pub use sockets::{Address, listen_at};
pub use window::{Snapshot, Window};
