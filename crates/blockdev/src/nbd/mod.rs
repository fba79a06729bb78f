//! Exports of servers of network block devices as leaves: the client's side of the protocol,
//! with simple replies.

mod export;
mod line;
mod uri;

pub use export::Export;
