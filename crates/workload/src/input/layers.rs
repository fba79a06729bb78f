//! What a trace may be wrapped in: compressions, one in another too, and
//! encodings of text other than UTF-8. Each is told from its first bytes.

use std::io::{self, BufReader, Cursor, ErrorKind, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use serde::{Deserialize, Serialize};

use super::{BUFFER_BYTES, members::Members, utf16::Utf16, zip::ZipMember, zstd::ZstdFrames};

/// Bytes from which a wrapping is told.
const MAGIC_BYTES: usize = 265;
/// Most compressions in one another; more is a file made to do harm.
const MOST_LAYERS: usize = 4;
/// Most memory that unpacking xz may take: as much as `xz -9` asks for, twice.
const XZ_LIMIT_KIB: u32 = 128 << 10;

/// How a file is compressed, found from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// xz (its file format 1.2).
    Xz,
    /// bzip2.
    Bzip2,
    /// A zip archive with one file in it (APPNOTE 6.3).
    Zip,
}

impl Compression {
    fn sniff(magic: &[u8]) -> Self {
        match magic {
            // The third byte is the method, and there is only this one.
            [0x1f, 0x8b] | [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame may come first (RFC 8878, section 3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // An empty one has nothing but its end.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Compression::Bzip2,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Compression::Bzip2,
            // An archive without a file is one too; it is refused as empty.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Compression::Zip,
            _ => Compression::Plain,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "Zstandard",
            Compression::Xz => "xz",
            Compression::Bzip2 => "bzip2",
            Compression::Zip => "zip",
        }
    }
}

/// What is not read, by its first bytes or those at an offset, and what to do.
const UNREAD: [(usize, &[u8], &str); 14] = [
    (0, &[0x78, 0x01], "a zlib stream; unpack it first"),
    (
        0,
        &[0x02, 0x21, 0x4c, 0x18],
        "an LZ4 file of the legacy format; unpack it: lz4 -dc FILE | flashkeel trace info -",
    ),
    (0, b"\x89LZO\0\r\n\x1a\n", "an LZO file; unpack it: lzop -dc FILE | flashkeel trace info -"),
    (0, b"\xff\x06\0\0sNaPpY", "a Snappy stream; unpack it first"),
    (0, &[0x5d, 0, 0], "a file of the old LZMA format; unpack it: xz -dc FILE | flashkeel trace info -"),
    (0, &[0x78, 0x9c], "a zlib stream; unpack it first"),
    (0, &[0x78, 0xda], "a zlib stream; unpack it first"),
    (0, &[0x04, 0x22, 0x4d, 0x18], "an LZ4 file; unpack it: lz4 -dc FILE | flashkeel trace info -"),
    (0, &[0x1f, 0x9d, 0x90], "a file of compress(1); unpack it with gzip -d first"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (0, b"Rar!\x1a\x07", "a RAR archive; unpack it first"),
    (0, b"%PDF", "a PDF document, not a trace"),
    (0, b"SQLite format 3\0", "an SQLite database, not a trace"),
    (257, b"ustar", "a tar archive; unpack it: tar -xOf FILE | flashkeel trace info -"),
];

/// Everything around a trace, taken off.
pub(super) struct Unwrapped {
    pub source: Box<dyn Read>,
    /// Compressions from the outermost in; empty for a plain file.
    pub layers: Vec<Compression>,
    /// What it was that a result must show.
    pub notes: Vec<String>,
}

/// Takes off what a file is wrapped in.
///
/// # Errors
/// Of reading, with the compressions known so far; or a sentence about a file
/// that cannot be read.
pub(super) fn unwrap(mut source: Box<dyn Read>) -> Result<Unwrapped, (io::Error, Vec<Compression>)> {
    let mut layers = Vec::new();
    loop {
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        if let Err(error) = source.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic) {
            return Err((error, layers));
        }
        for (at, wanted, what) in UNREAD {
            if magic.get(at..).is_some_and(|rest| rest.starts_with(wanted)) {
                return Err((io::Error::new(ErrorKind::Unsupported, what), layers));
            }
        }
        let compression = Compression::sniff(&magic);
        let encoding = Utf16::sniff(&magic);
        let has_mark = magic.starts_with(b"\xef\xbb\xbf");
        let mut whole = Cursor::new(magic).chain(source);
        if compression == Compression::Plain {
            let mut notes = Vec::new();
            if let [outer, inner @ ..] = &layers[..]
                && !inner.is_empty()
            {
                let inner: Vec<&str> = inner.iter().map(|layer| layer.name()).collect();
                notes.push(format!("compressed more than once: {} in {}", inner.join(" in "), outer.name()));
            }
            let source: Box<dyn Read> = match encoding {
                Some(order) => {
                    notes.push("the text is in UTF-16".to_owned());
                    Box::new(Utf16::new(whole, order))
                }
                None => {
                    if has_mark {
                        whole.get_mut().0.set_position(3);
                    }
                    Box::new(whole)
                }
            };
            return Ok(Unwrapped { source, layers, notes });
        }
        if layers.len() == MOST_LAYERS {
            let message = format!("compressed more than {MOST_LAYERS} times");
            return Err((io::Error::new(ErrorKind::Unsupported, message), layers));
        }
        layers.push(compression);
        let packed = BufReader::with_capacity(BUFFER_BYTES, whole);
        source = match compression {
            Compression::Gzip => Box::new(Members::<GzDecoder<_>>::new(packed)),
            Compression::Zstd => Box::new(ZstdFrames::new(packed)),
            Compression::Xz => Box::new(XzReader::new_mem_limit(packed, true, XZ_LIMIT_KIB)),
            Compression::Bzip2 => Box::new(Members::<BzDecoder<_>>::new(packed)),
            Compression::Zip => match ZipMember::open(packed) {
                Ok(member) => Box::new(member),
                Err(error) => return Err((error, layers)),
            },
            Compression::Plain => unreachable!("returned above"),
        };
    }
}
