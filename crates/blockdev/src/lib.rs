//! Real drives as leaves: what is asked goes to the drive, and ends when that says so. Files
//! and block devices are asked through io_uring, past the page cache (`O_DIRECT`), exports of
//! network block device servers over a socket.
//!
//! A [`World`] has the wall clock and hears of every drive that was opened in it; whoever
//! drives their leaves listens to it. A drive is read only, unless whoever opens it says
//! that its data may be destroyed.

mod buffers;
mod drive;
mod nbd;
mod opening;
mod requests;
mod world;

pub use drive::Drive;
pub use nbd::Export;
pub use opening::{Access, Found, find};
pub use world::{Fault, Touched, World};
