//! A mirror: two or more devices with the same data, as one.
//!
//! Four choices, one folder each: which copy a read goes to, when a second copy
//! is asked as well, when a write is acknowledged, and which copy does its background
//! work when.

pub mod acknowledge;
mod agreement;
mod changes;
pub mod hedge;
mod held;
mod homes;
mod layout;
mod pieces;
pub mod read;
mod reads;
mod recent;
mod report;
mod restoring;
mod resync;
mod stage;
mod windowing;
pub mod windows;
mod writes;

pub use layout::RangeConfig;
pub use report::MirrorReport;
pub use resync::ResyncConfig;
pub use stage::{Mirror, MirrorParts};

/// Copies and spares at most.
pub const MOST: usize = u8::BITS as usize;

/// Those of a set of copies, a bit each, in order.
fn each(copies: u8) -> impl Iterator<Item = usize> {
    (0..MOST).filter(move |copy| copies >> copy & 1 == 1)
}
