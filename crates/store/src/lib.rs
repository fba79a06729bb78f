//! A device's pages in a file, from which they are found again after a restart, whatever
//! ended its owner.
//!
//! The file holds what flash holds: pages by physical page number, beside each what lies
//! out of band (logical page, place in the order of writes, checksum), what is known of
//! each block, the journal of trims, and the pages of the write buffer, which a drive's
//! capacitors keep. The map is made again by a scan, as a drive does after a power cut.
//! What memories hold, and what tiers have in their upper devices alone, lies in sections that
//! have nothing but such a buffer.
//!
//! What is written is there for whoever opens the file next, also if its owner is killed
//! in the middle. Only a host that loses power loses what has not been synchronised, block
//! by block and in any order; so nothing is ever written over what a loss of that kind
//! would need:
//!
//! - a block is programmed again only when everything has been synchronised that was
//!   written up to its erase, copies of what it held included;
//! - the place of a page of the write buffer is used again only when everything has been
//!   synchronised that was written up to its program;
//! - each record names the epoch in which it was written, epochs end with a
//!   synchronisation, and pages of epochs that have not ended count only if their
//!   checksum is right. A wrong one of an epoch that has ended is damage, and said to be: as
//!   long as nothing newer of that page is found, the page cannot be read, for what is older
//!   is not what was written. Its place is kept until then.
//!
//! A record never lies across two sectors of 512 bytes, which are taken to be written as
//! a whole.
//!
//! Ours: written with plain writes, not through a mapping of the file into memory, so that
//! a full or failing file system is an error at a known place and not a signal.

mod agreed;
mod area;
mod damage;
mod disk;
mod error;
mod keeper;
mod layout;
mod medium;
mod records;
mod scan;
mod store;
mod syncer;

pub use damage::Damage;
pub use disk::Disk;
pub use error::Refused;
pub use layout::{Header, SectionShape};
pub use store::{Opened, Store, Synced, Watch};
