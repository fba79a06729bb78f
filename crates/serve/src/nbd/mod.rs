//! The server's side of the network block device protocol: fixed newstyle negotiation,
//! structured replies, answers in any order ("The NBD protocol", doc/proto.md of
//! NetworkBlockDevice/nbd).
//!
//! Nothing here reads or writes: bytes that have come are given to a [`Session`], which
//! says what is asked, and holds the bytes that are to go.

mod handshake;
mod session;

use flashkeel_nbd as wire;

pub use handshake::Export;
pub use session::{Ask, Closed, Extent, Failure, Kind, Session};
pub use wire::LONGEST_STRING as LONGEST_NAME;
