//! Numbers of the network block device protocol, and bytes in network order, for those who
//! serve and those who ask ("The NBD protocol", doc/proto.md of NetworkBlockDevice/nbd).

#![expect(missing_docs, reason = "what has no words of its own is called as in the protocol")]

/// The longest read, write or range of zeros of one request, 32 MiB: what clients may
/// assume where nobody says anything.
pub const MOST_BYTES: u32 = 32 << 20;

/// The longest name of an export, and every other string ("NBD_MAX_STRING").
pub const LONGEST_STRING: usize = 4096;

/// The longest data of an option; longer ones are skipped unread.
pub const LONGEST_OPTION: usize = 16 << 10;

/// What is skipped at most.
pub const MOST_SKIPPED: u32 = 1 << 20;

pub const GREETING: &[u8; 16] = b"NBDMAGICIHAVEOPT";
pub const OPTION: u64 = 0x4948_4156_454F_5054;
pub const OPTION_REPLY: u64 = 0x0003_E889_0455_65A9;
pub const REQUEST: u32 = 0x2560_9513;
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
pub const STRUCTURED_REPLY: u32 = 0x668E_33EF;

/// Bytes of a request without the data of a write.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an option without its data.
pub const OPTION_BYTES: usize = 16;
/// Bytes of an answer to an option without its data.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Bytes of a simple reply without the data of a read.
pub const SIMPLE_REPLY_BYTES: usize = 16;

/// Flags of the greeting and of the client's answer.
pub mod handshake {
    pub const FIXED_NEWSTYLE: u32 = 1 << 0;
    pub const NO_ZEROES: u32 = 1 << 1;
}

/// Options of a client.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of answers to them.
pub mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const UNSUPPORTED: u32 = (1 << 31) + 1;
    pub const INVALID: u32 = (1 << 31) + 3;
    pub const UNKNOWN: u32 = (1 << 31) + 6;
    pub const TOO_BIG: u32 = (1 << 31) + 9;
}

/// What is told of an export.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub mod transmission {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Requests of a client.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;

    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DONT_FRAGMENT: u16 = 1 << 2;
    pub const ONE_EXTENT: u16 = 1 << 3;
}

/// Parts of structured replies.
pub mod chunk {
    pub const DONE: u16 = 1 << 0;

    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// What a client is told of a range.
pub mod state {
    pub const HOLE: u32 = 1 << 0;
    pub const ZERO: u32 = 1 << 1;
}

/// Bytes that are read from the front; `None` where they end.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string behind its length.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        if length > LONGEST_STRING { None } else { self.bytes(length) }
    }
}

/// Appends what goes out.
pub trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
