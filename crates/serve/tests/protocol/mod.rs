//! What clients of the protocol say, byte by byte.

use flashkeel_serve::nbd::Export;

/// Bytes.
pub const MIB: u64 = 1 << 20;

/// A small one.
pub fn export() -> Export {
    Export {
        name: "disk".into(),
        description: "a disk".into(),
        bytes: 64 * MIB,
        block_bytes: 4096,
        preferred_bytes: 16384,
        is_read_only: false,
    }
}

/// An option and its data.
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// What `GO` and `INFO` carry: a name, and nothing that is wanted beside.
pub fn named(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 0]].concat()
}

/// What an option about contexts carries.
pub fn queries(name: &str, queries: &[&str]) -> Vec<u8> {
    let string = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

/// A request, and the data of a write.
pub fn request(flags: u16, command: u16, cookie: u64, from: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let head = [&0x2560_9513u32.to_be_bytes()[..], &flags.to_be_bytes(), &command.to_be_bytes()].concat();
    [&head[..], &cookie.to_be_bytes(), &from.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// Flags, structured replies, contexts, and the choice.
pub fn negotiation() -> Vec<u8> {
    let flags = 3u32.to_be_bytes();
    [
        &flags[..],
        &option(8, b""),
        &option(10, &queries("disk", &["base:allocation"])),
        &option(7, &named("disk")),
    ]
    .concat()
}
