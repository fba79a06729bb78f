//! Files and block devices as leaves: what is asked goes to the real drive, past the page
//! cache (`O_DIRECT`), through io_uring, and ends when the drive says so.
//!
//! A [`World`] has the wall clock and hears of every drive that was opened in it; whoever
//! drives their leaves listens to it. A drive is read only, unless whoever opens it says
//! that its data may be destroyed.

mod buffers;
mod drive;
mod opening;
mod world;

pub use drive::Drive;
pub use opening::{Access, Found, find};
pub use world::{Fault, Touched, World};
